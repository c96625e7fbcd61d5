package podctl

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/printers"
)

func logFlags(f *pflag.FlagSet) {
	f.StringP("container", "c", "", "")
	f.BoolP("follow", "f", false, "")
	f.BoolP("previous", "p", false, "")
	f.Bool("timestamps", false, "")
	f.Int64("tail", -1, "")
	f.Duration("since", 0, "")
}

func (r *run) logs(ctx context.Context) error {
	if len(r.args) == 0 || len(r.args) > 2 {
		return wrong("expected 'logs [-f] [-p] (POD | TYPE/NAME) [-c CONTAINER]'.\nPOD or TYPE/NAME is a required argument for the logs command\nSee 'kubectl logs -h' for help and examples")
	}
	name := strings.TrimPrefix(strings.TrimPrefix(r.args[0], "pods/"), "pod/")
	if strings.Contains(name, "/") {
		return wrong("logs of %s aren't available in this simulated container; name a Pod", r.args[0])
	}
	o := corev1.PodLogOptions{}
	o.Container, _ = r.flags.GetString("container")
	if len(r.args) == 2 {
		o.Container = r.args[1]
	}
	o.Follow, _ = r.flags.GetBool("follow")
	o.Previous, _ = r.flags.GetBool("previous")
	o.Timestamps, _ = r.flags.GetBool("timestamps")
	if n, _ := r.flags.GetInt64("tail"); n >= 0 {
		o.TailLines = &n
	}
	if d, _ := r.flags.GetDuration("since"); d > 0 {
		o.SinceSeconds = ptrTo(int64(d.Seconds()))
	}
	s, err := r.client.CoreV1().Pods(r.namespace()).GetLogs(name, &o).Stream(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	_, err = io.Copy(r.o.Out, s)
	return err
}

// rollout restarts a workload, or waits for a Deployment.
func (r *run) rollout(ctx context.Context) error {
	if len(r.args) < 2 {
		return wrong("kubectl rollout in this simulated container has: restart, status")
	}
	what := r.args[0]
	r.args = r.args[1:]
	docs, err := r.named(ctx)
	if err != nil {
		return err
	}
	for _, d := range docs {
		switch what {
		case "restart":
			patch := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":%q}}}}}`, time.Now().Format(time.RFC3339))
			if _, err := r.of(d).Patch(ctx, d.GetName(), types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "kubectl-rollout"}); err != nil {
				return err
			}
			fmt.Fprintf(r.o.Out, "%s restarted\n", shown(d.m, d.GetName()))
		case "status":
			if err := r.rolloutStatus(ctx, d); err != nil {
				return err
			}
		default:
			return wrong("kubectl rollout in this simulated container has: restart, status")
		}
	}
	return nil
}

// rolloutStatus follows polymorphichelpers/rollout_status.go for Deployments.
func (r *run) rolloutStatus(ctx context.Context, d document) error {
	if d.m.GroupVersionKind.Kind != "Deployment" {
		return wrong("kubectl rollout status in this simulated container is for Deployments")
	}
	ctx, cancel := r.within(ctx)
	defer cancel()
	last := ""
	t := time.NewTicker(300 * time.Millisecond)
	defer t.Stop()
	for {
		o, err := r.client.AppsV1().Deployments(d.GetNamespace()).Get(ctx, d.GetName(), metav1.GetOptions{})
		if err != nil {
			if ctx.Err() != nil {
				return wrong("timed out waiting for the condition")
			}
			return err
		}
		text, done, err := deploymentStatus(o)
		if text != last {
			fmt.Fprintln(r.o.Out, text)
			last = text
		}
		if done || err != nil {
			return err
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return wrong("timed out waiting for the condition")
		}
	}
}

func deploymentStatus(d *appsv1.Deployment) (text string, done bool, err error) {
	want, s := int32(1), d.Status
	if d.Spec.Replicas != nil {
		want = *d.Spec.Replicas
	}
	if d.Generation > s.ObservedGeneration {
		return "Waiting for deployment spec update to be observed...", false, nil
	}
	for _, c := range s.Conditions {
		if c.Type == appsv1.DeploymentProgressing && c.Reason == "ProgressDeadlineExceeded" {
			return "", false, wrong("deployment %q exceeded its progress deadline", d.Name)
		}
	}
	switch {
	case s.UpdatedReplicas < want:
		return fmt.Sprintf("Waiting for deployment %q rollout to finish: %d out of %d new replicas have been updated...", d.Name, s.UpdatedReplicas, want), false, nil
	case s.Replicas > s.UpdatedReplicas:
		return fmt.Sprintf("Waiting for deployment %q rollout to finish: %d old replicas are pending termination...", d.Name, s.Replicas-s.UpdatedReplicas), false, nil
	case s.AvailableReplicas < s.UpdatedReplicas:
		return fmt.Sprintf("Waiting for deployment %q rollout to finish: %d of %d updated replicas are available...", d.Name, s.AvailableReplicas, s.UpdatedReplicas), false, nil
	}
	return fmt.Sprintf("deployment %q successfully rolled out", d.Name), true, nil
}

func waitFlags(f *pflag.FlagSet) {
	outputFlag(f)
	f.String("for", "", "")
	f.Duration("timeout", 30*time.Second, "")
	f.StringP("selector", "l", "", "")
	f.String("field-selector", "", "")
	f.Bool("all", false, "")
}

