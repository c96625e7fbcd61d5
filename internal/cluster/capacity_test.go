package cluster

import "testing"

func TestMaxFromMemory(t *testing.T) {
	for _, tc := range []struct {
		total int64
		want  int
	}{
		{0, 4}, // unknown
		{512 << 20, 1},
		{2 << 30, 3},
		{8 << 30, 23},
		{24 << 30, 78},
	} {
		if got := maxFromMemory(tc.total, clusterBytes); got != tc.want {
			t.Errorf("maxFromMemory(%d MiB) = %d, want %d", tc.total>>20, got, tc.want)
		}
	}
}

func TestParseMemTotal(t *testing.T) {
	for in, want := range map[string]int64{
		"MemTotal:       24683620 kB\nMemFree: 1 kB\n": 24683620 << 10,
		"MemFree: 1 kB\n":     0,
		"MemTotal: many kB\n": 0,
		"":                    0,
	} {
		if got := parseMemTotal([]byte(in)); got != want {
			t.Errorf("parseMemTotal(%q) = %d, want %d", in, got, want)
		}
	}
}
