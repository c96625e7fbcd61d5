package webtest

import (
	"testing/fstest"

	"kubistro/internal/checker"
	"kubistro/internal/course"
	"kubistro/internal/lab"
)

func both(zh, en string) lab.Text { return lab.Text{ZhTW: zh, En: en} }

// Library is a small course that has every kind of block, exercise and question.
func Library() *course.Library {
	c := &course.Course{
		ID: "restaurant", Title: both("那間餐廳", "The restaurant"),
		Summary: both("從一位廚師倒下開始，看懂 Kubernetes 的每個名字為什麼存在。", "From the first cook who falls: why every name in Kubernetes exists."),
		Spec:    lab.DefaultClusterSpec(),
	}
	c.Glossary = []*course.Term{
		{ID: "pod", Name: "Pod", Metaphor: both("站在一個崗位上的廚師", "a cook at a station"), Truth: both("Kubernetes 排程的最小單位。", "The smallest thing that is scheduled."), Taught: []course.Place{{Course: "restaurant", Level: "1"}}},
		{ID: "ingress", Name: "Ingress", Metaphor: both("貼在大門口的帶位規則", "the seating rules posted at the main door"), Truth: both("只是規則。", "Rules, no more."), Taught: []course.Place{{Course: "restaurant", Level: "3"}, {Course: "compose", Level: "3"}}},
	}
	c.Levels = []*course.Level{levelOne(c)}
	for i, t := range []lab.Text{
		both("每次都換分機", "A new extension every time"), both("街上的客人", "The guests in the street"),
		both("食譜和鑰匙不該放在腦袋裡", "Recipes and keys don't belong in heads"), both("一個人占了整間廚房", "One cook takes the whole kitchen"),
		both("客人來了又走", "Guests come and go"), both("慢動作重播星期五中午", "Friday noon in slow motion"),
	} {
		c.Levels = append(c.Levels, &course.Level{Course: c, ID: string(rune('2' + i)), Number: i + 2, Title: t, Summary: both("留到下一趟。", "For another evening."), Coming: true})
	}
	return &course.Library{Courses: []*course.Course{c}}
}

const grillYAML = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: grill
spec:
  replicas: 3 # always three cooks
  selector:
    matchLabels:
      station: grill
  template:
    metadata:
      labels:
        station: grill
    spec:
      containers:
        - name: grill
          image: grill-cook:1.4
