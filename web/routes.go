package web

import (
	"net/http"

	"github.com/go-chi/chi/v5"
)

// kind is what a route's handler needs before it runs.
type kind int

const (
	page   kind = iota // a learner and a page for errors
	call               // a learner, same origin, a body limit and the request limit
	heavy              // like call, and the limit for what starts work on a cluster
	stream             // like call, and one of the learner's open connections
)

// route is one line of the route table.
type route struct {
	method  string
	pattern string
	kind    kind
	handler handler
}

// proxyPrefix is where an outside kubectl reaches the clusters.
const proxyPrefix = "/k8s/"

// table lists every route that a learner's browser uses.
func (s *Server) table() []route {
	const session = "/api/v1/sessions/{session}"
	const level = "/api/v1/courses/{course}/levels/{level}"
	routes := []route{
		{"GET", "/", page, s.home},
		{"GET", "/courses/{course}", page, s.course},
		{"GET", "/courses/{course}/{level}", page, s.level},
		{"GET", "/quizzes", page, s.quizzes},
		{"GET", "/glossary", page, s.glossary},

		{"PUT", "/api/v1/preferences", call, s.setTheme},
		{"GET", "/api/v1/courses", call, s.listCourses},
		{"GET", "/api/v1/courses/{course}/progress", call, s.progress},
		{"GET", level + "/quiz", call, s.quiz},
		{"PUT", level + "/quiz/{question}", call, s.answerQuestion},
		{"DELETE", level + "/quiz", call, s.clearQuiz},
		{"GET", level + "/files/*", call, s.lessonFile},
		{"GET", "/api/v1/quizzes", call, s.practice},
		{"POST", "/api/v1/quizzes/answers", call, s.practiceAnswers},

		{"POST", "/api/v1/sessions", heavy, s.openSession},
		{"GET", "/api/v1/sessions", call, s.listSessions},
		{"GET", session, call, s.getSession},
		{"DELETE", session, heavy, s.endSession},
		{"POST", session + "/reset", heavy, s.resetSession},
		{"POST", session + "/retry", heavy, s.retrySession},
		{"POST", session + "/wake", heavy, s.wakeSession},
		{"POST", session + "/touch", call, s.touchSession},
		{"GET", session + "/operations/{operation}", call, s.getOperation},
		{"GET", session + "/kubeconfig", heavy, s.kubeconfig},
		{"DELETE", session + "/kubeconfig", call, s.revokeKubeconfigs},
		{"GET", session + "/record", call, s.record},

		{"GET", session + "/kitchens", call, s.listKitchens},
		{"POST", session + "/kitchens", heavy, s.addKitchen},
		{"PUT", session + "/kitchens/{kitchen}", heavy, s.setKitchen},
		{"DELETE", session + "/kitchens/{kitchen}", heavy, s.removeKitchen},
		{"GET", session + "/loops", call, s.listLoops},
		{"PUT", session + "/loops", heavy, s.setLoop},
		{"GET", session + "/clock", call, s.getClock},
		{"PUT", session + "/clock", heavy, s.setClock},
		{"GET", session + "/etcd", call, s.listEtcd},
		{"GET", session + "/etcd/value", call, s.etcdValue},
		{"GET", session + "/encryption", call, s.getEncryption},
		{"PUT", session + "/encryption", heavy, s.setEncryption},

		{"GET", session + "/exercises", call, s.listExercises},
		{"POST", session + "/exercises/{exercise}/start", heavy, s.startExercise},
		{"POST", session + "/exercises/{exercise}/check", call, s.checkExercise},
		{"POST", session + "/exercises/{exercise}/hint", call, s.hintExercise},
		{"POST", session + "/exercises/{exercise}/reset", heavy, s.resetExercise},
		{"POST", session + "/exercises/{exercise}/solve", heavy, s.solveExercise},
		{"PUT", session + "/exercises/{exercise}/answers/{check}", call, s.answerCheck},

		{"GET", session + "/files", call, s.listFiles},
		{"GET", session + "/files/*", call, s.readFile},
		{"PUT", session + "/files/*", call, s.writeFile},
		{"DELETE", session + "/files/*", call, s.deleteFile},
		{"GET", session + "/edits", call, s.listEdits},
		{"POST", session + "/edits/{edit}", call, s.finishEdit},

		{"GET", session + "/terminals", call, s.listTerminals},
		{"DELETE", session + "/terminals/{tab}", call, s.closeTerminal},
		{"GET", session + "/terminal", stream, s.terminal},
		{"GET", session + "/events", stream, s.events},
	}
	if s.Preview != nil {
		routes = append(routes, route{"GET", "/api/v1/preview", stream, s.preview})
	}
	return routes
}

// Route is a method and pattern that the server answers.
type Route struct{ Method, Pattern string }

// Routes lists the routes of pages and API, for tests and documentation.
func (s *Server) Routes() []Route {
	var out []Route
	for _, t := range s.table() {
		out = append(out, Route{t.method, t.pattern})
	}
	return out
}

func (s *Server) routes() http.Handler {
	r := chi.NewRouter()
	r.Use(s.metrics.observe, s.patient, s.security, s.knownHost)
	for _, t := range s.table() {
		r.Method(t.method, t.pattern, s.adapt(t))
	}
	r.Get("/healthz", s.healthz)
	r.Get("/readyz", s.readyz)
	r.Method("GET", "/metrics", s.metrics.handler())
	r.Method("GET", "/assets/*", s.assets)
	r.Get(worker, s.quizWorker)
	r.Get("/favicon.ico", s.favicon)
	r.With(sandboxed).Handle(proxyPrefix+"*", s.Lab.KubernetesProxy())
	r.NotFound(s.notFound)
	r.MethodNotAllowed(s.wrongMethod)
	return r
}

// adapt puts what a route's kind needs around its handler.
func (s *Server) adapt(t route) http.Handler {
	switch t.kind {
	case page:
		return s.page(s.withLearner(t.handler))
	case heavy:
		return s.api(s.guarded(s.withLearner(s.heavy(t.handler))))
	case stream:
		return s.api(s.guarded(s.withLearner(s.held(t.handler))))
	}
	return s.api(s.guarded(s.withLearner(t.handler)))
}

// guarded refuses what comes from another site, too often or in too large a body.
func (s *Server) guarded(next handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := sameOrigin(r); err != nil {
			return err
		}
		who := clientAddress(r)
		if id, known := cookieLearner(r); known {
			who = string(id)
		}
		if !s.limiter.allow("call", who, s.Limits.Requests, s.Limits.RequestBurst) {
			return errTooFast
		}
		r.Body = http.MaxBytesReader(w, r.Body, s.Limits.FileBody)
		return next(w, r)
	}
}

func (s *Server) heavy(next handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if !s.limiter.allow("heavy", string(learnerOf(r)), s.Limits.Heavy, s.Limits.HeavyBurst) {
			return errTooFast
		}
		return next(w, r)
	}
}

// held counts a connection that stays open.
func (s *Server) held(next handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		release, ok := s.limiter.socket(learnerOf(r))
		if !ok {
			return errTooManySockets
		}
		defer release()
		s.metrics.sockets.Inc()
		defer s.metrics.sockets.Dec()
		return next(w, r)
	}
}
