// Package quiz decides when a quiz question comes back to a learner. It does no
// I/O and knows no clock: times are given.
package quiz

import "time"

// Steps are the pauses after which a missed question comes back.
var Steps = []time.Duration{1 * day, 3 * day, 7 * day, 21 * day}

const day = 24 * time.Hour

// Memory is what is kept of a learner's answers to one question.
type Memory struct {
	Course, Question string
	// Step is the pause that runs, an index of Steps; it means nothing without Due.
	Step int
	// Due is when the question comes back; zero: it doesn't, because it was never
	// missed, or was known after each of the pauses.
	Due      time.Time
	Correct  bool // the last answer
	Answered int
	Missed   int
	At       time.Time // of the last answer
}

// DueAt reports whether the question is to be asked again at a time.
func (m Memory) DueAt(now time.Time) bool { return !m.Due.IsZero() && !now.Before(m.Due) }

// After is the memory after one more answer. A wrong one goes to the first pause,
// a right one to the next, and out of the list after the last. A right answer
// before the question is due moves nothing: it was read a moment ago.
// An answer that isn't newer than the last one changes nothing, so that sending it twice is safe.
func (m Memory) After(correct bool, at time.Time) Memory {
	if !at.After(m.At) {
		return m
	}
	due := m.DueAt(at)
	m.Correct, m.At = correct, at
	m.Answered++
	switch {
	case !correct:
		m.Missed++
		m.Step, m.Due = 0, at.Add(Steps[0])
	case due && m.Step+1 < len(Steps):
		m.Step++
		m.Due = at.Add(Steps[m.Step])
	case due:
		m.Step, m.Due = 0, time.Time{}
	}
	return m
}
