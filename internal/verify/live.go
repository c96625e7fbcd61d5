package verify

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kubistro/internal/checker"
	"kubistro/internal/course"
)

type object struct {
	Kind     string
	Metadata struct {
		Name, UID, CreationTimestamp string
		DeletionTimestamp            *string
		Labels                       map[string]string
		OwnerReferences              []struct{ Kind, Name, UID string }
	}
	Spec   struct{ NodeName, ClusterIP string }
	Status struct{ PodIP string }
	raw    map[string]any
}

// command is what the run button types: live values are taken from the cluster, as the page does.
func (w *walk) command(ctx context.Context, c course.Command) (string, error) {
	var b strings.Builder
	for _, p := range c.Parts {
		if p.Live == nil {
			b.WriteString(p.Text)
			continue
		}
		v, err := w.live(ctx, *p.Live)
		if err != nil {
			return "", err
		}
		b.WriteString(v)
	}
	return b.String(), nil
}

// live is a live value. Its error is for what the cluster hasn't got: the text would show a fallback.
func (w *walk) live(ctx context.Context, l course.Live) (string, error) {
	list, err := w.objects(ctx, l.Kind)
	if err != nil {
		return "", err
	}
	owned := func(object) bool { return true }
	if l.Owner != "" {
		if owned, err = w.ownedBy(ctx, l); err != nil {
			return "", err
		}
	}
	list = slices.DeleteFunc(list, func(o object) bool {
		for pair := range strings.SplitSeq(l.Labels, ",") {
			if k, v, ok := strings.Cut(pair, "="); ok && o.Metadata.Labels[k] != v {
				return true
			}
		}
		return !owned(o)
	})
	if l.Want == "count" {
		return strconv.Itoa(len(list)), nil
	}
	if staying := slices.DeleteFunc(slices.Clone(list), func(o object) bool { return o.Metadata.DeletionTimestamp != nil }); len(staying) > 0 {
		list = staying
	}
	slices.SortFunc(list, func(a, b object) int {
		return cmp.Or(cmp.Compare(a.Metadata.CreationTimestamp, b.Metadata.CreationTimestamp), cmp.Compare(a.Metadata.Name, b.Metadata.Name))
	})
	if len(list) == 0 {
		return "", fmt.Errorf("the cluster has nothing for the live value %q", l.Source)
	}
	o := list[len(list)-1]
	if l.Pick == "oldest" {
		o = list[0]
	}
	v := map[string]string{
		"name": o.Metadata.Name, "ip": cmp.Or(o.Status.PodIP, o.Spec.ClusterIP), "node": o.Spec.NodeName,
		"status": checker.PodStatus(o.raw), "restarts": strconv.Itoa(checker.PodRestarts(o.raw)),
	}[l.Want]
	if v == "" {
		return "", fmt.Errorf("%s %s has no value for %q", o.Kind, o.Metadata.Name, l.Source)
	}
	return v, nil
}

// objects lists a kind in the namespace default (or without one).
func (w *walk) objects(ctx context.Context, kind string) ([]object, error) {
	out, code, err := w.Lab.Exec(ctx, w.learner, w.id, "kubectl get "+strings.ToLower(kind)+" -o json")
	if err != nil {
		return nil, fmt.Errorf("list %s for a live value: %w", kind, err)
	}
	if code != 0 {
		return nil, fmt.Errorf("list %s for a live value: code %d: %s", kind, code, tail(out))
	}
	var list struct{ Items []json.RawMessage }
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return nil, fmt.Errorf("list %s for a live value: %w", kind, err)
	}
	var objects []object
	for _, raw := range list.Items {
		var o object
		if err := json.Unmarshal(raw, &o); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(raw, &o.raw); err != nil {
			return nil, err
		}
		objects = append(objects, o)
	}
	return objects, nil
}

// ownedBy tells what belongs to an owner, directly or through ReplicaSets.
func (w *walk) ownedBy(ctx context.Context, l course.Live) (func(object) bool, error) {
	kind, name, _ := strings.Cut(l.Owner, "/")
	owners, err := w.objects(ctx, kind)
	if err != nil {
		return nil, err
	}
	uids := map[string]bool{}
	for _, o := range owners {
		if o.Metadata.Name == name {
			uids[o.Metadata.UID] = true
		}
	}
	belongs := func(o object) bool {
		return slices.ContainsFunc(o.Metadata.OwnerReferences, func(r struct{ Kind, Name, UID string }) bool { return uids[r.UID] })
	}
	if l.Kind == "Pod" && strings.EqualFold(kind, "deployment") {
		sets, err := w.objects(ctx, "ReplicaSet")
		if err != nil {
			return nil, err
		}
		for _, o := range sets {
			if belongs(o) {
				uids[o.Metadata.UID] = true
			}
		}
	}
	return belongs, nil
}
