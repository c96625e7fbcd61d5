package checker

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"kubistro/internal/lab"
)

var (
	textFaulty = lab.Text{
		ZhTW: "這項檢查本身出了問題，看不出結果。請告訴講師。",
		En:   "This check itself is at fault and can't tell. Tell your instructor.",
	}
	textCannotLook = lab.Text{
		ZhTW: "現在讀不到叢集的狀態，所以還不知道結果。等一下會再看一次。",
		En:   "The cluster can't be read right now, so the result isn't known. It will be looked at again.",
	}
	textTooSlow = lab.Text{
		ZhTW: "叢集太久沒有回應，所以還不知道結果。等一下會再看一次。",
		En:   "The cluster took too long to answer, so the result isn't known. It will be looked at again.",
	}
	textNoAnswer = lab.Text{ZhTW: "還沒填答案。", En: "No answer has been given yet."}
)

// unknownText is what people read when a check could not look.
func unknownText(err error) lab.Text {
	var world *worldError
	if !errors.As(err, &world) {
		return textFaulty
	}
	var human *lab.Error
	switch {
	case errors.As(err, &human):
		return human.Text
	case errors.Is(err, context.DeadlineExceeded):
		return textTooSlow
	}
	return textCannotLook
}

func textAbsent(kind, name, similar string) lab.Text {
	t := textf("現在沒有名叫 %[2]s 的 %[1]s。", "There is no %[1]s named %[2]s now.", kind, name)
	if similar != "" {
		t = join(t, textf("有一個叫 %s，是不是打錯字了？", "There is one named %s: a typo?", similar))
	}
	return t
}

func textNoFile(path string) lab.Text {
	return textf("你的資料夾裡沒有 %s 這個檔案。", "There is no file %s in your home.", path)
}

func textBadFile(path, fault string) lab.Text {
	return textf("%s 讀不懂：%s", "%s can't be read as YAML: %s", path, fault)
}

// textDifference is the message of an expectation without one of its own.
func textDifference(r lab.CheckResult) lab.Text {
	return textf("%[1]s 的 %[2]s 應該是 %[3]s，現在是 %[4]s。", "%[2]s of %[1]s should be %[3]s; it is %[4]s.",
		r.Object, r.Field, r.Expected, r.Found)
}

func textf(zhTW, en string, args ...any) lab.Text {
	return lab.Text{ZhTW: fmt.Sprintf(zhTW, args...), En: fmt.Sprintf(en, args...)}
}

// join puts one sentence after another; Chinese needs no space between.
func join(a, b lab.Text) lab.Text {
	if b.IsZero() {
		return a
	}
	return lab.Text{ZhTW: a.ZhTW + b.ZhTW, En: strings.TrimSpace(a.En + " " + b.En)}
}

// shorten cuts a message of the cluster to what a person reads.
func shorten(s string) string {
	const limit = 240
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > limit {
		return string(r[:limit]) + "…"
	}
	return s
}
