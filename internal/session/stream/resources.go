package stream

import "k8s.io/apimachinery/pkg/runtime/schema"

// Resource is a kind of object that a session watches.
type Resource struct {
	schema.GroupVersionResource
	Kind string
	// Namespaced: objects live in namespaces.
	Namespaced bool
	// MetadataOnly: contents never leave the API server (Secrets).
	MetadataOnly bool
}

// Resources lists all of them.
func Resources() []Resource {
	r := func(group, version, resource, kind string, namespaced bool) Resource {
		return Resource{GroupVersionResource: schema.GroupVersionResource{Group: group, Version: version, Resource: resource}, Kind: kind, Namespaced: namespaced}
	}
	secrets := r("", "v1", "secrets", "Secret", true)
	secrets.MetadataOnly = true
	return []Resource{
		r("", "v1", "nodes", "Node", false),
		r("", "v1", "namespaces", "Namespace", false),
		r("", "v1", "pods", "Pod", true),
		r("", "v1", "services", "Service", true),
		r("", "v1", "configmaps", "ConfigMap", true),
		secrets,
		r("", "v1", "events", "Event", true),
		r("apps", "v1", "deployments", "Deployment", true),
		r("apps", "v1", "replicasets", "ReplicaSet", true),
		r("apps", "v1", "statefulsets", "StatefulSet", true),
		r("apps", "v1", "daemonsets", "DaemonSet", true),
		r("batch", "v1", "jobs", "Job", true),
		r("batch", "v1", "cronjobs", "CronJob", true),
		r("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", true),
		r("networking.k8s.io", "v1", "ingresses", "Ingress", true),
		r("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", true),
	}
}
