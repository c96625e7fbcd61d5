package session

import "testing"

func TestNextHint(t *testing.T) {
	for name, c := range map[string]struct {
		opened []int
		fits   []fit
		want   int // -1: none
	}{
		"in order without conditions":       {nil, []fit{always, always}, 0},
		"the next one":                      {[]int{0}, []fit{always, always}, 1},
		"one that fits comes first":         {nil, []fit{always, notNow, now}, 2},
		"then the next without a condition": {[]int{2}, []fit{always, notNow, always}, 0},
		"what doesn't fit comes last":       {[]int{2, 0}, []fit{always, notNow, always}, 1},
		"all are open":                      {[]int{2, 0, 1}, []fit{always, always, always}, -1},
		"an exercise without hints":         {nil, nil, -1},
	} {
		got, ok := nextHint(len(c.fits), c.opened, c.fits)
		if !ok {
			got = -1
		}
		if got != c.want {
			t.Errorf("%s: hint %d, want %d", name, got, c.want)
		}
	}
}
