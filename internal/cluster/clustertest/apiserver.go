package clustertest

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"path"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// apiServer answers for the objects of a cluster: get, list, create, update and
// delete of any path, enough for typed clients. It knows no watch.
type apiServer struct {
	pipe *pipeListener
	pods *pipeListener
	stop func()
}

func serveAPI(disk *objects) *apiServer {
	a := &apiServer{pipe: newPipe(), pods: newPipe()}
	api := &http.Server{Handler: disk}
	pods := &http.Server{Handler: http.HandlerFunc(answerAsPod)}
	var work sync.WaitGroup
	work.Go(func() { _ = api.Serve(a.pipe) })  // returns when closed
	work.Go(func() { _ = pods.Serve(a.pods) }) // the same
	a.stop = func() {
		_ = api.Close() // there is nobody to tell
		_ = pods.Close()
		work.Wait()
	}
	return a
}

func (a *apiServer) dial(ctx context.Context) (net.Conn, error) { return a.pipe.dial(ctx) }
func (a *apiServer) close()                                     { a.stop() }

// ServeHTTP answers the API server's requests.
func (o *objects) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p := path.Clean(r.URL.Path)
	var object map[string]any
	if r.Method == http.MethodPost || r.Method == http.MethodPut {
		if err := json.NewDecoder(r.Body).Decode(&object); err != nil {
			refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest)
			return
		}
	}
	var answer any
	switch r.Method {
	case http.MethodGet:
		answer = o.get(p, r.URL.Query().Get("labelSelector"))
	case http.MethodPost:
		if answer = o.create(p, object, "learner"); answer == nil {
			refuse(w, http.StatusConflict, metav1.StatusReasonAlreadyExists)
			return
		}
	case http.MethodPut:
		answer = o.update(p, object, "learner")
	case http.MethodDelete:
		answer = o.delete(p, "learner")
	default:
		refuse(w, http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed)
		return
	}
	if answer == nil {
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // who has gone doesn't want it
}

func refuse(w http.ResponseWriter, code int32, reason metav1.StatusReason) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(code))
	_ = json.NewEncoder(w).Encode(metav1.Status{ // who has gone doesn't want it
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: code, Reason: reason})
}

// pipeListener hands connections in memory to a server.
type pipeListener struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func newPipe() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
}

func (l *pipeListener) dial(ctx context.Context) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case l.conns <- far:
		return near, nil
	case <-l.done:
		return nil, errEnded
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "memory" }
func (pipeAddr) String() string  { return "memory" }
