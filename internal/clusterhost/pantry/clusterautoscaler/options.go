package clusterautoscaler

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"kubistro/internal/clusterhost/cloud"
	"kubistro/internal/clusterhost/pace"
)

// options are Cluster Autoscaler's flags that mean something here: cluster-autoscaler/config/flags.
type options struct {
	endpoint     string
	groups       []group
	expander     string
	maxNodes     int
	scaleDown    bool
	threshold    float64
	scan         func() time.Duration
	unneeded     func() time.Duration
	afterAdd     func() time.Duration
	afterDelete  func() time.Duration
	afterFailure time.Duration
	provision    time.Duration
	graceful     time.Duration
	skipSystem   bool
	skipLocal    bool
	skipOrphans  bool
	namespace    string
	status       bool
}

// group is a node group: machines of one type that are opened and closed.
type group struct {
	Name         string            `json:"name"`
	InstanceType string            `json:"instanceType"`
	MinSize      int               `json:"minSize"`
	MaxSize      int               `json:"maxSize"`
	CapacityType string            `json:"capacityType,omitempty"`
	Zones        []string          `json:"zones,omitempty"` // all when empty
	Labels       map[string]string `json:"labels,omitempty"`
	Taints       []corev1.Taint    `json:"taints,omitempty"`

	typ cloud.InstanceType
}

// Bounds of what a file of groups may hold.
const maxGroups = 50

// withoutEffect are flags of tutorials that change nothing in a simulated cloud.
var withoutEffect = []string{"cloud-provider", "v", "stderrthreshold", "logtostderr", "alsologtostderr", "balance-similar-node-groups", "leader-elect", "address", "cluster-name"}

var errUsage = errors.New("usage")

func parse(args []string, stderr io.Writer, readFile func(string) ([]byte, error), clock *pace.Clock) (options, error) {
	o := options{}
	f := pflag.NewFlagSet("cluster-autoscaler", pflag.ContinueOnError)
	f.SetOutput(stderr)
	f.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(strings.ReplaceAll(name, "_", "-"))
	})
	nodes := f.StringArray("nodes", nil, "sets min,max size and other configuration data for a node group in a format accepted by cloud provider: MIN:MAX:GROUP. Can be used multiple times")
	discovery := f.StringArray("node-group-auto-discovery", nil, "takes all groups of the cloud config")
	file := f.String("cloud-config", "", "the file with the node groups")
	f.StringVar(&o.endpoint, "cloud-endpoint", cloud.Endpoint, "base URL of the simulated cloud's API")
	f.StringVar(&o.expander, "expander", "least-waste", "type of node group expander to be used in scale up: least-waste, most-pods, random")
	f.IntVar(&o.maxNodes, "max-nodes-total", 0, "maximum number of nodes in all node groups; 0: no limit")
	f.BoolVar(&o.scaleDown, "scale-down-enabled", true, "should CA scale down the cluster")
	f.Float64Var(&o.threshold, "scale-down-utilization-threshold", 0.5, "the maximum value between the sum of cpu requests and sum of memory requests of all pods running on the node divided by node's corresponding allocatable resource, below which a node can be considered for scale down")
	paced := func(p pace.Period, name, usage string) func() time.Duration {
		d := f.Duration(name, pace.Real(p), usage)
		return func() time.Duration {
			if f.Changed(name) { // what an author wrote stays
				return *d
			}
			return clock.Of(p)
		}
	}
	o.scan = paced(pace.ScanInterval, "scan-interval", "how often cluster is reevaluated for scale up or down")
	o.unneeded = paced(pace.ScaleDownUnneeded, "scale-down-unneeded-time", "how long a node should be unneeded before it is eligible for scale down")
	o.afterAdd = paced(pace.ScaleDownDelayAfterAdd, "scale-down-delay-after-add", "how long after scale up that scale down evaluation resumes")
	afterDelete := f.Duration("scale-down-delay-after-delete", 0, "how long after node deletion that scale down evaluation resumes; 0: scan-interval")
	f.DurationVar(&o.afterFailure, "scale-down-delay-after-failure", 3*time.Minute, "how long after scale down failure that scale down evaluation resumes")
	f.DurationVar(&o.provision, "max-node-provision-time", 15*time.Minute, "the maximum time CA waits for a node to be provisioned")
	seconds := f.Int("max-graceful-termination-sec", 600, "maximum number of seconds CA waits for pod termination when trying to scale down a node")
	f.BoolVar(&o.skipSystem, "skip-nodes-with-system-pods", true, "if true cluster autoscaler will wait for --blocking-system-pod-distruption-timeout before deleting nodes with pods from kube-system (except for DaemonSet or mirror pods)")
	f.BoolVar(&o.skipLocal, "skip-nodes-with-local-storage", true, "if true cluster autoscaler will never delete nodes with pods with local storage, e.g. EmptyDir or HostPath")
	f.BoolVar(&o.skipOrphans, "skip-nodes-with-custom-controller-pods", true, "if true cluster autoscaler will never delete nodes with pods owned by custom controllers")
	f.StringVar(&o.namespace, "namespace", "kube-system", "namespace in which cluster-autoscaler run")
	f.BoolVar(&o.status, "write-status-configmap", true, "should CA write status information to a configmap")
	for _, name := range withoutEffect {
		f.String(name, "", "has no effect here")
		f.Lookup(name).NoOptDefVal = "true"
	}
	err := f.Parse(args)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return o, errUsage
	case err != nil:
		return o, err
	case o.expander != "least-waste" && o.expander != "most-pods" && o.expander != "random":
		return o, fmt.Errorf("expander %s not supported", o.expander)
	}
	o.afterDelete, o.graceful = func() time.Duration { return *afterDelete }, time.Duration(*seconds)*time.Second
	if *afterDelete == 0 {
		o.afterDelete = o.scan
	}
	o.groups, err = readGroups(*nodes, *file, len(*discovery) > 0, readFile)
	return o, err
}

