package main

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kubistro/internal/course"
	"kubistro/internal/lab"
	"kubistro/lessons"
)

// courseOptions say which courses there are.
type courseOptions struct {
	folders []string
	only    bool // without the built-in ones
}

func (o *courseOptions) flags(f *pflag.FlagSet) {
	f.StringSliceVar(&o.folders, "courses", nil, "folders with more courses, or courses themselves; they are read again when they change")
}

// open reads the courses. Faults of the folders are left to the caller; the built-in courses have none.
func (o courseOptions) open() (*course.Folders, *course.Library, course.Faults, error) {
	folders, err := course.NewFolders(lessons.FS, o.only, o.folders)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("courses: %w", err)
	}
	courses, faults := folders.Reload()
	return folders, &course.Library{Courses: courses}, faults, nil
}

// calm is how long the files have to be left alone before they are read: editors write in pieces.
const calm = 200 * time.Millisecond

// watchCourses reads the folders again after each change until ctx ends and calls reloaded then.
func watchCourses(ctx context.Context, folders *course.Folders, library *course.Library, log *slog.Logger, reloaded func(course.Faults)) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch the courses: %w", err)
	}
	defer w.Close()
	for _, dir := range folders.Dirs() {
		if err := watchTree(w, dir); err != nil {
			return fmt.Errorf("watch the courses: %w", err)
		}
	}
	var due <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case e, open := <-w.Events:
			if !open {
				return nil
			}
			if e.Has(fsnotify.Create) {
				if info, err := os.Stat(e.Name); err == nil && info.IsDir() {
					if err := watchTree(w, e.Name); err != nil {
						log.Warn("new folder not watched", "folder", e.Name, "error", err)
					}
				}
			}
			if e.Op != fsnotify.Chmod {
				due = time.After(calm)
			}
		case err := <-w.Errors:
			log.Warn("watch on the courses", "error", err)
			due = time.After(calm) // events may be lost
		case <-due:
			due = nil
			courses, faults := folders.Reload()
			library.Replace(courses)
			logFaults(log, faults)
			log.Info("courses read again", "courses", len(courses), "faults", len(faults))
			reloaded(faults)
		}
	}
}

func watchTree(w *fsnotify.Watcher, dir string) error {
	return filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return w.Add(p)
	})
}

func logFaults(log *slog.Logger, faults course.Faults) {
	for _, f := range faults {
		log.Warn("fault in a course", "file", f.File, "line", f.Line, "fault", f.Message)
	}
}

// What labserver courses prints.
type (
	courseInfo struct {
		ID     string      `json:"id"`
		Title  lab.Text    `json:"title"`
		Levels []levelInfo `json:"levels"`
	}
	levelInfo struct {
		ID        string         `json:"id"`
		Title     lab.Text       `json:"title"`
		Coming    bool           `json:"coming,omitempty"`
		Minutes   int            `json:"minutes,omitempty"`
		Needs     []string       `json:"needs,omitempty"`
		Languages []lab.Lang     `json:"languages"`
		Exercises []exerciseInfo `json:"exercises"`
		Questions []questionInfo `json:"questions"`
	}
	exerciseInfo struct {
		ID        string   `json:"id"`
		Letter    string   `json:"letter"`
		Title     lab.Text `json:"title"`
		Needs     []string `json:"needs,omitempty"`
		Checks    []string `json:"checks"`
		Hints     int      `json:"hints"`
		Solutions []string `json:"solutions"`
		Wrong     []string `json:"wrong"`
	}
	questionInfo struct {
		ID    string   `json:"id"`
		Kind  string   `json:"kind"`
		Topic string   `json:"topic,omitempty"`
		Shown []string `json:"shown,omitempty"`
	}
)

func infoOf(c *course.Course) courseInfo {
	out := courseInfo{ID: c.ID, Title: c.Title}
	for _, l := range c.Levels {
		v := levelInfo{ID: l.ID, Title: l.Title, Coming: l.Coming, Minutes: l.Minutes, Needs: l.Needs, Languages: []lab.Lang{}, Exercises: []exerciseInfo{}, Questions: []questionInfo{}}
		for _, lang := range lab.Langs() {
			if l.Lesson[lang] != nil {
				v.Languages = append(v.Languages, lang)
			}
		}
		for _, e := range l.Exercises {
			x := exerciseInfo{ID: e.ID, Letter: e.Letter, Title: e.Title, Hints: len(e.Hints), Checks: []string{}, Solutions: []string{}, Wrong: []string{}}
			for _, n := range e.Needs {
				x.Needs = append(x.Needs, n.ID)
			}
			for _, k := range e.Checks {
				x.Checks = append(x.Checks, k.ID())
			}
			for _, s := range e.Solutions {
				x.Solutions = append(x.Solutions, s.Title.En)
			}
			for _, w := range e.Wrong {
				x.Wrong = append(x.Wrong, w.Title)
			}
			v.Exercises = append(v.Exercises, x)
		}
		for _, q := range l.Quiz {
			v.Questions = append(v.Questions, questionInfo{ID: q.ID, Kind: string(q.Kind), Topic: q.Topic, Shown: q.Shown})
		}
		out.Levels = append(out.Levels, v)
	}
	return out
}

func (p *program) courses() *cobra.Command {
	var o courseOptions
	var asJSON bool
	cmd := &cobra.Command{
		Use: "courses", Short: "List courses, levels, exercises and questions", Args: cobra.NoArgs,
		Long: `List what there is in the built-in courses and those of --courses: levels, exercises with their checks,
solutions and wrong answers, quiz questions, languages. A course with faults isn't listed; labserver lint names them.`,
		RunE: func(*cobra.Command, []string) error {
			_, library, faults, err := o.open()
			if err != nil {
				return err
			}
			var out []courseInfo
			for _, c := range library.All() {
				out = append(out, infoOf(c))
			}
			if asJSON {
				if err := p.print(map[string]any{"courses": out}); err != nil {
					return err
				}
			} else {
				p.courseTable(out)
			}
			for i := range faults {
				fmt.Fprintln(p.stderr, faults[i].Error())
			}
			if len(faults) > 0 {
				return &findingsError{len(faults)}
			}
			return nil
		},
	}
	o.flags(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (p *program) courseTable(list []courseInfo) {
	t := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "LEVEL\tTITLE\tEXERCISES\tCHECKS\tSOLUTIONS\tWRONG\tQUESTIONS\tLANGUAGES")
	for _, c := range list {
		for _, l := range c.Levels {
			if l.Coming {
				fmt.Fprintf(t, "%s/%s\t%s\tcoming\n", c.ID, l.ID, l.Title.En)
				continue
			}
			var checks, solutions, wrong int
			for _, e := range l.Exercises {
				checks, solutions, wrong = checks+len(e.Checks), solutions+len(e.Solutions), wrong+len(e.Wrong)
			}
			var langs []string
			for _, lang := range l.Languages {
				langs = append(langs, string(lang))
			}
			fmt.Fprintf(t, "%s/%s\t%s\t%d\t%d\t%d\t%d\t%d\t%s\n", c.ID, l.ID, l.Title.En, len(l.Exercises), checks, solutions, wrong, len(l.Questions), strings.Join(langs, " "))
		}
	}
	t.Flush()
}
