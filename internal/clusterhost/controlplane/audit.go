package controlplane

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
	auditpolicy "k8s.io/apiserver/pkg/audit/policy"

	"kubistro/internal/lab"
)

// auditKept is how many of the newest entries are kept for readers.
const auditKept = 4096

// auditTrail is the API server's audit backend: it reduces events to lab.AuditEntry
// and keeps the newest ones. It never blocks the API server.
type auditTrail struct {
	kinds *kindIndex

	mu   sync.Mutex
	ring []lab.AuditEntry // entry n is at n % auditKept
	last uint64
	more chan struct{} // closed and replaced when there is a new entry
}

var _ audit.Backend = (*auditTrail)(nil)

func newAuditTrail(kinds *kindIndex) *auditTrail {
	return &auditTrail{kinds: kinds, ring: make([]lab.AuditEntry, auditKept), more: make(chan struct{})}
}

// since returns the kept entries with numbers above after, at most max, and a
// channel that is closed when there are more than those that exist now.
func (t *auditTrail) since(after uint64, max int) ([]lab.AuditEntry, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := after + 1
	if t.last > auditKept && first <= t.last-auditKept {
		first = t.last - auditKept + 1
	}
	if first > t.last {
		return nil, t.more
	}
	n := min(uint64(max), t.last-first+1)
	out := make([]lab.AuditEntry, 0, n)
	for i := first; i < first+n; i++ {
		out = append(out, t.ring[i%auditKept])
	}
	return out, t.more
}

// ProcessEvents takes finished requests from the API server.
func (t *auditTrail) ProcessEvents(events ...*auditinternal.Event) bool {
	for _, e := range events {
		entry, ok := t.reduce(e)
		if !ok {
			continue
		}
		t.mu.Lock()
		t.last++
		entry.N = t.last
		t.ring[entry.N%auditKept] = entry
		close(t.more)
		t.more = make(chan struct{})
		t.mu.Unlock()
	}
	return true
}

// Run, Shutdown and String complete audit.Backend.
func (t *auditTrail) Run(<-chan struct{}) error { return nil }
func (t *auditTrail) Shutdown()                 {}
func (t *auditTrail) String() string            { return "kubistro" }

// reduce makes an entry of an event; false for what changed nothing.
func (t *auditTrail) reduce(e *auditinternal.Event) (lab.AuditEntry, bool) {
	if e.ObjectRef == nil || e.ResponseStatus == nil {
		return lab.AuditEntry{}, false
	}
	entered := entersContainer(e.ObjectRef)
	if code := e.ResponseStatus.Code; !(entered && code == http.StatusSwitchingProtocols) && (code < 200 || code > 299) {
		return lab.AuditEntry{}, false
	}
	if strings.Contains(e.RequestURI, "dryRun=") {
		return lab.AuditEntry{}, false
	}
	o := e.ObjectRef
	user := e.User.Username
	if e.ImpersonatedUser != nil {
		user = e.ImpersonatedUser.Username
	}
	out := lab.AuditEntry{
		Time: e.StageTimestamp.Time, User: user, UserAgent: e.UserAgent, Verb: e.Verb,
		Resource: o.Resource, APIGroup: o.APIGroup, Subresource: o.Subresource, Code: int(e.ResponseStatus.Code),
		Object: lab.ObjectRef{Namespace: o.Namespace, Name: o.Name, UID: string(o.UID)},
	}
	if entered {
		out.Session, out.Ended, out.Command = string(e.AuditID), e.Stage == auditinternal.StageResponseComplete, lab.ExecCommand(e.RequestURI)
	}
	if e.ResponseObject != nil && e.Verb == "create" && o.Subresource == "" {
		t.learn(e.ResponseObject.Raw, &out)
	}
	if out.Object.Kind == "" {
		out.Object.Kind = t.kinds.kind(o.APIGroup, o.Resource)
	}
	return out, true
}

// entersContainer says whether a request opens a session in a container: what a
// learner does there can end it or change its health.
func entersContainer(o *auditinternal.ObjectReference) bool {
	return o.Resource == "pods" && o.APIGroup == "" && (o.Subresource == "exec" || o.Subresource == "attach")
}

// learn takes from the response of a create what the request doesn't say: the
// name that was generated, the uid, the owner and the kind.
func (t *auditTrail) learn(raw []byte, out *lab.AuditEntry) {
	var m metav1.PartialObjectMetadata
	if json.Unmarshal(raw, &m) != nil || m.Name == "" {
		return
	}
	out.Object.Name, out.Object.UID, out.Object.Kind = m.Name, string(m.UID), m.Kind
	if c := metav1.GetControllerOf(&m); c != nil {
		out.Owner = &lab.ObjectRef{Kind: c.Kind, Namespace: m.Namespace, Name: c.Name, UID: string(c.UID)}
	}
	if out.Resource == "customresourcedefinitions" {
		t.kinds.learn(raw)
	}
}

// auditRules is what the API server is to log: writes, without those that are
// only the cluster's own heartbeat or change no object.
func auditRules() audit.PolicyRuleEvaluator {
	group := func(g string, resources ...string) []auditinternal.GroupResources {
		return []auditinternal.GroupResources{{Group: g, Resources: resources}}
	}
	begun := []auditinternal.Stage{auditinternal.StageResponseStarted}
	rules := []auditinternal.PolicyRule{
		{Level: auditinternal.LevelNone, Resources: append(group("coordination.k8s.io"),
			auditinternal.GroupResources{Group: "events.k8s.io"},
			auditinternal.GroupResources{Group: "authentication.k8s.io"},
			auditinternal.GroupResources{Group: "authorization.k8s.io"},
			auditinternal.GroupResources{Resources: []string{
				"events", "serviceaccounts/token", "pods/portforward",
				"pods/proxy", "services/proxy", "nodes/proxy",
			}})},
		{Level: auditinternal.LevelNone, UserGroups: []string{"system:nodes"}, Resources: group("", "nodes", "nodes/status")},
		{Level: auditinternal.LevelMetadata, Verbs: []string{"create"}, Resources: group("", "secrets", "configmaps", "serviceaccounts")},
		{Level: auditinternal.LevelMetadata, Verbs: []string{"create"}, Resources: group("", "pods/binding", "pods/eviction")},
		{Level: auditinternal.LevelRequestResponse, Verbs: []string{"create"}},
		{Level: auditinternal.LevelMetadata, Verbs: []string{"update", "patch", "delete", "deletecollection"}},
	}
	for i := range rules {
		rules[i].OmitStages = begun
	}
	sessions := auditinternal.PolicyRule{Level: auditinternal.LevelMetadata, Verbs: []string{"get", "create"}, Resources: group("", "pods/exec", "pods/attach")}
	return auditpolicy.NewPolicyRuleEvaluator(&auditinternal.Policy{
		OmitStages:        []auditinternal.Stage{auditinternal.StageRequestReceived},
		OmitManagedFields: true,
		Rules:             append([]auditinternal.PolicyRule{sessions}, rules...), // a session counts from its beginning, and its end
	})
}
