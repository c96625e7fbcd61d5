package checker

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"kubistro/internal/lab"
)

// hasPods reports whether a kind's trouble shows in Pods that it selects.
func hasPods(kind string) bool {
	return slices.Contains([]string{"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "Service"}, kind)
}

// explain looks for well-known trouble of the objects that an expectation uses: a
// sentence that says why things are not as expected, or nothing. It is help
// only: what can't be read is passed over.
func (r *run) explain(ctx context.Context, x *expectation) lab.Text {
	for _, name := range x.uses {
		o, ok := r.check.spec.Objects[name]
		if !ok {
			continue
		}
		switch v := r.vars[name].(type) {
		case map[string]any:
			if t := r.trouble(ctx, o.Kind, v); !t.IsZero() {
				return t
			}
		case []map[string]any:
			if o.Kind == "Pod" {
				if t := podsTrouble(v); !t.IsZero() {
					return t
				}
			}
		}
	}
	for _, name := range x.uses {
		if q, ok := r.check.spec.Requests[name]; ok {
			if t := r.requestTrouble(ctx, q, r.vars[name]); !t.IsZero() {
				return t
			}
		}
	}
	return lab.Text{}
}

func (r *run) trouble(ctx context.Context, kind string, o map[string]any) lab.Text {
	switch {
	case kind == "Pod":
		t, _ := podTrouble(o)
		return t
	case kind == "Service":
		return r.serviceTrouble(ctx, o, false)
	case kind == "HorizontalPodAutoscaler":
		return hpaTrouble(o)
	case hasPods(kind):
		sel := labelMap(o, "spec", "selector", "matchLabels")
		if len(sel) == 0 {
			return lab.Text{}
		}
		pods, err := r.world.List(ctx, "Pod", text(o, "metadata", "namespace"), labels.Set(sel).String())
		if err != nil {
			return lab.Text{}
		}
		if t := podsTrouble(pods); !t.IsZero() {
			return t
		}
		return workloadTrouble(kind, o)
	}
	return lab.Text{}
}

// workloadTrouble reads a workload's own conditions: why it can't make Pods.
func workloadTrouble(kind string, o map[string]any) lab.Text {
	if c := conditionOf(o, "ReplicaFailure"); text(c, "status") == "True" {
		return textf("%s %s 建立不了 Pod：%s", "%s %s can't create Pods: %s", kind, text(o, "metadata", "name"), shorten(text(c, "message")))
	}
	return lab.Text{}
}

func hpaTrouble(o map[string]any) lab.Text {
	if c := conditionOf(o, "ScalingActive"); text(c, "status") == "False" {
		return textf("HPA 現在算不出使用率（%s）：%s", "The HPA can't compute the utilisation now (%s): %s",
			text(c, "reason"), shorten(text(c, "message")))
	}
	return lab.Text{}
}

// The ranks of Pod trouble: of several Pods the lowest is told.
const (
	rankImage = iota
	rankConfig
	rankCrash
	rankUnschedulable
	rankNotReady
	rankStarting
	rankLeaving
	rankNone
)

// podsTrouble tells the worst trouble among Pods.
func podsTrouble(pods []map[string]any) lab.Text {
	worst, best := lab.Text{}, rankNone
	for _, p := range pods {
		if t, rank := podTrouble(p); rank < best {
			worst, best = t, rank
		}
	}
	return worst
}

// podTrouble explains why a Pod doesn't serve; nothing for one that does.
func podTrouble(pod map[string]any) (lab.Text, int) {
	name := text(pod, "metadata", "name")
	if text(pod, "metadata", "deletionTimestamp") != "" {
		return textf("Pod %s 正在收尾、還沒離開。", "Pod %s is still on its way out.", name), rankLeaving
	}
	if c := conditionOf(pod, "PodScheduled"); text(c, "reason") == "Unschedulable" {
		return textf("Pod %s 還在 Pending，沒有節點排得下：%s", "Pod %s is Pending, because no node has a place for it: %s",
			name, shorten(text(c, "message"))), rankUnschedulable
	}
	all := slices.Concat(items(pod, "status", "initContainerStatuses"), items(pod, "status", "containerStatuses"))
	for _, c := range all {
		if t, rank := containerTrouble(pod, c); rank != rankNone {
			return t, rank
		}
	}
	switch phase := text(pod, "status", "phase"); {
	case phase == "Failed":
		return textf("Pod %s 已經失敗了（%s）。", "Pod %s has failed (%s).", name, PodStatus(pod)), rankCrash
	case phase == "Pending":
		return textf("Pod %s 還在啟動（%s）。", "Pod %s is still starting (%s).", name, PodStatus(pod)), rankStarting
	case phase == "Running" && condition(pod, "Ready") == "False":
		return textf("Pod %s 在跑，但還沒就緒（READY %s）：看看它的 readinessProbe。",
			"Pod %s runs but isn't ready (READY %s): look at its readinessProbe.", name, readyColumn(pod)), rankNotReady
	}
	return lab.Text{}, rankNone
}

// containerTrouble explains the state of one container.
func containerTrouble(pod, c map[string]any) (lab.Text, int) {
	name, image := text(pod, "metadata", "name"), text(c, "image")
	for _, s := range items(pod, "spec", "containers") {
		if text(s, "name") == text(c, "name") {
			image = text(s, "image") // as written; the status may hold the full form
		}
	}
	reason, message := text(c, "state", "waiting", "reason"), text(c, "state", "waiting", "message")
	last := object(c, "lastState", "terminated")
	switch reason {
	case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull":
		return textf("Pod %[1]s 已經建立，但它的映像檔 %[2]s 拉不下來（%[3]s）：%[4]s",
			"Pod %[1]s exists, but its image %[2]s can't be pulled (%[3]s): %[4]s", name, image, reason, pullReason(message)), rankImage
	case "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
		return textf("Pod %s 的容器建立不起來（%s）：%s", "A container of Pod %s can't be made (%s): %s", name, reason, shorten(message)), rankConfig
	case "CrashLoopBackOff":
		return textf("Pod %s 的容器一直倒下，已重新啟動 %d 次，上次結束：%s。看看 kubectl logs %s --previous。",
			"A container of Pod %s keeps falling: restarted %d times, last end: %s. Look at kubectl logs %s --previous.",
			name, number(c, "restartCount"), endOf(last), name), rankCrash
	}
	if t := object(c, "state", "terminated"); t != nil && number(t, "exitCode") != 0 {
		return textf("Pod %s 的容器倒下了（%s）。", "A container of Pod %s has fallen (%s).", name, endOf(t)), rankCrash
	}
	return lab.Text{}, rankNone
}

// pullReason is the part of the kubelet's message that helps.
func pullReason(message string) string {
	if i := strings.LastIndex(message, "desc = "); i >= 0 {
		message = message[i+len("desc = "):]
	}
	return shorten(message)
}

func endOf(terminated map[string]any) string {
	if terminated == nil {
		return noValue
	}
	if r := text(terminated, "reason"); r == "OOMKilled" {
		return r
	}
	return endReason(map[string]any{"reason": text(terminated, "reason")}) + ", exit code " + strconv.FormatInt(number(terminated, "exitCode"), 10)
}
