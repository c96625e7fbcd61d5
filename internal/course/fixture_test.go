package course

import (
	"strings"
	"testing"
	"testing/fstest"
)

// files is a course that has no fault; tests break one thing of it.
func files() map[string]string {
	return map[string]string{
		"diner/course.yaml": `title: {zh-TW: 小館, en: Diner}
summary: {zh-TW: 一間店, en: A house}
cast:
  - id: cook
    name: {zh-TW: 廚師, en: The cook}
    role: {zh-TW: 容器, en: a Pod}
levels:
  - title: {zh-TW: 一, en: One}
    summary: {zh-TW: 第一關, en: The first}
  - title: {zh-TW: 二, en: Two}
    summary: {zh-TW: 還沒好, en: Not yet}
`,
		"diner/1/level.yaml": `minutes: 5
needs: [audit]
missingImages: ["soup:9"]
exercises:
  - id: boil
    title: {zh-TW: 煮, en: Boil}
    task: {zh-TW: "煮 ` + "`soup`" + `", en: Boil it}
    setup: [manifests/soup.yaml]
    ready: soup != null
    files: {soup.yaml: manifests/soup.yaml}
    objects:
      soup: {kind: Deployment, name: soup}
    checks:
      - id: three
        title: {zh-TW: 三碗, en: Three}
        expect:
          - that: soup.spec.replicas == 3
      - id: asked
        title: {zh-TW: 問, en: Asked}
        answer:
          prompt: {zh-TW: 幾碗, en: How many}
        expect:
          - that: answer == '3'
            message: {zh-TW: 不是, en: Nope}
    hints:
      - text: {zh-TW: 提示, en: Hint}
      - text: {zh-TW: 另一個, en: Another}
        when: soup == null
    solutions:
      - title: {zh-TW: 解, en: Solution}
        script: kubectl scale deployment soup --replicas=3
        answers: {asked: "3"}
    wrong:
      - title: nothing
        script: "true"
        check: three
        message: should be
      - title: two
        script: kubectl scale deployment soup --replicas=2
        check: three
        message: it is 2
`,
		"diner/1/quiz.yaml": `questions:
  - id: which
    kind: one
    text: {zh-TW: 哪個, en: Which}
    options:
      - {id: a, right: true, text: {zh-TW: 甲, en: A}, why: {zh-TW: 對, en: Right}}
      - {id: b, text: {zh-TW: 乙, en: B}, why: {zh-TW: 錯, en: Wrong}}
      - {id: c, text: {zh-TW: 丙, en: C}, why: {zh-TW: 錯, en: Wrong}}
`,
		"diner/1/manifests/soup.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: soup}
spec:
  template:
    spec:
      containers:
        - name: soup
          image: soup:1
---
apiVersion: v1
kind: Pod
metadata: {name: bad}
spec:
  containers:
    - image: "soup:9"
`,
		"diner/1/lesson.zh-TW.md": "# 湯\n\n開場。\n\n## 煮 {#boil}\n\n```command\nkubectl get pods\n```\n\n```exercise boil\n```\n\n```quiz\n```\n",
		"diner/1/lesson.en.md":    "# Soup\n\nOpening.\n\n## Boiling {#boil}\n\n```command\nkubectl get pods\n```\n\n```exercise boil\n```\n\n```quiz\n```\n",
	}
}

func fixture(f map[string]string) fstest.MapFS {
	out := fstest.MapFS{}
	for name, text := range f {
		out[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return out
}

// pantry is what the fixture's images are looked up in.
func pantry() []Repository {
	return []Repository{{Name: "docker.io/library/soup", Tags: []string{"1", "2"}}}
}

// lineOf is the number of the first line that holds part.
func lineOf(t *testing.T, text, part string) int {
	t.Helper()
	i := strings.Index(text, part)
	if i < 0 {
		t.Fatalf("the fixture has no %q", part)
	}
	return 1 + strings.Count(text[:i], "\n")
}
