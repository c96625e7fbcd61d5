package stream

import (
	"strings"

	"kubistro/internal/lab"
)

// Actors that aren't parts of Kubernetes.
const (
	ActorLearner = "learner"
	ActorLab     = "lab"
)

// provisioner makes the volumes of claims; it runs in a Pod of its own.
const provisioner = "local-path-provisioner"

// LabUserAgent marks the requests that the lab itself makes with the learner's
// credentials, so that the record tells the two apart.
const LabUserAgent = "kubistro-lab"

// auditActor is the short name of who made a write; empty for nobody known.
func auditActor(user, userAgent string) string {
	switch user {
	case "":
		return ""
	case "learner":
		if strings.HasPrefix(userAgent, LabUserAgent) {
			return ActorLab
		}
		return ActorLearner
	case "system:apiserver":
		return "kube-apiserver"
	}
	if node, ok := strings.CutPrefix(user, "system:node:"); ok {
		return "kubelet/" + node
	}
	if account, ok := strings.CutPrefix(user, "system:serviceaccount:"); ok {
		namespace, name, _ := strings.Cut(account, ":")
		switch {
		case namespace == "kube-system":
			return name
		case account == "local-path-storage:local-path-provisioner-service-account":
			return provisioner
		}
		return "serviceaccount/" + namespace + "/" + name
	}
	return strings.TrimPrefix(user, "system:")
}

// eventActor is the short name of who reported a Kubernetes Event.
func eventActor(component, host string) string {
	if strings.HasPrefix(component, "rancher.io/local-path_") { // the Pod's name follows
		return provisioner
	}
	switch component {
	case "kubelet":
		if host == "" {
			return component
		}
		return "kubelet/" + host
	case "default-scheduler":
		return "kube-scheduler"
	case "taint-eviction-controller", "ipam-controller", "cidrAllocator":
		// Named apart by their Events although they write as node-controller.
		return component
	case "horizontal-pod-autoscaler":
		return "horizontal-pod-autoscaler"
	case "controllermanager":
		return "kube-controller-manager"
	}
	return component
}

// writesAs is the audit name behind an Event's actor where the two differ.
func writesAs(actor string) string {
	switch actor {
	case "taint-eviction-controller", "ipam-controller", "cidrAllocator":
		return "node-controller"
	}
	return actor
}

// ownNamespace reports whether the namespace belongs to the cluster's own parts,
// which the record leaves out.
func ownNamespace(namespace string) bool {
	switch namespace {
	case "kube-system", "kube-public", "kube-node-lease", "local-path-storage":
		return true
	}
	return false
}

// kindOf is the kind of a resource that the lab watches; empty for another.
func kindOf(resource, group string) string {
	for _, r := range Resources() {
		if r.Resource == resource && r.Group == group {
			return r.Kind
		}
	}
	return ""
}

// unrecorded lists resources whose writes are bookkeeping between the parts of
// a cluster and tell a learner nothing.
func unrecorded(e lab.AuditEntry) bool {
	switch e.Resource {
	case "leases", "events", "endpoints", "tokenreviews", "subjectaccessreviews", "localsubjectaccessreviews",
		"selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews", "controllerrevisions",
		"ipaddresses", "servicecidrs":
		return true
	case "configmaps":
		return e.Object.Name == rootCA
	case "serviceaccounts":
		return e.Subresource == "token"
	case "pods":
		switch e.Subresource {
		case "portforward", "proxy":
			return true
		}
	}
	return false
}

// rootCA is the ConfigMap that every namespace gets.
const rootCA = "kube-root-ca.crt"
