package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// canonical is a transcript in the form in which two are compared, a list of lines.
func canonical(s *Scenario, t *Transcript) []string {
	var out []string
	for _, c := range t.Commands {
		out = append(out, "$ "+c.Line)
		out = append(out, canonicalText(c.Output, s.Nodes)...)
		if c.Exit != 0 {
			out = append(out, fmt.Sprintf("[exit code %d]", c.Exit))
		}
	}
	if t.Failure != "" {
		return append(out, canonicalText(t.Failure, s.Nodes)...)
	}
	if !s.NoObjects {
		out = append(out, "", "# objects")
		out = append(out, canonicalObjects(t.Objects, s.Nodes)...)
		out = append(out, "", "# events")
		out = append(out, canonicalEvents(t.Events, s.Nodes)...)
	}
	return slices.DeleteFunc(out, func(line string) bool {
		for _, r := range s.ignore {
			if r.MatchString(line) {
				return true
			}
		}
		return false
	})
}

// canonicalObjects prints each object once; of several that differ in nothing but what is
// replaced, how many there are.
func canonicalObjects(list []map[string]any, keepNodes bool) []string {
	var docs []string
	for _, o := range list {
		if o = canonicalObject(o); o == nil {
			continue
		}
		b, err := yaml.Marshal(o)
		if err != nil {
			b = []byte(err.Error())
		}
		var lines []string
		for line := range strings.Lines(string(b)) {
			lines = append(lines, "  "+canonicalLine(strings.TrimRight(line, "\n"), keepNodes))
		}
		meta, _ := o["metadata"].(map[string]any)
		head := canonicalLine(fmt.Sprintf("%v %v", o["kind"], meta["name"]), keepNodes)
		docs = append(docs, head+"\n"+strings.Join(lines, "\n"))
	}
	return counted(docs)
}

// counted sorts texts and says of equal ones how many there are, above them.
func counted(docs []string) []string {
	slices.Sort(docs)
	var out []string
	for i := 0; i < len(docs); {
		n := i
		for n < len(docs) && docs[n] == docs[i] {
			n++
		}
		head, rest, more := strings.Cut(docs[i], "\n")
		if n-i > 1 {
			head += fmt.Sprintf(" (%d of them)", n-i)
		}
		out = append(out, head)
		if more {
			out = append(out, strings.Split(rest, "\n")...)
		}
		i = n
	}
	return out
}

// everywhere are objects that each namespace has.
var everywhere = map[string]bool{"ConfigMap/kube-root-ca.crt": true, "ServiceAccount/default": true}

// canonicalObject is a copy without what is never the same twice; nil for an object that isn't the scenario's.
func canonicalObject(o map[string]any) map[string]any {
	meta, _ := o["metadata"].(map[string]any)
	if everywhere[fmt.Sprintf("%v/%v", o["kind"], meta["name"])] {
		return nil
	}
	c := pruned(o, "").(map[string]any)
	m := c["metadata"].(map[string]any)
	if writers := managers(meta["managedFields"]); len(writers) > 0 {
		m["writtenBy"] = writers
	}
	if annotations, ok := m["annotations"].(map[string]any); ok {
		delete(annotations, "kubectl.kubernetes.io/last-applied-configuration")
	}
	return c
}

// dropped are fields that say nothing but when and where.
var dropped = map[string]bool{
	"uid": true, "resourceVersion": true, "creationTimestamp": true, "managedFields": true, "selfLink": true,
	"imageID": true, // names what a registry or our own archive made of the image
}

// noLimit is what a kubelet takes for a container's memory limit where the machine has cgroup v1 and there is none.
const noLimit = "9007199254740988Ki"

func pruned(v any, key string) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			if dropped[k] || e == noLimit {
				continue
			}
			e = pruned(e, k)
			if limits, ok := e.(map[string]any); ok && k == "limits" && len(limits) == 0 {
				continue
			}
			out[k] = e
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for _, e := range v {
			out = append(out, pruned(e, key))
		}
		if key == "endpoints" || key == "addresses" {
			slices.SortFunc(out, func(a, b any) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		}
		return out
	}
	return v
}

// managers lists who wrote to an object, and how.
func managers(v any) []any {
	list, _ := v.([]any)
	var out []string
	for _, e := range list {
		f, _ := e.(map[string]any)
		who := fmt.Sprintf("%v %v", f["manager"], f["operation"])
		if sub, _ := f["subresource"].(string); sub != "" {
			who += " " + sub
		}
		out = append(out, who)
	}
	slices.Sort(out)
	var kept []any
	for _, who := range slices.Compact(out) {
		kept = append(kept, who)
	}
	return kept
}
