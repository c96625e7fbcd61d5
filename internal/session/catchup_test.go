package session_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"kubistro/internal/cluster"
	"kubistro/internal/course"
	"kubistro/internal/lab"
	"kubistro/internal/session"
)

const chainLevel = `minutes: 5
exercises:
  - id: write
    title: {zh-TW: 寫, en: Write the line}
    task: {zh-TW: 寫, en: Write}
    objects: {grill: {kind: Deployment, name: grill}}
    checks:
      - id: there
        title: {zh-TW: 有, en: There}
        expect: [{that: rolledOut(grill), message: {zh-TW: 還沒, en: not yet}}]
      - id: told
        title: {zh-TW: 說, en: Told}
        answer: {prompt: {zh-TW: 幾位, en: How many}}
        expect: [{that: answer == string(grill.spec.replicas), message: {zh-TW: 不對, en: wrong}}]
    hints: [{text: {zh-TW: 一, en: One}}, {text: {zh-TW: 二, en: Two}}]
    solutions:
      - title: {zh-TW: 解, en: Solution}
        script: |
          kubectl create deployment grill --image=grill-cook:1.4
          kubectl rollout status deployment/grill --timeout=60s
        answers: {told: "$(kubectl get deployment grill -o jsonpath='{.spec.replicas}')"}
    wrong:
      - {title: a, script: "true", check: there, message: no}
      - {title: b, script: "false", check: there, message: no}
  - id: scale
    title: {zh-TW: 加, en: Scale it}
    task: {zh-TW: 加, en: Scale}
    needs: [write]
    objects: {grill: {kind: Deployment, name: grill}}
    checks:
      - id: there
        title: {zh-TW: 兩位, en: Two}
        expect: [{that: grill.spec.replicas == 2}]
      - id: seen
        title: {zh-TW: 紀錄, en: Recorded}
        expect: [{that: "record.exists(e, e.type == 'audit' && e.actor == 'learner' && e.object.name == 'grill')", message: {zh-TW: 沒有, en: nothing}}]
    hints: [{text: {zh-TW: 一, en: One}}, {text: {zh-TW: 二, en: Two}}]
    solutions:
      - {title: {zh-TW: 解, en: Solution}, script: "kubectl scale deployment grill --replicas=2"}
    wrong:
      - {title: a, script: "true", check: there, message: no}
      - {title: b, script: "false", check: there, message: no}
`

const chainSecond = `minutes: 5
exercises:
  - id: open
    title: {zh-TW: 開門, en: Open the door}
    task: {zh-TW: 開, en: Open}
    needs: [scale]
    setup: [manifests/box.yaml, manifests/fine.yaml]
    ready: house.data.state == 'fine'
    inject: [manifests/broken.yaml]
    shows: house.data.state == 'broken'
    objects: {house: {kind: ConfigMap, name: house}, grill: {kind: Deployment, name: grill}, door: {kind: Service, name: grill}}
    guests:
      tables: {url: "http://grill/", rate: 10, keep: 30s}
    requests:
      inside: {url: "http://grill/", from: pod/box, times: 6, together: 3}
      outside: {url: "http://grill/", from: street}
    checks:
      - id: served
        title: {zh-TW: 客人, en: Guests are served}
        mustHold: true
        expect:
          - {that: "door != null", message: {zh-TW: 沒有門, en: no door}}
          - {that: "size(tables.filter(v, ok(v))) > 5", message: {zh-TW: 太少, en: "too few of {size(tables)}"}}
          - {that: "size(spread(tables)) == grill.spec.replicas", message: {zh-TW: 不均, en: "{spread(tables)}"}}
      - id: box
        title: {zh-TW: 從 Pod, en: From a Pod}
        expect: [{that: "errorRate(inside) == 0.0 && size(inside) == 6", message: {zh-TW: 不行, en: "{inside[0].failure}"}}]
      - id: street
        title: {zh-TW: 從街上, en: From the street}
        expect: [{that: "outside[0].failure == 'no such host'", message: {zh-TW: 不行, en: "{outside[0].failure}"}}]
    hints: [{text: {zh-TW: 一, en: One}}, {text: {zh-TW: 二, en: Two}}]
    solutions:
      - {title: {zh-TW: 解, en: Solution}, script: "kubectl expose deployment grill --port=80 --target-port=8080"}
    wrong:
      - {title: a, script: "true", check: served, message: no}
      - {title: b, script: "false", check: served, message: no}
  - id: alone
    title: {zh-TW: 從頭, en: Afresh}
    task: {zh-TW: 空, en: Empty}
    fresh: true
    setup: [manifests/fine.yaml]
    objects: {house: {kind: ConfigMap, name: house}, grill: {kind: Deployment, name: grill}}
    checks:
      - {id: gone, title: {zh-TW: 沒了, en: Nothing else}, expect: [{that: "house != null && grill == null", message: {zh-TW: 還在, en: it is still there}}]}
    hints: [{text: {zh-TW: 一, en: One}}, {text: {zh-TW: 二, en: Two}}]
    solutions: [{title: {zh-TW: 解, en: Solution}, script: "true"}]
    wrong:
      - {title: a, script: "true", check: gone, message: no}
      - {title: b, script: "false", check: gone, message: no}
`

