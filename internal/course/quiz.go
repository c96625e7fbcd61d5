package course

import "slices"

// Right reports whether an answer (ids of options: the chosen ones, or all in
// the learner's order) is right.
func (q *Question) Right(answer []string) bool {
	if q.Kind == Order {
		return slices.EqualFunc(q.Options, answer, func(o Option, id string) bool { return o.ID == id })
	}
	chosen := map[string]bool{}
	for _, id := range answer {
		chosen[id] = true
	}
	right := 0
	for _, o := range q.Options {
		if o.Right {
			right++
		}
		if o.Right != chosen[o.ID] {
			return false
		}
	}
	return len(chosen) == right
}

// Valid reports whether an answer names options of the question only, none
// twice, and as many as its kind wants (order: all, one: exactly one, several: at least one).
func (q *Question) Valid(answer []string) bool {
	seen := map[string]bool{}
	for _, id := range answer {
		known := slices.ContainsFunc(q.Options, func(o Option) bool { return o.ID == id })
		if !known || seen[id] {
			return false
		}
		seen[id] = true
	}
	switch q.Kind {
	case OneOf:
		return len(answer) == 1
	case SeveralOf:
		return len(answer) > 0
	}
	return len(answer) == len(q.Options)
}

// Shuffled returns the options in the order in which they are shown. It is the
// same every time and, for kind order, never the right one.
func (q *Question) Shuffled() []Option {
	out := slices.Clone(q.Options)
	if q.Kind != Order || len(out) < 2 {
		return out
	}
	h := uint32(2166136261)
	for _, b := range []byte(q.ID) {
		h = (h ^ uint32(b)) * 16777619
	}
	for i := len(out) - 1; i > 0; i-- {
		h = h*1664525 + 1013904223
		j := int(h>>8) % (i + 1)
		out[i], out[j] = out[j], out[i]
	}
	if q.Right(ids(out)) {
		out[0], out[len(out)-1] = out[len(out)-1], out[0]
	}
	return out
}

func ids(options []Option) []string {
	out := make([]string, len(options))
	for i, o := range options {
		out[i] = o.ID
	}
	return out
}
