package agent

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"kubistro/internal/lab"
)

// event is what matters of an audit.k8s.io/v1 Event.
type event struct {
	AuditID        string    `json:"auditID"`
	Stage          string    `json:"stage"`
	RequestURI     string    `json:"requestURI"`
	Verb           string    `json:"verb"`
	UserAgent      string    `json:"userAgent"`
	StageTimestamp time.Time `json:"stageTimestamp"`
	User           struct {
		Username string `json:"username"`
	} `json:"user"`
	ImpersonatedUser *struct {
		Username string `json:"username"`
	} `json:"impersonatedUser"`
	ObjectRef *struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		APIGroup    string `json:"apiGroup"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
		UID         string `json:"uid"`
	} `json:"objectRef"`
	ResponseStatus *struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	ResponseObject *object `json:"responseObject"`
}

// object is what matters of a created object.
type object struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name            string `json:"name"`
		Namespace       string `json:"namespace"`
		UID             string `json:"uid"`
		OwnerReferences []struct {
			Kind       string `json:"kind"`
			Name       string `json:"name"`
			UID        string `json:"uid"`
			Controller bool   `json:"controller"`
		} `json:"ownerReferences"`
	} `json:"metadata"`
}

// reduce makes an entry of a line of the log; false for what changed nothing.
func reduce(line []byte) (lab.AuditEntry, bool) {
	var e event
	if json.Unmarshal(line, &e) != nil || e.ObjectRef == nil || e.ResponseStatus == nil || strings.Contains(e.RequestURI, "dryRun=") {
		return lab.AuditEntry{}, false
	}
	o, code := e.ObjectRef, e.ResponseStatus.Code
	entered := o.APIGroup == "" && o.Resource == "pods" && (o.Subresource == "exec" || o.Subresource == "attach")
	if (code < 200 || code > 299) && !(entered && code == http.StatusSwitchingProtocols) {
		return lab.AuditEntry{}, false
	}
	out := lab.AuditEntry{
		Time: e.StageTimestamp, User: e.User.Username, UserAgent: e.UserAgent, Verb: e.Verb,
		Resource: o.Resource, APIGroup: o.APIGroup, Subresource: o.Subresource, Code: code,
		Object: lab.ObjectRef{Namespace: o.Namespace, Name: o.Name, UID: o.UID},
	}
	if e.ImpersonatedUser != nil {
		out.User = e.ImpersonatedUser.Username
	}
	if entered {
		out.Session, out.Ended, out.Command = e.AuditID, e.Stage == "ResponseComplete", lab.ExecCommand(e.RequestURI)
	}
	if r := e.ResponseObject; r != nil && e.Verb == "create" && o.Subresource == "" && r.Metadata.Name != "" {
		m := r.Metadata
		out.Object.Name, out.Object.UID, out.Object.Kind = m.Name, m.UID, r.Kind
		for _, owner := range m.OwnerReferences {
			if owner.Controller {
				out.Owner = &lab.ObjectRef{Kind: owner.Kind, Namespace: m.Namespace, Name: owner.Name, UID: owner.UID}
			}
		}
	}
	return out, true
}