// chain is a course of two levels whose exercises go on from each other.
func chain(t *testing.T) *course.Library {
	t.Helper()
	title := "{zh-TW: 一, en: One}"
	files := fstest.MapFS{}
	for name, text := range map[string]string{
		"restaurant/course.yaml":             "title: " + title + "\nsummary: " + title + "\nlevels:\n  - {title: " + title + ", summary: " + title + "}\n  - {title: " + title + ", summary: " + title + "}\n",
		"restaurant/1/level.yaml":            chainLevel,
		"restaurant/2/level.yaml":            chainSecond,
		"restaurant/2/manifests/box.yaml":    "apiVersion: v1\nkind: Pod\nmetadata: {name: box}\nspec:\n  containers:\n    - {name: box, image: \"toolbox:1.0\", command: [sleep, infinity]}\n",
		"restaurant/2/manifests/fine.yaml":   "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: house}\ndata: {state: fine}\n",
		"restaurant/2/manifests/broken.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: house}\ndata: {state: broken}\n",
		"restaurant/1/quiz.yaml":             "questions: []\n", "restaurant/2/quiz.yaml": "questions:\n  - {id: ask, kind: cluster, text: " + title + ", objects: {grill: {kind: Deployment, name: grill}}, that: answer == string(grill.spec.replicas), why: " + title + ", otherwise: {zh-TW: 不, en: 'not {answer}'}}\n",
		"restaurant/1/lesson.zh-TW.md": "# 一\n", "restaurant/1/lesson.en.md": "# One\n",
		"restaurant/2/lesson.zh-TW.md": "# 二\n", "restaurant/2/lesson.en.md": "# Two\n",
	} {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	l, err := course.Load(files)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func allMet(checks []lab.CheckResult) bool {
	return !slices.ContainsFunc(checks, func(c lab.CheckResult) bool { return c.Status != lab.CheckMet })
}

// finished waits for an operation of my session.
func (s *server) finished(t *testing.T, id string, op lab.Operation, err error) lab.Operation {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for err == nil && !op.Done {
		<-tick.C
		op, err = s.Operation(t.Context(), me, id, op.ID)
	}
	if err != nil || op.Problem != nil {
		t.Fatalf("operation: %v %+v", err, op.Problem)
	}
	return op
}

func statusOf(state lab.ExerciseState, check string) lab.CheckResult {
	for _, c := range state.Checks {
		if c.Check == check {
			return c
		}
	}
	return lab.CheckResult{}
}

func TestCatchUp(t *testing.T) {
	program := os.Getenv("KUBISTRO_LABSERVER")
	if program == "" {
		t.Fatal("KUBISTRO_LABSERVER names no labserver: run the tests with make test")
	}
	library := chain(t)
	s := serve(t, t.TempDir(), func(_ *cluster.Config, c *session.Config) {
		c.Library, c.Program, c.Args = library, program, []string{"terminal-child"}
	})
	defer s.stop()
	v, _, err := s.Open(t.Context(), me, "restaurant")
	if err != nil {
		t.Fatal(err)
	}
	s.ready(t, v.ID)
	if _, err := s.StartExercise(t.Context(), me, v.ID, "open"); lab.AsError(err).Code != lab.CodeConflict || !strings.Contains(lab.AsError(err).Text.En, "Scale it") {
		t.Errorf("entered directly: %v, want a conflict that names what is missing", err)
	}
	list, err := s.Exercises(t.Context(), me, v.ID, "2")
	if err != nil || !slices.Equal(list[0].Waits, []string{"scale"}) {
		t.Errorf("waits for %v (%v)", list, err)
	}

	op, err := s.ResetExercise(t.Context(), me, v.ID, "open")
	if op = s.finished(t, v.ID, op, err); op.CatchUpMillis == 0 || op.CatchUpMillis > op.Millis {
		t.Errorf("caught up for %d ms of %d", op.CatchUpMillis, op.Millis)
	}
	state, err := s.Check(t.Context(), me, v.ID, "open")
	if err != nil || !state.Started || statusOf(state, "served").Message.En != "no door" || statusOf(state, "street").Status != lab.CheckMet {
		t.Fatalf("after catching up: %v %+v", err, state)
	}
	if out, _, err := s.Exec(t.Context(), me, v.ID, "kubectl get deployment grill -o jsonpath={.spec.replicas}; kubectl get configmap house -o jsonpath={.data.state}; kubectl wait pod/box --for=condition=Ready --timeout=60s"); err != nil || !strings.HasPrefix(out, "2broken") {
		t.Errorf("the cluster: %q %v", out, err)
	}
	list, err = s.Exercises(t.Context(), me, v.ID, "1")
	if err != nil || list[0].Done || list[1].Done || list[1].Waits != nil {
		t.Errorf("what the lab did: %+v (%v), want nothing credited and nothing to wait for", list, err)
	}

	q := library.Course("restaurant").Question("ask")
	for answer, status := range map[string]lab.CheckStatus{"2": lab.CheckMet, "3": lab.CheckNotMet} {
		if r, err := s.Ask(t.Context(), me, "restaurant", q, answer); err != nil || r.Status != status {
			t.Errorf("a question about the cluster, answered %s: %+v %v", answer, r, err)
		}
	}
	if _, err := s.Ask(t.Context(), somebody, "restaurant", q, "2"); lab.AsError(err).Code != lab.CodeConflict {
		t.Errorf("without a session: %v", err)
	}

	t.Run("guests and requests", func(t *testing.T) {
		if _, _, err := s.Exec(t.Context(), me, v.ID, "kubectl expose deployment grill --port=80 --target-port=8080"); err != nil {
			t.Fatal(err)
		}
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for limit := time.Now().Add(time.Minute); !state.Done; <-tick.C {
			if state, err = s.Check(t.Context(), me, v.ID, "open"); err != nil || time.Now().After(limit) {
				t.Fatalf("never done: %v %+v", err, state.Checks)
			}
		}
		// The guests have gone home with that, and what they said still holds.
		if state, err = s.Check(t.Context(), me, v.ID, "open"); err != nil || !allMet(state.Checks) {
			t.Errorf("after it was done: %v %+v", err, state.Checks)
		}
	})

	// Done by the learner, step by step, each opens the next.
	t.Run("step by step", func(t *testing.T) {
		op, err := s.ResetExercise(t.Context(), me, v.ID, "write")
		s.finished(t, v.ID, op, err)
		if _, err := s.StartExercise(t.Context(), me, v.ID, "scale"); lab.AsError(err).Code != lab.CodeConflict {
			t.Errorf("before the first is done: %v", err)
		}
		op, err = s.Solve(t.Context(), me, v.ID, "write", 0)
		s.finished(t, v.ID, op, err)
		state, err := s.StartExercise(t.Context(), me, v.ID, "scale")
		if err != nil || !state.Started || state.Waits != nil {
			t.Errorf("after the first: %v %+v", err, state)
		}
		if c := statusOf(state, "there"); c.Found != "1" {
			t.Errorf("the line: %+v, want as the first exercise left it", c)
		}
	})

	// An exercise that begins afresh finds nothing that another left, whose start state is gone.
	t.Run("afresh", func(t *testing.T) {
		state, err := s.StartExercise(t.Context(), me, v.ID, "alone")
		if err != nil {
			t.Fatal(err)
		}
		if state, err = s.Check(t.Context(), me, v.ID, "alone"); err != nil || !allMet(state.Checks) {
			t.Errorf("%v %+v", err, state.Checks)
		}
		all, err := s.Exercises(t.Context(), me, v.ID, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range all {
			if e.Started != (e.Exercise == "alone") {
				t.Errorf("%s is started: %v", e.Exercise, e.Started)
			}
		}
	})
}
