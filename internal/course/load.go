package course

import (
	"io/fs"

	"kubistro/internal/checker"
)

// Load reads all courses: the folders at the root of fsys that have a
// course.yaml. Its error is Faults, with every fault at once.
func Load(fsys fs.FS) (*Library, error) { panic("being built") }

// Lint returns every fault of every course, sorted by file and line. Images are
// looked up in pantry; with a nil pantry they aren't looked at.
func Lint(fsys fs.FS, pantry []Repository) []Fault { panic("being built") }

// Schema is the JSON Schema of course.yaml, level.yaml and quiz.yaml:
// an object with one schema for each under "$defs" (course, level, quiz).
func Schema() []byte { panic("being built") }

// Course finds a course; nil when there is none.
func (l *Library) Course(id string) *Course {
	for _, c := range l.Courses {
		if c.ID == id {
			return c
		}
	}
	return nil
}

// Level finds a level; nil when there is none.
func (c *Course) Level(id string) *Level {
	for _, l := range c.Levels {
		if l.ID == id {
			return l
		}
	}
	return nil
}

// Exercise finds an exercise in any level; nil when there is none.
func (c *Course) Exercise(id string) *Exercise {
	for _, l := range c.Levels {
		for _, e := range l.Exercises {
			if e.ID == id {
				return e
			}
		}
	}
	return nil
}

// Question finds a quiz question in any level; nil when there is none.
func (c *Course) Question(id string) *Question {
	for _, l := range c.Levels {
		for _, q := range l.Quiz {
			if q.ID == id {
				return q
			}
		}
	}
	return nil
}

// Check finds a check; nil when there is none.
func (e *Exercise) Check(id string) *checker.Check {
	for _, c := range e.Checks {
		if c.ID() == id {
			return c
		}
	}
	return nil
}
