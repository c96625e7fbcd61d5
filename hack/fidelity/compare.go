package main

import (
	"slices"
	"strings"
)

// difference is a line that only one of two transcripts has.
type difference struct {
	Line  string
	Left  bool   // the first transcript has it
	Place string // the last heading above it
	// Explained names the explanation; empty for a fault.
	Explained string
}

// compare lists the lines that differ, by a longest common subsequence. What an explanation
// cuts out of a line stands there as a difference of its own.
func compare(s *Scenario, left, right []string, known []Explanation) []difference {
	out, right := cut(s, right, known)
	place, objects := "", false
	note := func(line string, isLeft bool) {
		d := difference{Line: line, Left: isLeft, Place: place}
		for _, k := range known {
			if k.match != nil && k.of(s) && k.match.MatchString(line) {
				d.Explained = k.Title
				break
			}
		}
		out = append(out, d)
	}
	rest := common(left, right)
	i, j := 0, 0
	for i < len(left) || j < len(right) {
		switch {
		case i < len(left) && j < len(right) && left[i] == right[j]:
			objects = objects || left[i] == "# objects"
			if heading(left[i], objects) {
				place = left[i]
			}
			i, j = i+1, j+1
		case j == len(right) || i < len(left) && rest[i+1][j] >= rest[i][j+1]:
			note(left[i], true)
			i++
		default:
			note(right[j], false)
			j++
		}
	}
	return out
}

// cut takes what only the second cluster says out of its lines.
func cut(s *Scenario, right []string, known []Explanation) (out []difference, rest []string) {
	rest = slices.Clone(right)
	for _, k := range known {
		if k.cut == nil || !k.of(s) {
			continue
		}
		for i, line := range rest {
			if found := k.cut.FindString(line); found != "" {
				rest[i] = k.cut.ReplaceAllString(line, "")
				out = append(out, difference{Line: found, Explained: k.Title})
			}
		}
	}
	return out, rest
}

// heading: a command, or below them an object's first line.
func heading(line string, objects bool) bool {
	return strings.HasPrefix(line, "$ ") || objects && line != "" && line[0] != ' '
}

// common[i][j] is how many lines left[i:] and right[j:] have in common, in order.
func common(left, right []string) [][]int32 {
	t := make([][]int32, len(left)+1)
	for i := range t {
		t[i] = make([]int32, len(right)+1)
	}
	for i := len(left) - 1; i >= 0; i-- {
		for j := len(right) - 1; j >= 0; j-- {
			if left[i] == right[j] {
				t[i][j] = t[i+1][j+1] + 1
			} else {
				t[i][j] = max(t[i+1][j], t[i][j+1])
			}
		}
	}
	return t
}

// faults are the differences that nothing explains.
func faults(list []difference) []difference {
	return slices.DeleteFunc(slices.Clone(list), func(d difference) bool { return d.Explained != "" })
}
