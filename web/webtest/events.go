package webtest

import (
	"encoding/json"
	"time"

	"kubistro/internal/lab"
)

// Add numbers an event, keeps it and sends it; it returns the number.
func (s *Session) Add(e lab.Event) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.add(e)
}

// add is Add; s.mu is held.
func (s *Session) add(e lab.Event) uint64 {
	e.N = uint64(len(s.events)) + 1
	if e.Time.IsZero() {
		e.Time = time.Now().UTC()
	}
	s.events = append(s.events, e)
	close(s.more)
	s.more = make(chan struct{})
	return e.N
}

func nameOf(r lab.ObjectRef) string { return r.Kind + "/" + r.Namespace + "/" + r.Name }

// Put adds or changes an object with an object event; cause 0 is none.
func (s *Session) Put(o lab.ObjectState, actor string, cause uint64) uint64 {
	s.mu.Lock()
	_, there := s.objects[nameOf(o.Ref)]
	s.objects[nameOf(o.Ref)] = o
	s.mu.Unlock()
	state, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	verb := "add"
	if there {
		verb = "update"
	}
	return s.Add(lab.Event{Type: lab.EventObject, Actor: actor, Verb: verb, Object: o.Ref, Cause: causeOf(cause), State: state})
}

// Remove takes an object away with an object event.
func (s *Session) Remove(r lab.ObjectRef, actor string, cause uint64) uint64 {
	s.mu.Lock()
	delete(s.objects, nameOf(r))
	s.mu.Unlock()
	return s.Add(lab.Event{Type: lab.EventObject, Actor: actor, Verb: "remove", Object: r, Cause: causeOf(cause)})
}

// Write adds the audit event of a write.
func (s *Session) Write(actor, verb string, r lab.ObjectRef, cause uint64) uint64 {
	return s.Add(lab.Event{Type: lab.EventAudit, Actor: actor, Verb: verb, Object: r, Cause: causeOf(cause)})
}

func causeOf(n uint64) *uint64 {
	if n == 0 {
		return nil
	}
	return &n
}

// Ref names an object in the namespace default, nodes without.
func Ref(kind, name string) lab.ObjectRef {
	r := lab.ObjectRef{Kind: kind, Namespace: "default", Name: name, UID: kind + "-" + name}
	if kind == "Node" {
		r.Namespace = ""
	}
	return r
}

