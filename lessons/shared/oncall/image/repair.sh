kubectl rollout undo deployment/grill
kubectl rollout status deployment/grill --timeout=60s
