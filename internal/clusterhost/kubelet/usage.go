package kubelet

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/utils/ptr"
)

// usagePeriod is how often use is measured; the first measure of a container
// needs a part of it.
const (
	usagePeriod  = 10 * time.Second
	shortestRate = time.Second
)

// usageSample is a container's use at a time, and its rate since the sample before.
type usageSample struct {
	at    time.Time
	cpu   int64 // nanoseconds so far
	rate  int64 // nanocores
	mem   int64
	valid bool // there is a rate
}

// ContainerUsage is what a container uses now.
type ContainerUsage struct {
	Name      string
	NanoCores int64
	CPUNanos  int64 // in all
	Memory    int64 // working set, bytes
	Started   time.Time
}

// PodUsage is what a Pod's containers use.
type PodUsage struct {
	Namespace, Name string
	UID             string
	Labels          map[string]string
	Containers      []ContainerUsage
}

// NodeUsage is what a node's Pods use; Window is the time that rates are over.
type NodeUsage struct {
	Node      string
	Labels    map[string]string
	Time      time.Time
	Window    time.Duration
	NanoCores int64
	CPUNanos  int64
	Memory    int64
	Pods      []PodUsage
}

// Usage is what the node and its Pods use; ok is false while the node can't
// be asked (off, cut off, without its kubelet) or hasn't measured yet. It is what the metrics server reads.
func (k *Kubelet) Usage() (u NodeUsage, ok bool) {
	b := k.current()
	if b == nil || b.dark.Load() || !k.Cable() || !k.Working() {
		return NodeUsage{}, false
	}
	return b.usage()
}

func (b *boot) usage() (NodeUsage, bool) {
	u := NodeUsage{Node: b.k.cfg.Name, Time: b.k.clock.Now(), Window: usagePeriod}
	if n := b.node.get(); n != nil {
		u.Labels = n.Labels
	}
	measured := false
	for _, w := range b.all() {
		w.mu.Lock()
		p := PodUsage{Namespace: w.incoming.Namespace, Name: w.incoming.Name, UID: string(w.uid), Labels: w.incoming.Labels}
		complete := true
		for _, s := range w.slots {
			if !s.running() || s.cur.proc.Usage == nil {
				continue
			}
			l := s.cur.lastUse
			complete = complete && l.valid
			p.Containers = append(p.Containers, ContainerUsage{Name: s.name, NanoCores: l.rate, CPUNanos: l.cpu, Memory: l.mem, Started: s.cur.state.Started})
		}
		w.mu.Unlock()
		if len(p.Containers) == 0 || !complete {
			continue
		}
		measured = true
		for _, c := range p.Containers {
			u.NanoCores += c.NanoCores
			u.CPUNanos += c.CPUNanos
			u.Memory += c.Memory
		}
		u.Pods = append(u.Pods, p)
	}
	return u, measured
}

// watchUse measures all containers, and evicts Pods where something runs out; soon
// after the boot for the first time, so that a cluster that wakes up knows its use.
func (b *boot) watchUse() {
	for wait := 2 * shortestRate; ; wait = usagePeriod {
		for _, w := range b.all() {
			w.sample()
		}
		b.relieve()
		if !sleepClock(b.ctx, b.k, wait) {
			return
		}
	}
}

func (w *worker) sample() {
	w.sampleTmpfs()
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.b.k.clock.Now()
	for _, s := range w.slots {
		if !s.running() || s.cur.proc.Usage == nil {
			continue
		}
		cpu, mem := s.cur.proc.Usage.Read()
		last := &s.cur.lastUse
		if d := now.Sub(last.at); !last.at.IsZero() && d >= shortestRate {
			last.rate, last.valid = int64(float64(cpu-last.cpu)/d.Seconds()), true
		}
		last.at, last.cpu, last.mem = now, cpu, mem
	}
}

// sampleTmpfs counts what is in emptyDirs of memory as memory of the Pod.
func (w *worker) sampleTmpfs() {
	w.mu.Lock()
	tmpfs, held := w.tmpfs, int64(0)
	for _, l := range w.emptyDirs {
		if n, _ := l.used(); l.memory {
			held += n
		}
	}
	w.mu.Unlock()
	if tmpfs != nil {
		tmpfs.SetMemory(held) // not with the lock: it may be too much, and something is killed
	}
}

