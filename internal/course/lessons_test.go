package course

import (
	"encoding/json"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"kubistro/lessons"
)

func restaurant(t *testing.T) *Course {
	t.Helper()
	l, err := Load(lessons.FS)
	if err != nil {
		t.Fatal(err)
	}
	return l.Course("restaurant")
}

func TestCoursesAreInOrder(t *testing.T) {
	l, err := Load(lessons.FS)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, c := range l.Courses {
		ids = append(ids, c.ID)
	}
	if len(ids) < 2 || ids[0] != "restaurant" || ids[1] != "compose" {
		t.Errorf("the courses are listed as %v", ids)
	}
}

func TestRestaurantHasSevenLevels(t *testing.T) {
	c := restaurant(t)
	if len(c.Levels) != 7 {
		t.Fatalf("%d levels", len(c.Levels))
	}
	for _, l := range c.Levels {
		if l.Coming {
			continue
		}
		if len(l.Quiz) < 5 {
			t.Errorf("level %s has %d questions", l.ID, len(l.Quiz))
		}
		for lang, d := range l.Lesson {
			shown := map[*Exercise]bool{}
			for _, s := range d.Sections {
				for _, b := range s.Blocks {
					shown[b.Exercise] = true
				}
			}
			for _, e := range l.Exercises {
				if !shown[e] {
					t.Errorf("the %s lesson of level %s has no place for exercise %s", lang, l.ID, e.ID)
				}
			}
		}
	}
}

// TestSetupCarriesLastApplied: a start state that pretends that the learner's file was
// applied has to carry what kubectl apply would have noted.
func TestSetupCarriesLastApplied(t *testing.T) {
	const annotation = "kubectl.kubernetes.io/last-applied-configuration"
	n := 0
	for _, l := range restaurant(t).Levels {
		for _, e := range l.Exercises {
			for _, path := range e.Setup {
				raw, err := fs.ReadFile(l.Files, path)
				if err != nil {
					t.Fatal(err)
				}
				var o map[string]any
				if err := yaml.Unmarshal(raw, &o); err != nil {
					t.Fatal(err)
				}
				annotations, _ := o["metadata"].(map[string]any)["annotations"].(map[string]any)
				noted, _ := annotations[annotation].(string)
				if noted == "" {
					continue
				}
				n++
				delete(annotations, annotation)
				var last map[string]any
				if err := json.Unmarshal([]byte(noted), &last); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(o, last); diff != "" {
					t.Errorf("%s: the manifest and its note differ:\n%s", path, diff)
				}
			}
		}
	}
	if n == 0 {
		t.Error("no start state has the note")
	}
}

// TestShownTestsExist: a question that names a Go test for what it says names one that there is.
func TestShownTestsExist(t *testing.T) {
	l, err := Load(lessons.FS)
	if err != nil {
		t.Fatal(err)
	}
	named := map[string][]string{}
	for _, c := range l.Courses {
		for _, level := range c.Levels {
			for _, q := range level.Quiz {
				for _, s := range q.Shown {
					if strings.HasPrefix(s, "Test") {
						named[s] = append(named[s], c.ID+"/"+level.ID+"/"+q.ID)
					}
				}
			}
		}
	}
	if len(named) == 0 {
		return
	}
	for _, dir := range []string{"internal", "cmd", "web", "hack"} {
		err := fs.WalkDir(os.DirFS("../.."), dir, func(p string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && d.Name() == "node_modules":
				return fs.SkipDir
			case !strings.HasSuffix(p, "_test.go"):
				return nil
			}
			raw, err := os.ReadFile("../../" + p)
			for name := range named {
				if strings.Contains(string(raw), "func "+name+"(") {
					delete(named, name)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, questions := range named {
		t.Errorf("there is no %s, which shows %v", name, questions)
	}
}

// TestChineseIsTaiwanese looks for characters and words that aren't used in Taiwan.
func TestChineseIsTaiwanese(t *testing.T) {
	const simplified = "们这个为说时会来对发现实过还进开关问题学习经点应么当从种样头间长给让请认识读写数网络节务运环设错误"
	foreign := []string{"網絡", "軟件", "硬件", "服務器", "文件夾", "鏡像", "默認", "信息", "視頻", "程序員", "內存", "運行", "響應", "終端里", "容器里", "集群", "配置文件", "命令行", "質量"}
	err := fs.WalkDir(lessons.FS, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := fs.ReadFile(lessons.FS, p)
		if err != nil {
			return err
		}
		for i, line := range strings.Split(string(raw), "\n") {
			for _, w := range foreign {
				if strings.Contains(line, w) {
					t.Errorf("%s:%d: %q isn't said in Taiwan", p, i+1, w)
				}
			}
			if at := strings.IndexAny(line, simplified); at >= 0 {
				t.Errorf("%s:%d: a simplified character in %q", p, i+1, line[at:])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
