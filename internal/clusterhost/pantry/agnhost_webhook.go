package pantry

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// admission is the part of an AdmissionReview's request that the rules look at.
type admission struct {
	UID         string
	Operation   string
	Name        string
	Resource    struct{ Group, Version, Resource string }
	SubResource string
	Object      json.RawMessage
	OldObject   json.RawMessage
}

// reviewed is what rules look at in any object.
type reviewed struct {
	Metadata struct {
		Name   string
		Labels map[string]string
	}
	Data map[string]any
	Spec struct{ Containers, InitContainers []struct{ Name string } }
	// Of PodAttachOptions.
	Stdin     bool
	Container string
}

// decision is the answer to an admission.
type decision struct {
	UID       string         `json:"uid"`
	Allowed   bool           `json:"allowed"`
	Status    map[string]any `json:"status,omitempty"`
	Patch     []byte         `json:"patch,omitempty"`
	PatchType string         `json:"patchType,omitempty"`
}

func allow() decision { return decision{Allowed: true} }

// denyBecause refuses with a message, or with a reason as some of the rules do.
func denyBecause(key, text string) decision {
	return decision{Status: map[string]any{key: text}}
}

// patch allows with a JSON patch.
func patch(op, path string, value any) decision {
	b, err := json.Marshal([]map[string]any{{"op": op, "path": path, "value": value}})
	if err != nil {
		return denyBecause("message", err.Error())
	}
	return decision{Allowed: true, Patch: b, PatchType: "JSONPatch"}
}

// rule decides on an admission; o is the new object, or the old one of a deletion.
type rule func(ctx context.Context, a *agnhost, r admission, o reviewed) decision

// webhookRules are the rules by path: test/images/agnhost/webhook.
func webhookRules(sidecar string) map[string]rule {
	return map[string]rule{
		"/always-allow-delay-5s": func(ctx context.Context, a *agnhost, _ admission, _ reviewed) decision {
			a.sleep(ctx, 5*time.Second)
			return decision{Allowed: true, Status: map[string]any{"message": "this webhook allows all requests"}}
		},
		"/always-deny": func(context.Context, *agnhost, admission, reviewed) decision {
			return denyBecause("message", "this webhook denies all requests")
		},
		"/add-label":                addLabel,
		"/pods":                     admitPod,
		"/pods/attach":              admitAttach,
		"/mutating-pods":            addInitContainer,
		"/mutating-pods-sidecar":    addSidecar(sidecar),
		"/configmaps":               admitData("the configmap contains unwanted key and value", "the configmap cannot be deleted because it contains unwanted key and value"),
		"/custom-resource":          admitData("the custom resource contains unwanted data", "the custom resource cannot be deleted because it contains unwanted key and value"),
		"/mutating-configmaps":      mutateData,
		"/mutating-custom-resource": mutateData,
		"/crd":                      admitCRD,
	}
}

func addLabel(_ context.Context, _ *agnhost, _ admission, o reviewed) decision {
	value, has := o.Metadata.Labels["added-label"]
	switch {
	case len(o.Metadata.Labels) == 0:
		return patch("add", "/metadata/labels", map[string]string{"added-label": "yes"})
	case !has:
		return patch("add", "/metadata/labels/added-label", "yes")
	case value != "yes":
		return patch("replace", "/metadata/labels/added-label", "yes")
	}
	return allow()
}

func admitPod(ctx context.Context, _ *agnhost, _ admission, o reviewed) decision {
	var why []string
	switch o.Metadata.Labels["webhook-e2e-test"] {
	case "webhook-disallow":
		why = append(why, "the pod contains unwanted label;")
	case "wait-forever":
		<-ctx.Done()
		why = append(why, "the pod response should not be sent;")
	}
	for _, c := range o.Spec.Containers {
		if strings.Contains(c.Name, "webhook-disallow") {
			why = append(why, "the pod contains unwanted container name;")
		}
	}
	if len(why) > 0 {
		return denyBecause("message", strings.Join(why, " "))
	}
	return allow()
}

func admitAttach(_ context.Context, _ *agnhost, r admission, o reviewed) decision {
	if r.Name != "to-be-attached-pod" || !o.Stdin || o.Container != "container1" {
		return allow()
	}
	return denyBecause("message", "attaching to pod 'to-be-attached-pod' is not allowed")
}

func addInitContainer(_ context.Context, _ *agnhost, _ admission, o reviewed) decision {
	const name = "webhook-added-init-container"
	if o.Metadata.Name != "webhook-to-be-mutated" || hasContainer(o.Spec.InitContainers, name) {
		return allow()
	}
	return patch("add", "/spec/initContainers", []map[string]any{{"image": "webhook-added-image", "name": name, "resources": map[string]any{}}})
}

func addSidecar(image string) rule {
	return func(_ context.Context, _ *agnhost, _ admission, o reviewed) decision {
		const name = "webhook-added-sidecar"
		switch {
		case image == "":
			return decision{Status: map[string]any{"status": "Failure", "message": "No image specified by the sidecar-image parameter", "code": 500}}
		case hasContainer(o.Spec.Containers, name):
			return allow()
		}
		return patch("add", "/spec/containers/-", map[string]any{"image": image, "name": name, "resources": map[string]any{}})
	}
}

func hasContainer(list []struct{ Name string }, name string) bool {
	for _, c := range list {
		if c.Name == name {
			return true
		}
	}
	return false
}

func admitData(unwanted, kept string) rule {
	return func(_ context.Context, _ *agnhost, r admission, o reviewed) decision {
		switch value := o.Data["webhook-e2e-test"]; {
		case value == "webhook-disallow" && (r.Operation == "CREATE" || r.Operation == "UPDATE"):
			return denyBecause("reason", unwanted)
		case value == "webhook-nondeletable" && r.Operation == "DELETE":
			return denyBecause("reason", kept)
		}
		return allow()
	}
}

