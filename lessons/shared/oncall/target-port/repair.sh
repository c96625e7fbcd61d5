kubectl patch service grill --type=json -p '[{"op":"replace","path":"/spec/ports/0/targetPort","value":8080}]'
