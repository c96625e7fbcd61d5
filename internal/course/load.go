package course

import (
	"cmp"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strconv"

	"kubistro/internal/checker"
	"kubistro/internal/lab"
)

// Load reads all courses: the folders at the root of fsys that have a
// course.yaml. Its error is Faults, with every fault at once.
func Load(fsys fs.FS) (*Library, error) {
	l, faults := load(fsys, nil)
	if len(faults) > 0 {
		return nil, faults
	}
	return l, nil
}

// load reads the courses of a file system; shared stands in for its shared folder where it has none.
func load(fsys, shared fs.FS) (*Library, Faults) {
	if _, err := fs.Stat(fsys, sharedFolder); err == nil || shared == nil {
		shared = fsys
	}
	l := &Library{}
	terms, faults := glossary(shared)
	folders, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, Faults{{File: ".", Message: err.Error()}}
	}
	for _, f := range folders {
		if !f.IsDir() {
			continue
		}
		if _, err := fs.Stat(fsys, path.Join(f.Name(), "course.yaml")); err != nil {
			continue
		}
		b := &builder{fsys: fsys, shared: shared, course: &Course{ID: f.Name(), Glossary: terms}, ids: map[string]string{}}
		b.build()
		l.Courses = append(l.Courses, b.course)
		faults = append(faults, b.faults...)
	}
	slices.SortStableFunc(l.Courses, func(a, b *Course) int { return cmp.Compare(uint(a.Place-1), uint(b.Place-1)) }) // by name within
	return l, sorted(faults)
}

// sorted orders faults by file and line and drops repetitions.
func sorted(f Faults) Faults {
	slices.SortStableFunc(f, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(f)
}

// builder makes one course of its folder.
type builder struct {
	fsys   fs.FS
	shared fs.FS // has the shared folder
	course *Course
	ids    map[string]string // of exercises and questions: where each was first
	faults Faults
}

// read decodes a file; false when it isn't there or unreadable.
func (b *builder) read(name string, out any) bool {
	raw, err := fs.ReadFile(b.fsys, name)
	if err != nil {
		message := "the file is missing"
		if !errors.Is(err, fs.ErrNotExist) {
			message = err.Error()
		}
		b.faults = append(b.faults, Fault{File: name, Message: message})
		return false
	}
	d := &decoder{file: name}
	d.decode(raw, out)
	b.faults = append(b.faults, d.faults...)
	return true
}

func (b *builder) build() {
	var src courseFile
	if !b.read(path.Join(b.course.ID, "course.yaml"), &src) {
		return
	}
	b.course.Place = src.Place
	b.course.Title, b.course.Summary = src.Title.Text, src.Summary.Text
	b.course.Spec = lab.DefaultClusterSpec()
	b.course.Spec.WithoutLoadBalancers = src.NoDoors
	file := path.Join(b.course.ID, "course.yaml")
	if len(src.Kitchens) > 0 {
		b.course.Spec.Kitchens = b.kitchens(file, src.Kitchens)
	}
	b.course.Spec.Speed = b.speed(file, 0, src.Speed)
	for _, p := range src.Cast {
		b.course.Cast = append(b.course.Cast, Person{ID: p.ID.Value, Name: p.Name.Text, Role: p.Role.Text})
	}
	for i, n := range src.Levels {
		b.level(i+1, n)
	}
}

// level reads a level's folder, or announces the level when there is none.
func (b *builder) level(number int, n levelNode) {
	id := strconv.Itoa(number)
	l := &Level{Course: b.course, ID: id, Number: number, Title: n.Title.Text, Summary: n.Summary.Text}
	b.course.Levels = append(b.course.Levels, l)
	dir := path.Join(b.course.ID, id)
	if _, err := fs.Stat(b.fsys, dir); err != nil {
		l.Coming = true
		return
	}
	files, err := fs.Sub(b.fsys, dir)
	if err != nil {
		b.faults = append(b.faults, Fault{File: dir, Message: err.Error()})
		return
	}
	l.Files = withShared{files, b.shared}
	var src levelFile
	if b.read(path.Join(dir, "level.yaml"), &src) {
		lb := &levelBuilder{builder: b, level: l, dir: dir, file: path.Join(dir, "level.yaml")}
		lb.build(src)
	}
	var quiz quizFile
	if b.read(path.Join(dir, "quiz.yaml"), &quiz) {
		(&quizBuilder{builder: b, level: l, file: path.Join(dir, "quiz.yaml")}).build(quiz)
	}
	b.lessons(l, dir)
}

func (b *builder) lessons(l *Level, dir string) {
	l.Lesson = map[lab.Lang]*Document{}
	for _, lang := range lab.Langs() {
		name := path.Join(dir, "lesson."+string(lang)+".md")
		raw, err := fs.ReadFile(b.fsys, name)
		if err != nil {
			b.faults = append(b.faults, Fault{File: name, Message: "the lesson is missing in " + string(lang)})
			continue
		}
		doc, faults := parseLesson(l, name, lang, raw)
		newLinker(b.course.Glossary, lang).document(doc)
		l.Lesson[lang] = doc
		b.faults = append(b.faults, faults...)
	}
	if zh, en := l.Lesson[lab.ZhTW], l.Lesson[lab.En]; zh != nil && en != nil {
		b.faults = append(b.faults, compareLessons(path.Join(dir, "lesson.en.md"), zh, en)...)
	}
}

// Course finds a course; nil when there is none.
func (l *Library) Course(id string) *Course {
	for _, c := range l.All() {
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

// Before lists the exercises whose solutions lead to this one's start state: what it needs
// and what those need, in the order of the course.
func (e *Exercise) Before() []*Exercise {
	want := map[*Exercise]bool{}
	var add func(e *Exercise)
	add = func(e *Exercise) {
		for _, n := range e.Needs {
			if !want[n] {
				want[n] = true
				add(n)
			}
		}
	}
	add(e)
	var out []*Exercise
	for _, l := range e.Level.Course.Levels {
		for _, x := range l.Exercises {
			if want[x] {
				out = append(out, x)
			}
		}
	}
	return out
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
