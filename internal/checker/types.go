// Package checker compiles and runs the checks of exercises. A check is a list
// of CEL expressions over live objects, HTTP requests, the record of events,
// the learner's files and typed answers. It has three results: met, not met
// (with object, field, expected and found), and unknown when something that it
// needs could not be looked at. It never writes to the cluster.
package checker

import (
	"context"
	"fmt"
	"time"

	"kubistro/internal/lab"
)

// Cluster is what a check reads of a learner's cluster.
type Cluster interface {
	// Get reads one object. The kind is a plain one (Pod, Deployment) or
	// kind.group for what isn't built in. It returns (nil, nil) only when the API
	// said NotFound for the object (or for its kind); any other failure is an error.
	Get(ctx context.Context, kind, namespace, name string) (map[string]any, error)
	// List reads the objects that a label selector picks (all when empty); namespace "" is
	// all of them.
	List(ctx context.Context, kind, namespace, labelSelector string) ([]map[string]any, error)
	// Request sends one HTTP request through the cluster's network. A
	// connection that was refused, timed out or found no such name is a Response
	// with Failure set, because a guest would have seen that too; an error means that
	// the lab itself could not try.
	Request(ctx context.Context, r Request) (Response, error)
	// Visits returns what steady guests (Spec.Guests, by name) have met since they
	// began to come, oldest first, as far as the window reaches.
	Visits(ctx context.Context, guests string) ([]Visit, error)
	// Record returns the events since the exercise was started, oldest first.
	Record(ctx context.Context) ([]lab.Event, error)
}

// Learner is what a check reads of the learner's own things.
type Learner interface {
	// Answer is what the learner typed for a check; false when nothing yet.
	Answer(ctx context.Context, check string) (string, bool)
	// File reads a file of the learner's home. Its error is fs.ErrNotExist
	// (wrapped or not) when there is no such file; any other error makes the check unknown.
	File(ctx context.Context, path string) ([]byte, error)
}

// World is everything that a check can look at. It must be safe for concurrent use.
type World interface {
	Cluster
	Inside
	Learner
}

// Request is an HTTP request that a check makes.
type Request struct {
	Method  string            // default GET
	URL     string            // http://grill/ (names as in the namespace default)
	Headers map[string]string // Host is honoured
	Body    string
	Timeout time.Duration // default 2 s
	// From is where the request comes from: "" is the learner's terminal, "street" a guest
	// outside of the cluster, "pod/NAME" that Pod, "pods/SELECTOR" the first ready Pod that
	// the labels pick. Without such a Pod nobody could try: an error that says so.
	From string
	// Namespace is that of the Pod in From; default "default".
	Namespace string
}

// Response is what came back.
type Response struct {
	Code    int
	Body    string            // at most the first 64 KiB
	Headers map[string]string // first value of each, canonical names
	// Failure is set instead of the rest when no answer came: "refused",
	// "timeout", "no such host", "no route", "reset" or "failed".
	Failure string
	By      string // who answered, where the answer says so: the name of a Pod
	Took    time.Duration
}

// Visit is one request of steady guests.
type Visit struct {
	Response
	At time.Time // when it was sent
}

// FromStreet is the From of a request by a guest outside of the cluster.
const FromStreet = "street"

// AllNamespaces as the namespace of an Object with labels means every one.
const AllNamespaces = "*"

// Object declares a variable of a check that stands for live objects: one
// object by Name, or the list of those that Labels pick.
type Object struct {
	Kind      string
	Namespace string // default "default"; of a list also AllNamespaces
	Name      string
	Labels    string // label selector; used when Name is empty (may then be empty: all of the kind)
}

// RequestSpec declares a variable that stands for the list of responses to a request.
type RequestSpec struct {
	Request
	Times    int // default 1, at most 100
	Together int // how many are under way at once; default 1, at most 10
}

// GuestSpec declares steady guests: the same request again and again for as long as the
// exercise is being worked on. Its variable is the list of their visits.
type GuestSpec struct {
	Request
	Rate int           // visits a second, 1 to 20
	Keep time.Duration // how far back the list reaches, at most MaxKeep
}

// MaxKeep is the longest window of steady guests.
const MaxKeep = 5 * time.Minute

// Let is a named intermediate value, computed once and usable below it.
type Let struct {
	Name string
	Expr string
	Line int // of Expr in its file, for Fault; 0 when unknown
}

// Expectation is one condition. Its texts may hold {CEL} placeholders; "{{" is a brace.
type Expectation struct {
	That string // CEL, must be bool
	// Message says what is wrong when That is false.
	Message lab.Text
	// Object, Field, Expected and Found describe the difference. Left empty they
	// are taken from That where it has the form `object.path == literal`.
	Object   string
	Field    string
	Expected string
	Found    string
	Line     int // of That in its file; 0 when unknown
}

// AnswerSpec makes a check ask the learner for a typed answer, available as `answer`
// (with spaces trimmed). Without an answer the check is not met.
type AnswerSpec struct {
	Prompt  lab.Text
	Choices []Choice // empty: free text
}

// Choice is an answer that can be picked instead of typed; Value is what `answer` becomes.
type Choice struct {
	Value string
	Label lab.Text
}

// Spec is the source of a check.
//
// Variables in expressions: the names of Objects, Requests (lists of maps with
// code, body, headers, failure, by, ms), Guests (the same with at, oldest first), Access (true or false),
// Stored (maps with exists, text, encrypted, provider), Files (maps with exists, text, docs) and Lets;
// `record` (list of event frames as in the JSON API) and `answer` (string).
// An object that doesn't exist is null.
type Spec struct {
	ID       string
	Title    lab.Text
	Objects  map[string]Object
	Requests map[string]RequestSpec
	Guests   map[string]GuestSpec
	Access   map[string]Access
	Stored   map[string]string // variable -> key of etcd
	Files    map[string]string // variable -> path in the learner's home
	Lets     []Let
	Expect   []Expectation
	Answer   *AnswerSpec
	// MustHold: the check has to be met again when the exercise is completed.
	// A check without it stays met once it was, until the exercise is reset.
	MustHold bool
	// Done is the message of the met check; may be empty and hold placeholders.
	Done lab.Text
}

// Fault says what is wrong in a Spec. Line and Column count from 1; Line is that of
// the file when the spec's parts carry lines, else that within the expression.
type Fault struct {
	Line, Column int
	Message      string
}

func (f *Fault) Error() string { return fmt.Sprintf("%d:%d: %s", f.Line, f.Column, f.Message) }
