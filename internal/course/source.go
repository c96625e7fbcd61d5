package course

import "kubistro/internal/lab"

// The structures of the YAML files. The decoder and the JSON Schema are both made from
// them: the yaml tag names a field, rule:"required" demands it, enum lists its
// values, doc describes it.

// word is a scalar with its place.
type word struct {
	Value string
	Line  int // of the text itself: for a block scalar that of its first line
}

// prose is a text in every language with its place.
type prose struct {
	lab.Text
	Line int
}

type courseFile struct {
	Title    prose         `yaml:"title" rule:"required" doc:"the course's name"`
	Summary  prose         `yaml:"summary" rule:"required" doc:"one or two sentences for the course list"`
	Place    int           `yaml:"place" doc:"where the course stands in the list of courses, from 1; left out: behind those that say"`
	Kitchens []kitchenNode `yaml:"kitchens" doc:"worker nodes; left out: three of 2 CPU and 2 GiB"`
	NoDoors  bool          `yaml:"withoutLoadBalancers" doc:"true: nobody gives Services of type LoadBalancer an address"`
	Speed    int           `yaml:"speed" doc:"how many times faster the waiting periods of the cluster pass, from 1 to 60; left out: the real ones"`
	Cast     []personNode  `yaml:"cast" doc:"who speaks in asides"`
	Levels   []levelNode   `yaml:"levels" rule:"required" doc:"all levels in order; one without a folder of its number is announced as coming"`
}

type kitchenNode struct {
	Name   word            `yaml:"name" rule:"required"`
	CPU    word            `yaml:"cpu" rule:"required" doc:"allocatable, as a Kubernetes quantity"`
	Memory word            `yaml:"memory" rule:"required"`
	Labels map[string]word `yaml:"labels"`
	Taints []word          `yaml:"taints" doc:"key=value:Effect"`

	Resources map[string]word `yaml:"resources" doc:"extended resources in whole numbers: nvidia.com/gpu: 2"`
}

// levelCluster is the shape of a level's cluster where it isn't the course's.
type levelCluster struct {
	Kitchens []kitchenNode `yaml:"kitchens" doc:"worker nodes; left out: the course's"`
	NoDoors  bool          `yaml:"withoutLoadBalancers" doc:"true: nobody gives Services of type LoadBalancer an address"`
	Speed    int           `yaml:"speed" doc:"how many times faster the waiting periods pass, from 1 to 60; left out: the course's"`
	Line     int           `yaml:"-"`
}

type personNode struct {
	ID   word  `yaml:"id" rule:"required"`
	Name prose `yaml:"name" rule:"required"`
	Role prose `yaml:"role" rule:"required" doc:"who that is in Kubernetes"`
}

type levelNode struct {
	Title   prose `yaml:"title" rule:"required"`
	Summary prose `yaml:"summary" rule:"required"`
}

type levelFile struct {
	Minutes       int            `yaml:"minutes" rule:"required" doc:"how long reading and exercises take"`
	Needs         []word         `yaml:"needs" enum:"events|audit|network|kitchen-power|kitchens|control-loops|clock|etcd|real-containers" doc:"capabilities of the driver"`
	MissingImages []word         `yaml:"missingImages" doc:"images in manifests that must not exist, because the lesson wants a failed pull"`
	Cluster       *levelCluster  `yaml:"cluster" doc:"the shape of the level's cluster; left out: the course's"`
	Panels        *[]word        `yaml:"panels" enum:"kitchens|loops|clock|etcd" doc:"what can be done from outside that the page shows; left out: all that the driver can do"`
	Exercises     []exerciseNode `yaml:"exercises" rule:"required"`
}

