package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"kubistro/internal/clusterhost/controlapi"
	"kubistro/internal/lab"
)

// startError is a start that failed, with all that is known for the log.
type startError struct {
	cause  error  // why we gave up; nil when the host failed by itself
	reason string // the host's own words, or how it ended
	stage  string // the last stage that had begun
	log    string // the end of the host's log
}

func (e *startError) Error() string {
	s := "cluster host: " + e.reason
	if e.cause != nil {
		s += ": " + e.cause.Error()
	}
	if e.stage != "" {
		s += " (in stage " + e.stage + ")"
	}
	if e.log != "" {
		s += "; its log ends with:\n" + e.log
	}
	return s
}

func (e *startError) Unwrap() error { return e.cause }

// problem turns the failure of a start into a sentence for the learner.
func problem(err error) error {
	var le *lab.Error
	if errors.As(err, &le) {
		return err
	}
	var se *startError
	if !errors.As(err, &se) {
		se = &startError{}
	}
	said := err.Error()
	switch {
	case errors.Is(err, errTooSlow):
		return lab.Fail(lab.CodeUnavailable,
			"叢集啟動太久還沒好（停在「"+stageName(se.stage).ZhTW+"」），已經停下來。伺服器可能正忙，請稍候再試一次。",
			"The cluster took too long to start (it got as far as "+stageName(se.stage).En+") and was stopped. The server may be busy; try again in a moment.").Because(err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return lab.Fail(lab.CodeUnavailable,
			"叢集的啟動被取消了。", "The start of the cluster was cancelled.").Because(err)
	case errors.Is(err, syscall.ENOSPC), strings.Contains(said, "no space left on device"):
		return lab.Fail(lab.CodeUnavailable,
			"伺服器的磁碟滿了，叢集無法啟動。請告訴講師。",
			"The server's disk is full, so the cluster can't start. Tell your instructor.").Because(err)
	case errors.Is(err, syscall.ENOMEM), strings.Contains(said, "cannot allocate memory"), strings.Contains(said, "out of memory"),
		strings.Contains(se.reason, "signal: killed"):
		return lab.Fail(lab.CodeUnavailable,
			"伺服器的記憶體不足，叢集無法啟動。請稍候再試一次。",
			"The server is short of memory, so the cluster can't start. Try again in a moment.").Because(err)
	case errors.Is(err, os.ErrPermission):
		return lab.Fail(lab.CodeInternal,
			"伺服器沒有權限啟動叢集。請告訴講師。",
			"The server isn't permitted to start clusters. Tell your instructor.").Because(err)
	}
	return lab.Fail(lab.CodeUnavailable,
		"叢集啟動失敗（停在「"+stageName(se.stage).ZhTW+"」）。請再試一次；若持續發生，請告訴講師。",
		"The cluster failed to start (it got as far as "+stageName(se.stage).En+"). Try again; if it keeps happening, tell your instructor.").Because(err)
}

// stageName is a stage in words.
func stageName(stage string) lab.Text {
	switch stage {
	case controlapi.StageEtcd:
		return lab.Text{ZhTW: "etcd", En: "etcd"}
	case controlapi.StageAPIServer:
		return lab.Text{ZhTW: "API 伺服器", En: "the API server"}
	case controlapi.StageControllers:
		return lab.Text{ZhTW: "控制器", En: "the controllers"}
	case controlapi.StageScheduler:
		return lab.Text{ZhTW: "排程器", En: "the scheduler"}
	case controlapi.StageKitchens:
		return lab.Text{ZhTW: "廚房節點", En: "the kitchens"}
	case controlapi.StageReady:
		return lab.Text{ZhTW: "最後檢查", En: "the last look"}
	}
	return lab.Text{ZhTW: "啟動程式", En: "starting its program"}
}

func noProgram(path string, err error) error {
	if err == nil {
		err = fmt.Errorf("%s is no program", path)
	}
	return lab.Fail(lab.CodeInvalid,
		"找不到 clusterhost 程式（"+path+"）。請先執行 make build，或用 --clusterhost 指定它的位置。",
		"The program clusterhost isn't there ("+path+"). Run make build, or say where it is with --clusterhost.").Because(err)
}

func noFolder(dir string, err error) error {
	return lab.Fail(lab.CodeInvalid,
		"無法使用資料夾 "+dir+"。請確認它存在而且可以寫入。",
		"The folder "+dir+" can't be used. See that it exists and can be written.").Because(err)
}
