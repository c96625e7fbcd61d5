package controlplane

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/emicklei/go-restful/v3"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/apiserver/pkg/server/routes"
	"k8s.io/component-base/version"
	openapicommon "k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/handler3"
)

const pathOpenAPIV3 = "/openapi/v3"

// openAPI serves the OpenAPI documents of the built-in APIs and builds each when it
// is first asked for. The API server's own way builds and encodes all of them at
// its start, which takes as long as everything else together, while a learner's
// kubectl reads two or three.
type openAPI struct {
	container *restful.Container
	v2        *openapicommon.Config
	v3        *openapicommon.OpenAPIV3Config

	buildV2 func() http.Handler
	index   func() (taggedText, error) // the aggregation layer reads it every second

	mu     sync.Mutex
	groups map[string]http.Handler // by "apis/apps/v1"
}

// installOpenAPI takes the place of what SkipOpenAPIInstallation leaves out.
func installOpenAPI(s *genericapiserver.GenericAPIServer, v2 *openapicommon.Config, v3 *openapicommon.OpenAPIV3Config) {
	o := &openAPI{container: s.Handler.GoRestfulContainer, v2: v2, v3: v3, groups: map[string]http.Handler{}}
	o.buildV2 = sync.OnceValue(func() http.Handler {
		m := mux.NewPathRecorderMux("openapi-v2")
		routes.OpenAPI{Config: o.v2}.InstallV2(o.container, m)
		return m
	})
	o.index = sync.OnceValues(o.makeIndex) // what is served doesn't change once the server runs
	m := s.Handler.NonGoRestfulMux
	m.HandleFunc("/openapi/v2", func(w http.ResponseWriter, r *http.Request) { o.buildV2().ServeHTTP(w, r) })
	m.HandleFunc(pathOpenAPIV3, o.serveIndex)
	m.HandlePrefix(pathOpenAPIV3+"/", http.HandlerFunc(o.document))
}

// services are the web services by group and version, as InstallV3 names them.
func (o *openAPI) services() map[string]*restful.WebService {
	out := map[string]*restful.WebService{}
	for _, s := range o.container.RegisteredWebServices() {
		out[strings.TrimPrefix(s.RootPath(), "/")] = s
	}
	return out
}

// fingerprint stands for a document's content: the program's version decides it.
func fingerprint(name string) string {
	sum := sha256.Sum256([]byte(version.Get().String() + " " + name))
	return strings.ToUpper(hex.EncodeToString(sum[:]))
}

// taggedText is a document and the tag that stands for its content.
type taggedText struct {
	body []byte
	tag  string
}

// makeIndex lists the documents without building them.
func (o *openAPI) makeIndex() (taggedText, error) {
	list := handler3.OpenAPIV3Discovery{Paths: map[string]handler3.OpenAPIV3DiscoveryGroupVersion{}}
	for name := range o.services() {
		u := url.URL{Path: pathOpenAPIV3 + "/" + name, RawQuery: url.Values{"hash": {fingerprint(name)}}.Encode()}
		list.Paths[name] = handler3.OpenAPIV3DiscoveryGroupVersion{ServerRelativeURL: u.String()}
	}
	body, err := json.Marshal(list) // sorted, so equal lists have equal tags
	return taggedText{body, strconv.Quote(fingerprint(string(body)))}, err
}

func (o *openAPI) serveIndex(w http.ResponseWriter, r *http.Request) {
	index, err := o.index()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Etag", index.tag)
	if r.Header.Get("If-None-Match") == index.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(index.body)
}

// document serves the document of one group and version.
func (o *openAPI) document(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, pathOpenAPIV3+"/")
	h := o.group(name)
	if h == nil {
		http.NotFound(w, r)
		return
	}
	// The handler would send whoever comes with another hash than its own to that one.
	plain := *r
	plain.URL = &url.URL{Path: r.URL.Path}
	h.ServeHTTP(w, &plain)
}

// group builds the document of a group and version; nil when there is no such one.
func (o *openAPI) group(name string) http.Handler {
	o.mu.Lock()
	defer o.mu.Unlock()
	if h := o.groups[name]; h != nil {
		return h
	}
	service := o.services()[name]
	if service == nil {
		return nil
	}
	m := mux.NewPathRecorderMux("openapi-v3")
	only := restful.NewContainer().Add(service)
	routes.OpenAPI{V3Config: o.v3}.InstallV3(only, m)
	o.groups[name] = m
	return m
}