func (b *boot) serveSummary(rw http.ResponseWriter, r *http.Request) {
	u, _ := b.usage()
	disk, _ := b.k.disk.Used()
	at := metav1.NewTime(u.Time)
	cpu := func(rate, total int64) *stats.CPUStats {
		return &stats.CPUStats{Time: at, UsageNanoCores: ptr.To(uint64(rate)), UsageCoreNanoSeconds: ptr.To(uint64(total))}
	}
	mem := func(n int64) *stats.MemoryStats {
		return &stats.MemoryStats{Time: at, WorkingSetBytes: ptr.To(uint64(n)), UsageBytes: ptr.To(uint64(n)), RSSBytes: ptr.To(uint64(n))}
	}
	out := stats.Summary{Node: stats.NodeStats{
		NodeName: u.Node, StartTime: metav1.NewTime(b.started), CPU: cpu(u.NanoCores, u.CPUNanos), Memory: mem(u.Memory),
		Fs: &stats.FsStats{Time: at, CapacityBytes: ptr.To(uint64(nodeDiskBytes)), UsedBytes: ptr.To(uint64(disk))},
	}, Pods: []stats.PodStats{}}
	for _, p := range u.Pods {
		ps := stats.PodStats{PodRef: stats.PodReference{Name: p.Name, Namespace: p.Namespace, UID: p.UID}}
		var rate, total, ram int64
		for _, c := range p.Containers {
			ps.Containers = append(ps.Containers, stats.ContainerStats{Name: c.Name, StartTime: metav1.NewTime(c.Started), CPU: cpu(c.NanoCores, c.CPUNanos), Memory: mem(c.Memory)})
			rate, total, ram = rate+c.NanoCores, total+c.CPUNanos, ram+c.Memory
			if ps.StartTime.IsZero() || c.Started.Before(ps.StartTime.Time) {
				ps.StartTime = metav1.NewTime(c.Started)
			}
		}
		ps.CPU, ps.Memory = cpu(rate, total), mem(ram)
		out.Pods = append(out.Pods, ps)
	}
	writeJSON(rw, out)
}

// serveResourceMetrics is what a metrics server scrapes.
func (b *boot) serveResourceMetrics(rw http.ResponseWriter, r *http.Request) {
	u, _ := b.usage()
	ms := u.Time.UnixMilli()
	var s strings.Builder
	s.WriteString("# TYPE container_cpu_usage_seconds_total counter\n")
	for _, p := range u.Pods {
		for _, c := range p.Containers {
			fmt.Fprintf(&s, "container_cpu_usage_seconds_total{container=%q,namespace=%q,pod=%q} %g %d\n", c.Name, p.Namespace, p.Name, float64(c.CPUNanos)/1e9, ms)
		}
	}
	s.WriteString("# TYPE container_memory_working_set_bytes gauge\n")
	for _, p := range u.Pods {
		for _, c := range p.Containers {
			fmt.Fprintf(&s, "container_memory_working_set_bytes{container=%q,namespace=%q,pod=%q} %d %d\n", c.Name, p.Namespace, p.Name, c.Memory, ms)
		}
	}
	fmt.Fprintf(&s, "# TYPE node_cpu_usage_seconds_total counter\nnode_cpu_usage_seconds_total %g %d\n", float64(u.CPUNanos)/1e9, ms)
	fmt.Fprintf(&s, "# TYPE node_memory_working_set_bytes gauge\nnode_memory_working_set_bytes %d %d\n", u.Memory, ms)
	rw.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	fmt.Fprint(rw, s.String())
}

func (b *boot) serveMetrics(rw http.ResponseWriter, r *http.Request) {
	pods, containers := 0, 0
	for _, w := range b.all() {
		w.mu.Lock()
		n := 0
		for _, s := range w.slots {
			if s.running() {
				n++
			}
		}
		if n > 0 {
			pods++
		}
		containers += n
		w.mu.Unlock()
	}
	rw.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	fmt.Fprintf(rw, "# TYPE kubelet_running_pods gauge\nkubelet_running_pods %d\n# TYPE kubelet_running_containers gauge\nkubelet_running_containers{container_state=\"running\"} %d\n# TYPE kubelet_node_name gauge\nkubelet_node_name{node=%q} 1\n", pods, containers, b.k.cfg.Name)
}