func mutateData(_ context.Context, _ *agnhost, _ admission, o reviewed) decision {
	switch {
	case o.Data["mutation-stage-1"] == "yes":
		return patch("add", "/data/mutation-stage-2", "yes")
	case o.Data["mutation-start"] == "yes":
		return patch("add", "/data/mutation-stage-1", "yes")
	}
	return allow()
}

func admitCRD(_ context.Context, _ *agnhost, r admission, o reviewed) decision {
	if r.Resource.Resource != "customresourcedefinitions" {
		return denyBecause("message", fmt.Sprintf("expect resource to be customresourcedefinitions but got %v", r.Resource))
	}
	if o.Metadata.Labels["webhook-e2e-test"] == "webhook-disallow" {
		return denyBecause("message", "the crd contains unwanted label")
	}
	return allow()
}

// agnhostWebhook answers admission reviews by fixed rules, one for each path.
func agnhostWebhook(ctx context.Context, a *agnhost, args []string) int {
	return a.serveReviews(ctx, "webhook", args, func(mux *http.ServeMux, sidecar string) {
		for path, decide := range webhookRules(sidecar) {
			mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
				review(w, r, func(b json.RawMessage) (any, error) {
					var in admission
					if err := json.Unmarshal(b, &in); err != nil {
						return nil, err
					}
					raw := in.Object
					if in.Operation == "DELETE" {
						raw = in.OldObject
					}
					var o reviewed
					if len(raw) > 0 {
						if err := json.Unmarshal(raw, &o); err != nil {
							return nil, err
						}
					}
					out := decide(r.Context(), a, in, o)
					out.UID = in.UID
					return out, nil
				})
			})
		}
	})
}

// serveReviews serves HTTPS for the API server.
func (a *agnhost) serveReviews(ctx context.Context, name string, args []string, routes func(*http.ServeMux, string)) int {
	f := a.flags(name)
	cert, key := f.String("tls-cert-file", "", ""), f.String("tls-private-key-file", "", "")
	port := f.Int("port", 443, "")
	sidecar := f.String("sidecar-image", "", "")
	if code, ok := a.parse(f, args); !ok {
		return code
	}
	if *cert == "" {
		return a.fatal("open : no such file or directory")
	}
	mux := http.NewServeMux()
	routes(mux, *sidecar)
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") })
	srv, err := a.listenTLS(":"+strconv.Itoa(*port), *cert, *key, mux)
	if err != nil {
		return a.fatal("%s", listenError(err))
	}
	defer srv.stop()
	return a.run(ctx, 0, 2)
}

// agnhostReview bounds a request; the API server's own bound on objects is smaller.
const agnhostReview = 8 * mib

// review answers a request of the API server in kind and version of the request.
func review(w http.ResponseWriter, r *http.Request, answer func(request json.RawMessage) (any, error)) {
	var in struct {
		APIVersion string
		Kind       string
		Request    json.RawMessage
	}
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, agnhostReview))
	if err == nil {
		err = json.Unmarshal(b, &in)
	}
	if err != nil {
		http.Error(w, fmt.Sprintf("Request could not be decoded: %v", err), http.StatusBadRequest)
		return
	}
	response, err := answer(in.Request)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	answerJSON(w, map[string]any{"apiVersion": in.APIVersion, "kind": in.Kind, "response": response})
}

// agnhostConversion converts the example resource of stable.example.com between
// v1, which has hostPort, and v2, which has host and port.
func agnhostConversion(ctx context.Context, a *agnhost, args []string) int {
	return a.serveReviews(ctx, "crd-conversion-webhook", args, func(mux *http.ServeMux, _ string) {
		mux.HandleFunc("/crdconvert", func(w http.ResponseWriter, r *http.Request) {
			review(w, r, func(b json.RawMessage) (any, error) {
				var in struct {
					UID               string
					DesiredAPIVersion string
					Objects           []map[string]any
				}
				if err := json.Unmarshal(b, &in); err != nil {
					return nil, err
				}
				result := map[string]any{"status": "Success"}
				for _, o := range in.Objects {
					if err := convertExample(o, in.DesiredAPIVersion); err != nil {
						result = map[string]any{"status": "Failure", "message": err.Error()}
						in.Objects = nil
						break
					}
				}
				return map[string]any{"uid": in.UID, "convertedObjects": in.Objects, "result": result}, nil
			})
		})
	})
}

// convertExample changes o to a version.
func convertExample(o map[string]any, to string) error {
	from := o["apiVersion"]
	switch {
	case from == to:
		return fmt.Errorf("conversion from a version to itself should not call the webhook: %s", to)
	case from == "stable.example.com/v1" && to == "stable.example.com/v2":
		if text, ok := o["hostPort"].(string); ok {
			host, port, ok := strings.Cut(text, ":")
			if !ok || strings.Contains(port, ":") {
				return fmt.Errorf("invalid hostPort value `%v`", text)
			}
			delete(o, "hostPort")
			o["host"], o["port"] = host, port
		}
	case from == "stable.example.com/v2" && to == "stable.example.com/v1":
		host, hasHost := o["host"].(string)
		port, hasPort := o["port"].(string)
		if hasHost || hasPort {
			delete(o, "host")
			delete(o, "port")
			o["hostPort"] = host + ":" + port
		}
	default:
		return fmt.Errorf("unexpected conversion version %q", to)
	}
	o["apiVersion"] = to
	return nil
}
