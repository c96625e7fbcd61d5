kubectl patch ingress front-door --type=json -p '[{"op":"replace","path":"/spec/rules/0/host","value":"restaurant.example"}]'
