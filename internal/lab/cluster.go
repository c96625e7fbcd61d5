package lab

import (
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Kitchen is a worker node of a course's cluster.
type Kitchen struct {
	Name   string            `json:"name"` // kitchen-1
	CPU    string            `json:"cpu"`  // allocatable, as a Kubernetes quantity: 2
	Memory string            `json:"memory"`
	Labels map[string]string `json:"labels,omitempty"`
	// Resources are extended resources, in whole numbers: nvidia.com/gpu: "2".
	Resources map[string]string `json:"resources,omitempty"`
	// Taints are those that the node registers with, as kubectl taint takes them: key=value:Effect.
	Taints []string `json:"taints,omitempty"`
}

var extendedResource = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)

// CheckExtendedResource says what is wrong with a kitchen's extended resource:
// its name needs a domain that isn't Kubernetes' own, its amount is a whole number.
func CheckExtendedResource(name, amount string) error {
	domain, _, _ := strings.Cut(name, "/")
	if !extendedResource.MatchString(name) || domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io") || strings.HasPrefix(name, "requests.") {
		return fmt.Errorf("%q is not the name of an extended resource such as nvidia.com/gpu", name)
	}
	if n, err := strconv.Atoi(amount); err != nil || n < 0 || n > 1_000_000 {
		return fmt.Errorf("%s: %q is not a whole number from 0 to 1000000", name, amount)
	}
	return nil
}

// KitchenState is a kitchen of a cluster that runs.
type KitchenState struct {
	Kitchen
	Address string `json:"address"`
	Power   bool   `json:"power"` // on
	Cable   bool   `json:"cable"` // plugged in
}

// KitchenChange powers a kitchen or plugs its network cable; what is nil stays as it is.
type KitchenChange struct {
	Power *bool `json:"power,omitempty"`
	Cable *bool `json:"cable,omitempty"`
}

// ClusterSpec is the shape of a cluster. The control plane node is always "office".
type ClusterSpec struct {
	Kitchens []Kitchen `json:"kitchens"`
	// WithoutLoadBalancers: nobody gives Services of type LoadBalancer an address; they stay pending.
	WithoutLoadBalancers bool `json:"withoutLoadBalancers,omitempty"`
	// Speed is how many times faster the periods of Clock pass; 0 and 1 are the real figures.
	Speed int `json:"speed,omitempty"`
}

// DefaultClusterSpec is three kitchens of 2 CPU and 2 GiB, labelled kitchen=1 to 3.
func DefaultClusterSpec() ClusterSpec {
	var s ClusterSpec
	for _, n := range []string{"1", "2", "3"} {
		s.Kitchens = append(s.Kitchens, Kitchen{
			Name: "kitchen-" + n, CPU: "2", Memory: "2Gi", Labels: map[string]string{"kitchen": n},
		})
	}
	return s
}

// AuditEntry is one accepted write.
type AuditEntry struct {
	N           uint64    `json:"n"` // starts at 1 with each start of the cluster process
	Time        time.Time `json:"time"`
	User        string    `json:"user"` // audit user name: system:serviceaccount:kube-system:replicaset-controller
	UserAgent   string    `json:"userAgent,omitempty"`
	Verb        string    `json:"verb"` // create, update, patch, delete, deletecollection
	Resource    string    `json:"resource"`
	APIGroup    string    `json:"apiGroup,omitempty"`
	Subresource string    `json:"subresource,omitempty"`
	Object      ObjectRef `json:"object"` // Kind is set where it is known
	// Owner is the controlling owner of a created object, where the response was logged.
	Owner *ObjectRef `json:"owner,omitempty"`
	Code  int        `json:"code"` // HTTP status, 2xx; 101 for a session
	// Session names a session in a container (subresource exec or attach), which has
	// an entry when it begins and one, Ended, when it ends. Command is exec's, cut.
	Session string `json:"session,omitempty"`
	Ended   bool   `json:"ended,omitempty"`
	Command string `json:"command,omitempty"`
}

// maxCommand bounds AuditEntry.Command, in bytes.
const maxCommand = 200

// ExecCommand is the command in the URI of a request for exec, as one line for
// AuditEntry.Command.
func ExecCommand(requestURI string) string {
	_, query, _ := strings.Cut(requestURI, "?")
	q, err := url.ParseQuery(query)
	if err != nil {
		return ""
	}
	c := strings.Join(q["command"], " ")
	return strings.ToValidUTF8(c[:min(len(c), maxCommand)], "")
}
