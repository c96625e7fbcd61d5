// Package course reads courses from a file system: course.yaml, level.yaml,
// quiz.yaml, lesson Markdown and manifests. It names every fault with file and
// line. It never talks to a cluster and knows nothing of learners.
package course

import (
	"fmt"
	"io/fs"
	"strings"
	"sync/atomic"
	"time"

	"kubistro/internal/checker"
	"kubistro/internal/lab"
)

// Library is all courses. Courses are immutable; Replace puts a new set in their place.
// It is safe for concurrent use once it is built.
type Library struct {
	Courses []*Course // to begin with; readers ask All

	now atomic.Pointer[[]*Course] // instead of Courses, once they were replaced
}

// All lists the courses as they are now.
func (l *Library) All() []*Course {
	if now := l.now.Load(); now != nil {
		return *now
	}
	return l.Courses
}

// Replace puts other courses in the place of all. Those who hold a former one keep it.
func (l *Library) Replace(courses []*Course) { l.now.Store(&courses) }

// Course is a series of levels on one kind of cluster.
type Course struct {
	ID      string // the folder's name
	Title   lab.Text
	Summary lab.Text
	Place   int // in the list of courses, from 1; 0: behind those that have one
	Spec    lab.ClusterSpec
	Cast    []Person
	Levels  []*Level
	// Glossary is the terms that the course's lessons link to; courses share them.
	Glossary []*Term
}

// Person is somebody of the story who speaks in asides.
type Person struct {
	ID   string
	Name lab.Text
	Role lab.Text // who that is in Kubernetes
}

// Level is one chapter with its exercises and quiz.
type Level struct {
	Course  *Course
	ID      string // the folder's number: "1"
	Number  int
	Title   lab.Text
	Summary lab.Text
	Minutes int
	// Coming: announced, not there yet. Only ID, Number, Title and Summary are set.
	Coming bool
	// Needs are the driver's capabilities that the level can't do without (cluster.Capability).
	Needs []string
	// Cluster is the shape of the level's cluster; nil: the course's. See Shape.
	Cluster *lab.ClusterSpec
	// Panels are the parts of the page that do something to the cluster from outside, of those below.
	Panels    []string
	Lesson    map[lab.Lang]*Document
	Exercises []*Exercise
	Quiz      []*Question
	Files     fs.FS // the level's folder: paths of manifests are relative to it
}

// Shape is the shape of the cluster that the level wants.
func (l *Level) Shape() lab.ClusterSpec {
	if l.Cluster != nil {
		return *l.Cluster
	}
	return l.Course.Spec
}

// Panels of the page, and the capability of the driver (cluster.Capability) that each needs.
const (
	PanelKitchens = "kitchens" // kitchen-power, and kitchens to open and close them
	PanelLoops    = "loops"    // control-loops
	PanelClock    = "clock"    // clock
	PanelEtcd     = "etcd"     // etcd
)

// Panels lists all panels.
func Panels() []string { return []string{PanelKitchens, PanelLoops, PanelClock, PanelEtcd} }

// Exercise is a task on the cluster.
type Exercise struct {
	Level  *Level
	ID     string // unique within the course, a slug
	Letter string // a, b, c ... within the level
	Title  lab.Text
	Task   lab.Text // Markdown; TaskHTML is its rendered form
	// TaskHTML is safe HTML.
	TaskHTML lab.Text
	// Needs are the exercises from whose end this one goes on: they come before it in the course.
	Needs []*Exercise
	// Fresh: the start tidies up what former exercises left.
	Fresh bool
	// Setup are manifests (paths in Level.Files) that make the start state,
	// applied in this order by the lab before the learner begins.
	Setup []string
	// Ready says when the start state has been reached after Setup; nil: at once.
	Ready *checker.Check
	// Inject are manifests of a fault, applied when Ready holds; Shows says when it shows, nil: at once.
	Inject []string
	Shows  *checker.Check
	// Home are the control loops that are sent home when the start state has been reached.
	Home []string
	// Files are placed in the learner's home when the exercise starts or is reset, by path.
	Files  map[string][]byte
	Checks []*checker.Check
	// Guests come steadily while the exercise is being worked on, by the name of their variable.
	Guests map[string]checker.GuestSpec
	Hints  []Hint
	// Settle is how long verification waits at most for the checks' results after a script.
	Settle    time.Duration
	Solutions []Solution
	Wrong     []Wrong
}

// Hint is one piece of help.
type Hint struct {
	Text lab.Text // Markdown
	HTML lab.Text // safe HTML
	// When says whether the hint fits what is wrong now; nil: always. A learner
	// who asks gets the first hint not opened yet whose When holds.
	When *checker.Check
}

// Solution is a way to do an exercise.
type Solution struct {
	Title  lab.Text
	Files  map[string][]byte // written to the home before the script runs
	Script string            // shell lines as typed in the terminal
	// Answers are typed answers by check id, given after the script; see AnswerCommand.
	Answers map[string]string
}

// AnswerCommand is the command of an answer of the form $(command): what the learner
// would read off the cluster and type, which no author can know.
func AnswerCommand(answer string) (command string, ok bool) {
	command, ok = strings.CutPrefix(strings.TrimSpace(answer), "$(")
	if !ok || !strings.HasSuffix(command, ")") {
		return "", false
	}
	return strings.TrimSuffix(command, ")"), true
}

// Wrong is an attempt that must not pass.
type Wrong struct {
	Title   string // for the author
	Files   map[string][]byte
	Script  string
	Answers map[string]string
	Check   string // the check that must be not met after it
	Message string // a part of its English message
}