// wait waits for --for=condition=NAME[=VALUE] or --for=delete.
func (r *run) wait(ctx context.Context) error {
	what, _ := r.flags.GetString("for")
	condition, isCondition := strings.CutPrefix(what, "condition=")
	if !isCondition && what != "delete" {
		return wrong("--for in this simulated container is condition=NAME[=VALUE] or delete")
	}
	name, want, ok := strings.Cut(condition, "=")
	if !ok {
		want = "True"
	}
	docs, err := r.named(ctx)
	if err != nil {
		return err
	}
	if len(docs) == 0 {
		return wrong("no matching resources found")
	}
	limit, cancel := r.within(ctx)
	defer cancel()
	for _, d := range docs {
		if !isCondition {
			if err := r.untilGone(limit, d); err != nil {
				return err
			}
		} else if err := r.untilCondition(limit, d, name, want); err != nil {
			return err
		}
		fmt.Fprintf(r.o.Out, "%s condition met\n", shown(d.m, d.GetName()))
	}
	return nil
}

func (r *run) untilCondition(ctx context.Context, d document, name, want string) error {
	t := time.NewTicker(300 * time.Millisecond)
	defer t.Stop()
	for {
		o, err := r.of(d).Get(ctx, d.GetName(), metav1.GetOptions{})
		if err != nil && (ctx.Err() == nil || apierrors.IsNotFound(err)) {
			return err
		}
		if err == nil {
			list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
			for _, c := range list {
				m, _ := c.(map[string]any)
				kind, _ := m["type"].(string)
				status, _ := m["status"].(string)
				if strings.EqualFold(kind, name) && strings.EqualFold(status, want) {
					return nil
				}
			}
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return wrong("timed out waiting for the condition on %s", shown(d.m, d.GetName()))
		}
	}
}

func authFlags(f *pflag.FlagSet) {
	outputFlag(f)
	f.BoolP("all-namespaces", "A", false, "")
	f.BoolP("quiet", "q", false, "")
	f.Bool("list", false, "")
	f.String("subresource", "", "")
}

func (r *run) auth(ctx context.Context) error {
	switch {
	case len(r.args) >= 1 && r.args[0] == "whoami":
		got, err := r.client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		w := printers.GetNewTabWriter(r.o.Out)
		u := got.Status.UserInfo
		fmt.Fprintf(w, "ATTRIBUTE\tVALUE\nUsername\t%s\n", u.Username)
		if u.UID != "" {
			fmt.Fprintf(w, "UID\t%s\n", u.UID)
		}
		fmt.Fprintf(w, "Groups\t%v\n", u.Groups)
		keys := make([]string, 0, len(u.Extra))
		for k := range u.Extra {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			fmt.Fprintf(w, "Extra: %s\t%v\n", k, []string(u.Extra[k]))
		}
		return w.Flush()
	case len(r.args) >= 3 && r.args[0] == "can-i":
		return r.canI(ctx)
	}
	return wrong("you must specify two arguments: verb resource or verb resource/resourceName.\nSee 'kubectl auth can-i -h' for help and examples.")
}

func (r *run) canI(ctx context.Context) error {
	spec := authorizationv1.SelfSubjectAccessReviewSpec{}
	if verb, what := r.args[1], r.args[2]; strings.HasPrefix(what, "/") {
		spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: what, Verb: verb}
	} else {
		kind, name, _ := strings.Cut(what, "/")
		res := schema.GroupResource{Resource: kind}
		if m, err := r.kind(kind); err == nil {
			res = m.Resource.GroupResource()
		} else if kind != "*" {
			fmt.Fprintf(r.o.Err, "Warning: the server doesn't have a resource type '%s'\n\n", kind)
		}
		ns := r.namespace()
		if r.all() {
			ns = ""
		}
		sub, _ := r.flags.GetString("subresource")
		spec.ResourceAttributes = &authorizationv1.ResourceAttributes{Namespace: ns, Verb: verb, Group: res.Group, Resource: res.Resource, Subresource: sub, Name: name}
	}
	got, err := r.client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	quiet, _ := r.flags.GetBool("quiet")
	answer := "yes"
	if !got.Status.Allowed {
		answer = "no"
		if got.Status.Reason != "" {
			answer += " - " + got.Status.Reason
		}
	}
	if !quiet {
		fmt.Fprintln(r.o.Out, answer)
	}
	if !got.Status.Allowed {
		return exitCode(1)
	}
	return nil
}

func (r *run) version(context.Context) error {
	v, err := r.client.Discovery().ServerVersion()
	if err != nil {
		return err
	}
	fmt.Fprintf(r.o.Out, "Client Version: %s\nServer Version: %s\n", v.GitVersion, v.GitVersion)
	return nil
}

func (r *run) clusterInfo(context.Context) error {
	if _, err := r.client.Discovery().ServerVersion(); err != nil {
		return err
	}
	fmt.Fprintf(r.o.Out, "Kubernetes control plane is running at %s\n", r.config.Host)
	return nil
}

func (r *run) apiResources(context.Context) error {
	lists, err := r.discovery.ServerPreferredResources()
	if err != nil && len(lists) == 0 {
		return err
	}
	w := printers.GetNewTabWriter(r.o.Out)
	fmt.Fprintln(w, "NAME\tSHORTNAMES\tAPIVERSION\tNAMESPACED\tKIND")
	for _, l := range lists {
		slices.SortFunc(l.APIResources, func(a, b metav1.APIResource) int { return strings.Compare(a.Name, b.Name) })
		for _, a := range l.APIResources {
			if len(a.Verbs) > 0 && !strings.Contains(a.Name, "/") {
				fmt.Fprintf(w, "%s\t%s\t%s\t%t\t%s\n", a.Name, strings.Join(a.ShortNames, ","), l.GroupVersion, a.Namespaced, a.Kind)
			}
		}
	}
	return w.Flush()
}
