kubectl apply -f host.yaml
kubectl rollout status -n host deployment/host --timeout=60s