// QuestionKind is how a question is answered.
type QuestionKind string

// The kinds of questions, and what an answer to each is (Question.Valid).
const (
	OneOf     QuestionKind = "one"     // the id of an option
	SeveralOf QuestionKind = "several" // the ids of all right ones and no other
	Order     QuestionKind = "order"   // all ids in the right order
	Match     QuestionKind = "match"   // ID=ID for each option: whose pair belongs to it
	Truth     QuestionKind = "truth"   // "true" or "false", and the id of the reason
	Typed     QuestionKind = "type"    // the text that was typed
	InCluster QuestionKind = "cluster" // the text that was typed, judged by the learner's cluster
)

// Question is a quiz question.
type Question struct {
	ID    string // unique within the course
	Kind  QuestionKind
	Topic string // a slug; may be empty
	// Shown names what shows that the question is true: exercises of the course, or Go tests.
	Shown []string
	Text  lab.Text // Markdown
	HTML  lab.Text // safe HTML
	// Options in the author's order, which tells the right one: show Shuffled. Of kind truth
	// they are the reasons, of kind type the answers that have an explanation of their own.
	Options []Option
	Is      bool // kind truth: the claim is true
	// Otherwise is safe HTML for an answer of kind type that is none of the options.
	Otherwise lab.Text
	// Check judges kind cluster; its messages explain.
	Check *checker.Check
}

// Option is an answer to choose, to match or to put in order.
type Option struct {
	ID      string
	Text    lab.Text // Markdown
	HTML    lab.Text // safe HTML, inline
	Pair    lab.Text // kind match: plain text of what belongs to it
	Accept  []string // kind type: spellings
	Why     lab.Text // why it is right or wrong; for kind order: why it comes here
	WhyHTML lab.Text // safe HTML, inline
	Right   bool     // always true for kinds order and match
}

// Document is a lesson in one language, cut into sections.
type Document struct {
	Lang     lab.Lang
	Title    string
	Sections []Section
	Terms    []string // ids of the glossary's terms, as the lesson uses them first
}

// Section is what stands under one heading of level 2 (the first section may have none).
// Both languages have the same section ids in the same order.
type Section struct {
	ID     string
	Title  string // plain text
	Blocks []Block
}

// BlockKind tells what a block is.
type BlockKind string

// The kinds of blocks, and the fields of Block that each sets.
const (
	BlockHTML     BlockKind = "html"     // HTML
	BlockCommand  BlockKind = "command"  // Commands
	BlockOutput   BlockKind = "output"   // Lines: what a command prints, explained line by line
	BlockManifest BlockKind = "manifest" // Path, Text: a manifest to open in the editor
	BlockExercise BlockKind = "exercise" // Exercise
	BlockQuiz     BlockKind = "quiz"     // Questions
	BlockAside    BlockKind = "aside"    // Speaker (nil: the narrator), HTML
	BlockDiagram  BlockKind = "diagram"  // Text: monospaced drawing, HTML: caption that also describes it
)

// Block is one piece of a lesson.
type Block struct {
	ID   string // the same in both languages: SECTION-N
	Kind BlockKind
	// Mode says what verification is to expect: of a command block ModeFails or ModeEndless,
	// of an output block ModeExample; empty: what one would think.
	Mode string
	// HTML is safe HTML. Live values stand in it as
	// <span class="js-live" data-live-want="..." data-live-...>FALLBACK</span>, see Live.
	HTML      string
	Commands  []Command
	Lines     []OutputLine
	Path      string
	Text      string
	Exercise  *Exercise
	Questions []*Question
	Speaker   *Person
}

// The modes of blocks.
const (
	ModeFails   = "fails"   // the last command ends with an error, as the text says
	ModeEndless = "endless" // the commands go on until Ctrl-C
	ModeExample = "example" // the output isn't compared with that of the commands above
)

// Command is one line that a run button types into the terminal.
type Command struct{ Parts []Part }

// Part is a piece of a command: plain text, or a value taken from the live cluster when the button is pressed.
type Part struct {
	Text string // for a live part: what stands there while the cluster has no such object
	Live *Live
}

// String is the command with the fallbacks of its live parts.
func (c Command) String() string {
	var b strings.Builder
	for _, p := range c.Parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

// OutputLine is a line of a command's output with an explanation, either may be empty.
type OutputLine struct {
	Text string
	Note string // plain text
}

// Live is a value of the live cluster: "newest Pod of deployment/grill",
// "ip of oldest Pod with station=grill", "count of Pods with station=grill".
type Live struct {
	Source   string // as written
	Want     string // name, ip, node, status, restarts, count
	Pick     string // newest, oldest; empty for count
	Kind     string // Pod, ReplicaSet, ...
	Owner    string // deployment/grill: owned by it, directly or through a ReplicaSet; may be empty
	Labels   string // station=grill; may be empty
	Fallback string
}

// Repository is an image name that the pantry knows, with its tags.
type Repository struct {
	Name string // docker.io/library/nginx, or as in pantry.Repository
	Tags []string
}

// Fault is something wrong in a course. Line counts from 1; 0 means the file as a whole.
type Fault struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Message string `json:"message"`
}

func (f *Fault) Error() string { return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Message) }

// Faults is the error of Load: all that is wrong, sorted by file and line.
type Faults []Fault

func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i := range f {
		lines[i] = f[i].Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives the single faults to errors.As.
func (f Faults) Unwrap() []error {
	out := make([]error, len(f))
	for i := range f {
		out[i] = &f[i]
	}
	return out
}