// Restaurant fills a session with nodes, a Deployment with three Pods and a Service.
func (s *Session) Restaurant() {
	node := func(name string) lab.ObjectState {
		return lab.ObjectState{Ref: Ref("Node", name), CPU: "2", Memory: "2Gi", Status: "Ready", IP: "172.18.0.2", Created: time.Now()}
	}
	for _, n := range []string{"office", "kitchen-1", "kitchen-2", "kitchen-3"} {
		s.Put(node(n), "", 0)
	}
	write := s.Write("learner", "create", Ref("Deployment", "grill"), 0)
	d := lab.ObjectState{Ref: Ref("Deployment", "grill"), Desired: 3, Images: []string{"grill-cook:1.4"}, Revision: "1", Labels: map[string]string{"station": "grill"}, Selector: map[string]string{"station": "grill"}, Created: time.Now()}
	s.Put(d, "learner", write)
	team := s.Write("deployment-controller", "create", Ref("ReplicaSet", "grill-5d7c9f8b6"), write)
	rs := lab.ObjectState{Ref: Ref("ReplicaSet", "grill-5d7c9f8b6"), Owner: ref(d.Ref), Desired: 3, Revision: "1", Images: d.Images, Created: time.Now()}
	s.Put(rs, "deployment-controller", team)
	for i, part := range []string{"x2k9q", "b7m4z", "p5t8w"} {
		pod := Ref("Pod", "grill-5d7c9f8b6-"+part)
		hired := s.Write("replicaset-controller", "create", pod, team)
		p := lab.ObjectState{Ref: pod, Owner: ref(rs.Ref), Labels: d.Labels, Status: "Pending", Containers: 1, Images: d.Images, Created: time.Now()}
		s.Put(p, "replicaset-controller", hired)
		kitchen := "kitchen-" + string(rune('1'+i))
		bound := s.Write("kube-scheduler", "bind", pod, hired)
		p.Node, p.Status = kitchen, "ContainerCreating"
		s.Put(p, "kube-scheduler", bound)
		s.Add(lab.Event{Type: lab.EventEvent, Actor: "kubelet/" + kitchen, Verb: "add", Object: pod, Reason: "Started", Message: "Started container grill", Cause: causeOf(bound)})
		p.Status, p.Ready, p.IP = "Running", 1, "10.244."+string(rune('1'+i))+".7"
		s.Put(p, "kubelet/"+kitchen, bound)
	}
	rs.Actual, rs.Ready, rs.Available = 3, 3, 3
	s.Put(rs, "replicaset-controller", team)
	d.Actual, d.Ready, d.Updated, d.Available = 3, 3, 3, 3
	s.Put(d, "deployment-controller", team)
	svc := lab.ObjectState{Ref: Ref("Service", "grill"), ClusterIP: "10.96.41.7", Type: "ClusterIP", Ports: []string{"80/TCP"}, Selector: d.Labels, Created: time.Now()}
	opened := s.Write("learner", "create", svc.Ref, 0)
	s.Put(svc, "learner", opened)
	s.Put(lab.ObjectState{Ref: Ref("EndpointSlice", "grill-k2x8v"), Service: "grill", Endpoints: []lab.Endpoint{
		{IP: "10.244.1.7", Ready: true}, {IP: "10.244.2.7", Ready: true}, {IP: "10.244.3.7", Ready: false},
	}}, "endpointslice-controller", opened)
}

// Trouble adds what goes wrong: a crash loop, a missing image, a Pod without room, a dark kitchen.
func (s *Session) Trouble() {
	image := []string{"grill-cook:9.9"}
	d := lab.ObjectState{Ref: Ref("Deployment", "grill"), Desired: 3, Actual: 4, Ready: 3, Updated: 1, Available: 3, Images: image, Revision: "2", Labels: map[string]string{"station": "grill"}}
	write := s.Write("learner", "patch", d.Ref, 0)
	s.Put(d, "learner", write)
	rs := lab.ObjectState{Ref: Ref("ReplicaSet", "grill-7f9b5c4d8"), Owner: ref(d.Ref), Desired: 1, Actual: 1, Revision: "2", Images: image}
	team := s.Write("deployment-controller", "create", rs.Ref, write)
	s.Put(rs, "deployment-controller", team)
	pod := lab.ObjectState{Ref: Ref("Pod", "grill-7f9b5c4d8-q8n2c"), Owner: ref(rs.Ref), Labels: d.Labels, Node: "kitchen-1", Status: "ImagePullBackOff", Containers: 1, Images: image, Created: time.Now()}
	s.Put(pod, "kubelet/kitchen-1", team)
	s.Add(lab.Event{Type: lab.EventEvent, Actor: "kubelet/kitchen-1", Verb: "add", Object: pod.Ref, Reason: "Failed", Warning: true, Message: `Failed to pull image "grill-cook:9.9": not found`, Cause: causeOf(team)})
	s.Put(lab.ObjectState{Ref: Ref("Pod", "soup"), Node: "kitchen-3", Status: "CrashLoopBackOff", Containers: 1, Restarts: 4, IP: "10.244.3.9", Images: []string{"soup-cook:1.0"}}, "kubelet/kitchen-3", 0)
	s.Put(lab.ObjectState{Ref: Ref("Pod", "banquet"), Status: "Pending", Containers: 1, Images: []string{"grill-cook:1.4"}}, "learner", 0)
	s.Put(lab.ObjectState{Ref: Ref("Node", "kitchen-2"), CPU: "2", Memory: "2Gi", Status: "NotReady", Taints: []string{"node.kubernetes.io/unreachable:NoExecute"}}, "node-controller", 0)
}

func ref(r lab.ObjectRef) *lab.ObjectRef { return &r }
