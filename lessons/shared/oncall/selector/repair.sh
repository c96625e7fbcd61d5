kubectl patch service grill -p '{"spec":{"selector":{"station":"grill"}}}'
