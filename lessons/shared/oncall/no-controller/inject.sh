kubectl delete namespace host
kubectl delete ingressclass host
kubectl delete ingress front-door
kubectl create ingress front-door --class=host --rule="restaurant.example/*=grill:80"
