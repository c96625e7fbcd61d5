package course

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"kubistro/internal/lab"
)

// typedLength bounds a typed answer, in bytes.
const typedLength = 500

// Right reports whether an answer in the form of the question's kind is right. Of kind
// cluster it can't: that takes the learner's cluster and Check.
func (q *Question) Right(answer []string) bool {
	switch q.Kind {
	case Order:
		return slices.EqualFunc(q.Options, answer, func(o Option, id string) bool { return o.ID == id })
	case Match:
		return q.Valid(answer) && !slices.ContainsFunc(answer, func(a string) bool { return !q.matches(a) })
	case Truth:
		o := q.option(second(answer))
		return len(answer) == 2 && answer[0] == strconv.FormatBool(q.Is) && o != nil && o.Right
	case Typed:
		o := q.Typed(answer)
		return o != nil && o.Right
	case InCluster:
		return false
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

func second(answer []string) string {
	if len(answer) < 2 {
		return ""
	}
	return answer[1]
}

func (q *Question) option(id string) *Option {
	for i := range q.Options {
		if q.Options[i].ID == id {
			return &q.Options[i]
		}
	}
	return nil
}

// matches judges one ID=ID of kind match: two options may have the same pair.
func (q *Question) matches(answer string) bool {
	left, right, _ := strings.Cut(answer, "=")
	a, b := q.option(left), q.option(right)
	return a != nil && b != nil && a.Pair == b.Pair
}

// Matched reports whether an answer of kind match has the right pair for an option.
func (q *Question) Matched(answer []string, id string) bool {
	return slices.ContainsFunc(answer, func(a string) bool { return strings.HasPrefix(a, id+"=") && q.matches(a) })
}

// Typed finds the option that a typed answer is; nil for none.
func (q *Question) Typed(answer []string) *Option {
	if len(answer) != 1 {
		return nil
	}
	for i, o := range q.Options {
		if slices.ContainsFunc(o.Accept, func(a string) bool { return sameTyped(a, answer[0]) }) {
			return &q.Options[i]
		}
	}
	return nil
}

// sameTyped compares what people type: spaces around, capitals, wide characters and a quotation don't
// matter, and numbers are compared as numbers.
func sameTyped(a, b string) bool {
	a, b = plainTyped(a), plainTyped(b)
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	if errX == nil && errY == nil {
		return x == y
	}
	return a == b
}

func plainTyped(s string) string {
	s = strings.ToLower(strings.Map(narrow, s))
	return strings.Join(strings.Fields(strings.Trim(strings.TrimSpace(s), "`'\"「」")), " ")
}

// narrow turns the wide forms of ASCII that input methods give into the plain ones.
func narrow(r rune) rune {
	switch {
	case r >= '！' && r <= '～':
		return r - '！' + '!'
	case r == '\u3000':
		return ' '
	}
	return r
}

// Valid reports whether an answer has the form of its kind and names only what the question
// has, none twice: order and match all options, one exactly one, several at least one,
// truth a verdict and a reason, type and cluster some text.
func (q *Question) Valid(answer []string) bool {
	switch q.Kind {
	case Typed, InCluster:
		return len(answer) == 1 && strings.TrimSpace(answer[0]) != "" && len(answer[0]) <= typedLength
	case Truth:
		return len(answer) == 2 && (answer[0] == "true" || answer[0] == "false") && q.option(answer[1]) != nil
	}
	seen := map[string]bool{}
	for _, id := range answer {
		if q.Kind == Match {
			left, right, _ := strings.Cut(id, "=")
			if q.option(right) == nil {
				return false
			}
			id = left
		}
		if q.option(id) == nil || seen[id] {
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

// Shuffled returns the options in the order in which they are shown to somebody: for one seed
// the same every time and, for kind order, never the right one.
func (q *Question) Shuffled(seed string) []Option {
	out := slices.Clone(q.Options)
	dice(q.ID+" "+seed).Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	if q.Kind == Order && len(out) > 1 && q.Right(ids(out)) {
		out[0], out[len(out)-1] = out[len(out)-1], out[0]
	}
	return out
}

// Pair is what belongs to options of kind match.
type Pair struct {
	ID   string // of the first option that it belongs to
	Text lab.Text
}

// Pairs lists what can be chosen in kind match, each once, in the author's order.
func (q *Question) Pairs() []Pair {
	var out []Pair
	for _, o := range q.Options {
		if !slices.ContainsFunc(out, func(p Pair) bool { return p.Text == o.Pair }) {
			out = append(out, Pair{ID: o.ID, Text: o.Pair})
		}
	}
	return out
}

// ShuffledPairs is Pairs in the order in which they are shown.
func (q *Question) ShuffledPairs(seed string) []Pair {
	out := q.Pairs()
	dice(q.ID+" pairs "+seed).Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// dice is a source of chance that gives the same for the same text.
func dice(text string) *rand.Rand {
	h := uint64(14695981039346656037)
	for _, b := range []byte(text) {
		h = (h ^ uint64(b)) * 1099511628211
	}
	return rand.New(rand.NewPCG(h, h>>7))
}

func ids(options []Option) []string {
	out := make([]string, len(options))
	for i, o := range options {
		out[i] = o.ID
	}
	return out
}