type exerciseNode struct {
	ID        word                   `yaml:"id" rule:"required" doc:"unique within the course"`
	Title     prose                  `yaml:"title" rule:"required"`
	Task      prose                  `yaml:"task" rule:"required" doc:"Markdown"`
	Needs     []word                 `yaml:"needs" doc:"exercises before it in the course, from whose end this one goes on"`
	Fresh     bool                   `yaml:"fresh" doc:"the start tidies up what former exercises left, as a reset does"`
	Setup     []word                 `yaml:"setup" doc:"manifests of the start state, paths in the level's folder"`
	Ready     word                   `yaml:"ready" doc:"CEL: the start state has been reached"`
	Inject    []word                 `yaml:"inject" doc:"manifests of a fault, applied when ready holds: paths in the level's folder"`
	Shows     word                   `yaml:"shows" doc:"CEL: the fault shows"`
	Home      []word                 `yaml:"home" doc:"control loops that are sent home when the start state has been reached, as lab loops -a names them"`
	Files     map[string]word        `yaml:"files" doc:"files of the learner's home: path in the home to path in the level's folder; shared/... is the folder that all courses share"`
	Objects   map[string]objectNode  `yaml:"objects" doc:"variables for live objects"`
	Requests  map[string]requestNode `yaml:"requests" doc:"variables for responses"`
	Guests    map[string]guestsNode  `yaml:"guests" doc:"variables for what steady guests meet while the exercise is being worked on"`
	Access    map[string]accessNode  `yaml:"access" doc:"variables for what somebody may do: true or false"`
	Stored    map[string]word        `yaml:"stored" doc:"variables for what etcd holds: the key"`
	Reads     map[string]word        `yaml:"reads" doc:"variables for files of the learner's home"`
	Let       []letNode              `yaml:"let" doc:"named intermediate values"`
	Checks    []checkNode            `yaml:"checks" rule:"required"`
	Hints     []hintNode             `yaml:"hints" rule:"required"`
	Solutions []solutionNode         `yaml:"solutions" rule:"required"`
	Wrong     []wrongNode            `yaml:"wrong" rule:"required"`
	Settle    word                   `yaml:"settle" doc:"how long verification waits at most for the checks, for instance 20s"`
	Line      int                    `yaml:"-"`
}

type objectNode struct {
	Kind      word `yaml:"kind" rule:"required"`
	Namespace word `yaml:"namespace" doc:"left out: default; * with labels: all"`
	Name      word `yaml:"name" doc:"one object"`
	Labels    word `yaml:"labels" doc:"label selector: the list of objects that it picks"`
	Line      int  `yaml:"-"`
}

type requestNode struct {
	URL       word            `yaml:"url" rule:"required"`
	From      word            `yaml:"from" doc:"street, pod/NAME or pods/LABELS; left out: the learner's terminal"`
	Namespace word            `yaml:"namespace" doc:"of the Pod in from"`
	Method    word            `yaml:"method"`
	Headers   map[string]word `yaml:"headers"`
	Body      word            `yaml:"body"`
	Times     int             `yaml:"times" doc:"how many are sent, 1 to 100"`
	Together  int             `yaml:"together" doc:"how many of them at once, 1 to 10"`
	Timeout   word            `yaml:"timeout"`
	Line      int             `yaml:"-"`
}

type guestsNode struct {
	URL       word            `yaml:"url" rule:"required"`
	From      word            `yaml:"from" doc:"street, pod/NAME or pods/LABELS; left out: the learner's terminal"`
	Namespace word            `yaml:"namespace" doc:"of the Pod in from"`
	Method    word            `yaml:"method"`
	Headers   map[string]word `yaml:"headers"`
	Body      word            `yaml:"body"`
	Rate      int             `yaml:"rate" rule:"required" doc:"visits a second, 1 to 20"`
	Keep      word            `yaml:"keep" doc:"how far back the list reaches, up to 5m; left out: 1m"`
	Timeout   word            `yaml:"timeout"`
	Line      int             `yaml:"-"`
}

type accessNode struct {
	User      word   `yaml:"user" rule:"required" doc:"a user's name, or system:serviceaccount:NAMESPACE:NAME"`
	Groups    []word `yaml:"groups"`
	Verb      word   `yaml:"verb" rule:"required"`
	Group     word   `yaml:"group" doc:"API group; left out: the core group"`
	Resource  word   `yaml:"resource" rule:"required" doc:"pods, or pods/log"`
	Namespace word   `yaml:"namespace" doc:"left out: default; *: all of them"`
	Name      word   `yaml:"name" doc:"one object; left out: any"`
	Line      int    `yaml:"-"`
}

type letNode struct {
	Name word `yaml:"name" rule:"required"`
	Is   word `yaml:"is" rule:"required" doc:"CEL"`
}

type checkNode struct {
	ID       word         `yaml:"id" rule:"required" doc:"unique within the exercise"`
	Title    prose        `yaml:"title" rule:"required"`
	Expect   []expectNode `yaml:"expect" rule:"required"`
	Answer   *answerNode  `yaml:"answer" doc:"the learner types an answer"`
	MustHold bool         `yaml:"mustHold" doc:"has to be met again when the exercise is completed"`
	Done     prose        `yaml:"done" doc:"shown when met; {CEL} is filled in"`
	Line     int          `yaml:"-"`
}