// readGroups joins the groups of the file with those of --nodes: the latter give sizes, and
// name either a group of the file or a type of the catalogue.
func readGroups(nodes []string, file string, all bool, readFile func(string) ([]byte, error)) ([]group, error) {
	var config struct {
		NodeGroups []group `json:"nodeGroups"`
	}
	if file != "" {
		raw, err := readFile(file)
		if err == nil {
			err = yaml.UnmarshalStrict(raw, &config)
		}
		if err != nil {
			return nil, fmt.Errorf("cloud config %s: %w", file, err)
		}
	}
	var out []group
	if len(nodes) == 0 || all {
		out = config.NodeGroups
	}
	for _, spec := range nodes {
		parts := strings.SplitN(spec, ":", 3)
		if len(parts) != 3 {
			return nil, fmt.Errorf("failed to parse node group spec: %q isn't MIN:MAX:GROUP", spec)
		}
		g := group{Name: parts[2], InstanceType: parts[2]}
		for _, known := range config.NodeGroups {
			if known.Name == g.Name {
				g = known
			}
		}
		var err1, err2 error
		g.MinSize, err1 = strconv.Atoi(parts[0])
		g.MaxSize, err2 = strconv.Atoi(parts[1])
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("failed to parse node group spec %q: %w", spec, err)
		}
		out = append(out, g)
	}
	if len(out) > maxGroups {
		return nil, fmt.Errorf("more than %d node groups", maxGroups)
	}
	names := map[string]bool{}
	for i := range out {
		g := &out[i]
		var ok bool
		if g.typ, ok = cloud.Find(g.InstanceType); !ok {
			return nil, fmt.Errorf("node group %s: there is no instance type %q", g.Name, g.InstanceType)
		}
		if g.CapacityType == "" {
			g.CapacityType = cloud.OnDemand
		}
		if len(g.Zones) == 0 {
			g.Zones = cloud.Zones
		}
		for _, z := range g.Zones {
			if !g.typ.Offered(z, g.CapacityType) {
				return nil, fmt.Errorf("node group %s: %s can't be had in zone %q as %q", g.Name, g.InstanceType, z, g.CapacityType)
			}
		}
		if g.Name == "" || names[g.Name] || g.MinSize < 0 || g.MaxSize < max(1, g.MinSize) {
			return nil, fmt.Errorf("node group %q: its name is taken, or its sizes %d to %d are none", g.Name, g.MinSize, g.MaxSize)
		}
		names[g.Name] = true
	}
	return out, nil
}