`

func levelOne(c *course.Course) *course.Level {
	l := &course.Level{
		Course: c, ID: "1", Number: 1, Title: both("廚師倒下了", "Cooks fall"), Minutes: 40, Panels: course.Panels(),
		Summary: both("一位廚師離開之後，誰會補上？什麼時候沒有人補？", "When a cook leaves, who fills the place, and when does nobody?"),
		Files:   fstest.MapFS{"manifests/grill.yaml": {Data: []byte(grillYAML)}, "solutions/secret.sh": {Data: []byte("kubectl apply -f grill.yaml")}},
	}
	l.Exercises = []*course.Exercise{
		exercise(l, "bare-pod", "a", both("沒寫在白板上的廚師", "A cook without a line"),
			both("<p>用 <code>kubectl run solo --image=grill-cook:1.4</code> 請來一位廚師，再請他離開，看看有沒有人補上。</p>", "<p>Hire a cook with <code>kubectl run solo --image=grill-cook:1.4</code>, send him home, and see whether anybody comes.</p>"),
			check("hired", both("請來一位沒有寫在白板上的廚師 solo", "A cook named solo works without a line on the whiteboard"), nil),
			check("gone", both("solo 離開後沒有人補上", "After solo left, nobody took the place"), nil),
			check("why", both("說明為什麼", "Say why"), &checker.AnswerSpec{Prompt: both("是誰在數人頭？", "Who counts the heads?")})),
		exercise(l, "three-cooks", "b", both("白板寫上 grill：3", "Write “grill: 3”"),
			both("<p>套用 <code>grill.yaml</code>，再刪掉其中一個 Pod。</p>", "<p>Apply <code>grill.yaml</code>, then delete one of the Pods.</p>"),
			check("three", both("白板上的 grill 有三位廚師就緒", "Three cooks of grill are ready"), nil)),
	}
	l.Quiz = questions()
	l.Lesson = map[lab.Lang]*course.Document{lab.ZhTW: document(l, lab.ZhTW), lab.En: document(l, lab.En)}
	return l
}

func check(id string, title lab.Text, answer *checker.AnswerSpec) *checker.Check {
	spec := checker.Spec{ID: id, Title: title, Answer: answer, Expect: []checker.Expectation{{That: "size(record) > 0", Message: title}}}
	if answer != nil {
		spec.Expect[0].That = "answer != ''"
	}
	c, err := checker.Compile(spec)
	if err != nil {
		panic(err)
	}
	return c
}

func exercise(l *course.Level, id, letter string, title, task lab.Text, checks ...*checker.Check) *course.Exercise {
	hint := both("<p>先看 <code>kubectl get pods</code>。</p>", "<p>Look at <code>kubectl get pods</code> first.</p>")
	return &course.Exercise{
		Level: l, ID: id, Letter: letter, Title: title, TaskHTML: task, Checks: checks,
		Hints:     []course.Hint{{HTML: hint}, {HTML: both("<p>刪掉 Pod：<code>kubectl delete pod solo</code></p>", "<p>Delete the Pod: <code>kubectl delete pod solo</code></p>")}},
		Solutions: []course.Solution{{Title: both("用檔案", "With a file")}, {Title: both("用指令", "With a command")}},
	}
}

func questions() []*course.Question {
	return []*course.Question{
		{
			ID: "new-pod", Kind: course.OneOf, Topic: "restarts", HTML: both("<p>哪一件事會得到一個<strong>新的</strong> Pod？</p>", "<p>Which of these gives a <strong>new</strong> Pod?</p>"),
			Options: []course.Option{
				{ID: "crash", HTML: both("容器當掉", "The container crashes"), WhyHTML: both("kubelet 會在原地重新啟動，同一個 Pod。", "The kubelet starts it again in place: the same Pod.")},
				{ID: "delete", Right: true, HTML: both("Deployment 底下的 Pod 被刪除", "A Pod of a Deployment is deleted"), WhyHTML: both("對，ReplicaSet 數到少一個就補。", "Yes: the ReplicaSet counts one too few.")},
				{ID: "shout", HTML: both("老闆對著廚房大喊", "The owner shouts into the kitchen"), WhyHTML: both("廚房很吵，沒人聽見。", "The kitchen is loud; nobody heard.")},
			},
		},
		{
			ID: "keeps", Kind: course.SeveralOf, HTML: both("<p>容器重新啟動後，哪些不變？</p>", "<p>What stays after a container's restart?</p>"),
			Options: []course.Option{
				{ID: "name", Right: true, HTML: both("Pod 名稱", "The Pod's name"), WhyHTML: both("同一個 Pod。", "It is the same Pod.")},
				{ID: "ip", Right: true, HTML: both("Pod IP", "The Pod's IP"), WhyHTML: both("同一個 Pod。", "It is the same Pod.")},
				{ID: "count", HTML: both("RESTARTS", "RESTARTS"), WhyHTML: both("會加一。", "It goes up by one.")},
			},
		},
		{
			ID: "relay", Kind: course.Order, HTML: both("<p>把接力排好順序。</p>", "<p>Put the relay in order.</p>"),
			Options: []course.Option{
				{ID: "r1", Right: true, HTML: both("API server 存下 Deployment", "The API server stores the Deployment"), Text: both("存下", "store")},
				{ID: "r2", Right: true, HTML: both("ReplicaSet 建立 Pod", "The ReplicaSet makes a Pod"), Text: both("建立", "make")},
				{ID: "r3", Right: true, HTML: both("排程器選節點", "The scheduler chooses a node"), Text: both("選節點", "choose")},
			},
		},
		{
			ID: "who", Kind: course.Match, HTML: both("<p>誰做什麼？</p>", "<p>Who does what?</p>"),
			Options: []course.Option{
				{ID: "kubelet", Right: true, HTML: both("kubelet", "kubelet"), Pair: both("啟動容器", "starts containers"), WhyHTML: both("在節點上。", "On the node.")},
				{ID: "scheduler", Right: true, HTML: both("排程器", "scheduler"), Pair: both("選節點", "chooses nodes"), WhyHTML: both("只選一次。", "Once.")},
				{ID: "owner", Right: true, HTML: both("老闆", "the owner"), Pair: both("吃午餐", "has lunch"), WhyHTML: both("祝他胃口好。", "Enjoy.")},
			},
		},
		{
			ID: "moves", Kind: course.Truth, HTML: both("<p>Pod 會搬到另一個節點。</p>", "<p>A Pod moves to another node.</p>"),
			Options: []course.Option{
				{ID: "never", Right: true, HTML: both("它只會被換成新的", "it is only ever replaced"), WhyHTML: both("對。", "Right.")},
				{ID: "load", HTML: both("哪裡空就去哪裡", "it goes where there is room"), WhyHTML: both("指派之後就不動了。", "Once assigned it stays.")},
				{ID: "feet", HTML: both("它有腳", "it has feet"), WhyHTML: both("沒有。", "It hasn't.")},
			},
		},
		{
			ID: "sign", Kind: course.Typed, Topic: "signals", HTML: both("<p>結束前收到哪個訊號？</p>", "<p>Which signal comes first at the end?</p>"), Otherwise: both("想想「把菜做完」。", "Think of “finish your dish”."),
			Options: []course.Option{
				{ID: "term", Right: true, Accept: []string{"SIGTERM", "TERM", "15"}, WhyHTML: both("先請他收尾。", "It asks first.")},
				{ID: "kill", Accept: []string{"SIGKILL"}, WhyHTML: both("那是最後。", "That is the last one.")},
			},
		},
		{ID: "your-ip", Kind: course.InCluster, HTML: both("<p>你的 grill 的 ClusterIP？</p>", "<p>Your grill's ClusterIP?</p>")},
	}
}

// term is a link to the glossary as package course makes it.
func term(truth string) string {
	return `<span class="term"><a href="/glossary#pod" target="glossary" aria-describedby="term-pod">Pod</a><span class="term-tip" role="tooltip" id="term-pod">` + truth + `</span></span>`
}

func document(l *course.Level, lang lab.Lang) *course.Document {
	in := func(zh, en string) string { return both(zh, en).In(lang) }
	html := func(id, zh, en string) course.Block {
		return course.Block{ID: id, Kind: course.BlockHTML, HTML: in(zh, en)}
	}
	long := in("<p>叢集裡的每一個名字，都是因為前一個辦法留下了新的麻煩。白板上寫著「grill：3」，值班經理不問誰走了、為什麼走，只數到三。</p>",
		"<p>Every name in a cluster exists because the previous solution left a new trouble behind. The whiteboard says “grill: 3”; the shift manager doesn't ask who left or why, and only counts to three.</p>")
	maya := &course.Person{ID: "maya", Name: both("美雅", "Maya"), Role: both("值班經理", "shift manager")}
	d := &course.Document{Lang: lang, Title: l.Title.In(lang), Sections: []course.Section{
		{ID: "noon", Title: in("星期五中午", "Friday noon"), Blocks: []course.Block{
			html("noon-1", "<p>12:03，2 號廚房跳電。三位燒烤台的廚師不見了，<strong>沒有人打電話給老闆</strong>。</p>", "<p>12:03, the breaker of kitchen 2 trips. Three grill cooks are gone, and <strong>nobody calls the owner</strong>.</p>"),
			{ID: "noon-2", Kind: course.BlockAside, Speaker: maya, HTML: in("<p>「少了幾個？三個。那就再請三個"+term("最小單位")+"。」</p>", "<p>“How many are missing? Three. Then I hire three more "+term("The smallest thing that is scheduled.")+".”</p>")},
			{ID: "noon-3", Kind: course.BlockDiagram, Text: "whiteboard ──▶ manager ──▶ kitchens\n grill: 3        counts      ☺ ☺ ☺", HTML: in("<p>白板、經理、廚房。</p>", "<p>Whiteboard, manager, kitchens.</p>")},
		}},
		{ID: "alone", Title: in("單獨的廚師", "A cook on their own"), Blocks: []course.Block{
			html("alone-1", long+long, long+long),
			{ID: "alone-2", Kind: course.BlockCommand, Commands: []course.Command{
				{Parts: []course.Part{{Text: "kubectl get pods"}}},
				{Parts: []course.Part{{Text: "kubectl delete pod "}, {Text: "grill-xxxxx", Live: &course.Live{Want: "name", Pick: "newest", Kind: "Pod", Owner: "deployment/grill", Fallback: "grill-xxxxx"}}}},
			}},
			{ID: "alone-3", Kind: course.BlockOutput, Lines: []course.OutputLine{{Text: "NAME   READY   STATUS"}, {Text: "solo   1/1     Running", Note: in("一位廚師", "one cook")}}},
			{ID: "alone-4", Kind: course.BlockExercise, Exercise: l.Exercises[0]},
		}},
		{ID: "board", Title: in("寫在白板上", "On the whiteboard"), Blocks: []course.Block{
			html("board-1", long+`<p>現在有 <span class="js-live" data-live-want="count" data-live-kind="Pod" data-live-labels="station=grill">幾</span> 位。</p>`, long+`<p>There are <span class="js-live" data-live-want="count" data-live-kind="Pod" data-live-labels="station=grill">some</span> now.</p>`),
			{ID: "board-2", Kind: course.BlockManifest, Path: "manifests/grill.yaml", Text: grillYAML},
			{ID: "board-3", Kind: course.BlockExercise, Exercise: l.Exercises[1]},
			html("board-4", long+long+long, long+long+long),
		}},
		{ID: "quiz", Title: in("小測驗", "Quiz"), Blocks: []course.Block{{ID: "quiz-1", Kind: course.BlockQuiz, Questions: l.Quiz}}},
	}}
	return d
}