type expectNode struct {
	That     word  `yaml:"that" rule:"required" doc:"CEL, true or false"`
	Message  prose `yaml:"message" doc:"what is wrong; {CEL} is filled in"`
	Object   word  `yaml:"object"`
	Field    word  `yaml:"field"`
	Expected word  `yaml:"expected"`
	Found    word  `yaml:"found"`
}

type answerNode struct {
	Prompt  prose        `yaml:"prompt" rule:"required"`
	Choices []choiceNode `yaml:"choices" doc:"left out: free text"`
}

type choiceNode struct {
	Value word  `yaml:"value" rule:"required"`
	Label prose `yaml:"label" rule:"required"`
}

type hintNode struct {
	Text prose `yaml:"text" rule:"required" doc:"Markdown"`
	When word  `yaml:"when" doc:"CEL: the hint fits what is wrong now"`
}

type solutionNode struct {
	Title   prose           `yaml:"title" rule:"required"`
	Files   map[string]word `yaml:"files" doc:"written to the home first: path in the home to path in the level's folder"`
	Script  word            `yaml:"script" rule:"required" doc:"shell lines as typed in the terminal"`
	Answers map[string]word `yaml:"answers" doc:"typed answers by check; $(command) is what it prints in the terminal"`
}

type wrongNode struct {
	Title   word            `yaml:"title" rule:"required"`
	Files   map[string]word `yaml:"files"`
	Script  word            `yaml:"script" rule:"required"`
	Answers map[string]word `yaml:"answers"`
	Check   word            `yaml:"check" rule:"required" doc:"the check that must be not met"`
	Message word            `yaml:"message" rule:"required" doc:"a part of its English message"`
}

type quizFile struct {
	Questions []questionNode `yaml:"questions" rule:"required"`
}

type questionNode struct {
	ID        word                  `yaml:"id" rule:"required" doc:"unique within the course"`
	Kind      word                  `yaml:"kind" rule:"required" enum:"one|several|order|match|truth|type|cluster"`
	Text      prose                 `yaml:"text" rule:"required" doc:"Markdown; for kind truth: the claim"`
	Topic     word                  `yaml:"topic" doc:"what it is about, for the score per topic: a slug"`
	Shown     []word                `yaml:"shown" doc:"what shows that it is true: exercises of the course, or Go tests (TestName)"`
	Options   []optionNode          `yaml:"options" doc:"for kind order: in the right order; truth: the reasons; type: answers with an explanation of their own"`
	Is        word                  `yaml:"is" enum:"true|false" doc:"kind truth: what the claim is"`
	Objects   map[string]objectNode `yaml:"objects" doc:"kind cluster: variables for live objects"`
	Let       []letNode             `yaml:"let" doc:"kind cluster: named intermediate values"`
	That      word                  `yaml:"that" doc:"kind cluster: CEL with the variable answer, true for a right one"`
	Why       prose                 `yaml:"why" doc:"kind cluster: shown with a right answer; {CEL} is filled in"`
	Otherwise prose                 `yaml:"otherwise" doc:"kinds type and cluster: shown with any other answer; kind cluster: {CEL} is filled in"`
	Line      int                   `yaml:"-"`
}

type optionNode struct {
	ID     word   `yaml:"id" rule:"required"`
	Text   prose  `yaml:"text" rule:"required"`
	Pair   prose  `yaml:"pair" doc:"kind match: what belongs to it"`
	Accept []word `yaml:"accept" doc:"kind type: spellings of this answer; numbers are compared as numbers"`
	Why    prose  `yaml:"why" rule:"required" doc:"why it is right, or wrong, or comes here"`
	Right  bool   `yaml:"right"`
}

type glossaryFile struct {
	Terms []termNode `yaml:"terms" rule:"required" doc:"in the order in which they are taught"`
}

type termNode struct {
	ID       word   `yaml:"id" rule:"required" doc:"a slug, the term's place on the page"`
	Term     word   `yaml:"term" rule:"required" doc:"as Kubernetes spells it"`
	Forms    []word `yaml:"forms" rule:"required" doc:"how lessons write it, in any language; capitals matter"`
	Metaphor prose  `yaml:"metaphor" rule:"required" doc:"what it is in the restaurant"`
	Truth    prose  `yaml:"truth" rule:"required" doc:"one line without the metaphor"`
	Taught   []word `yaml:"taught" rule:"required" doc:"COURSE/LEVEL, at least one; their lessons have to use the term"`
}
