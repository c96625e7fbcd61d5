package kind

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"sigs.k8s.io/kind/pkg/exec"

	"kubistro/internal/lab"
)

// kindError is a failure of kind, with what its commands said: its own error has no
// Unwrap and keeps their output to itself.
type kindError struct {
	err error
	log string
}

func (e *kindError) Error() string {
	s := "kind: " + e.err.Error()
	if run := exec.RunErrorForError(e.err); run != nil && len(run.Output) > 0 {
		s += ": " + lastBytes(string(run.Output), 4<<10)
	}
	if e.log != "" {
		s += "; its log ends with:\n" + e.log
	}
	return s
}

func lastBytes(s string, n int) string { return strings.TrimSpace(s[max(0, len(s)-n):]) }

// startError is a start that failed, and where.
type startError struct {
	stage string
	err   error
}

func (e *startError) Error() string { return fmt.Sprintf("%v (in stage %q)", e.err, e.stage) }
func (e *startError) Unwrap() error { return e.err }

// sentences tell what to do about what a container runtime or kind says. The
// first whose words are all in it is taken.
var sentences = []struct {
	words []string
	text  lab.Text
}{
	{[]string{"permission denied", "docker.sock"}, lab.Text{
		ZhTW: "伺服器沒有權限使用 Docker。請把執行伺服器的使用者加入 docker 群組（sudo usermod -aG docker 使用者名稱），重新登入後再試。",
		En:   "The server may not use Docker. Add its user to the docker group (sudo usermod -aG docker USER), log in again and retry."}},
	{[]string{"cannot connect to the docker daemon"}, lab.Text{
		ZhTW: "Docker 沒有在執行。請啟動它（sudo systemctl start docker，或打開 Docker Desktop）再試一次。",
		En:   "Docker isn't running. Start it (sudo systemctl start docker, or open Docker Desktop) and try again."}},
	{[]string{"podman", "connect"}, lab.Text{
		ZhTW: "Podman 沒有回應。請啟動它（podman machine start，或 systemctl --user start podman.socket）再試一次。",
		En:   "Podman doesn't answer. Start it (podman machine start, or systemctl --user start podman.socket) and try again."}},
	{[]string{"port is already allocated"}, portTaken}, {[]string{"address already in use"}, portTaken},
	{[]string{"too many open files"}, inotify}, {[]string{"inotify"}, inotify}, {[]string{slowBoot}, lateBoot},
	{[]string{"no space left on device"}, lab.Text{
		ZhTW: "磁碟滿了，叢集無法啟動。請清出空間（docker system df 會列出用量，docker image prune 會移除沒在用的映像檔）再試一次。",
		En:   "The disk is full, so the cluster can't start. Make room (docker system df shows what is used, docker image prune removes unused images) and try again."}},
	{[]string{"toomanyrequests"}, rateLimited}, {[]string{"rate limit"}, rateLimited},
	{[]string{"pull access denied"}, noImage}, {[]string{"manifest unknown"}, noImage}, {[]string{"manifest for", "not found"}, noImage}, {[]string{"no such image"}, noImage},
	{[]string{"pull", "lookup"}, noNetwork}, {[]string{"pull", "timeout"}, noNetwork}, {[]string{"pull", "connection refused"}, noNetwork},
	{[]string{"pull", "no such host"}, noNetwork}, {[]string{"pull", "eof"}, noNetwork},
	{[]string{"cgroup v1"}, cgroups}, {[]string{"cgroup v2"}, cgroups}, {[]string{"cgroup", "failed to start container"}, cgroups},
	{[]string{"cannot allocate memory"}, noMemory}, {[]string{"out of memory"}, noMemory}, {[]string{"resource temporarily unavailable"}, pids},
	{[]string{"could not find an available", "address pool"}, lab.Text{
		ZhTW: "Docker 沒有可用的網段了。請移除沒在用的網路（docker network prune）再試一次。",
		En:   "Docker has no network addresses left. Remove unused networks (docker network prune) and try again."}},
}

var (
	portTaken = lab.Text{
		ZhTW: "叢集要用的連接埠剛被別的程式佔用了。請再試一次。",
		En:   "A port that the cluster was to use has just been taken by another program. Try again."}
	inotify = lab.Text{
		ZhTW: "這台機器的 inotify 監看數量不夠。請執行：sudo sysctl fs.inotify.max_user_watches=1048576 fs.inotify.max_user_instances=8192，再試一次。",
		En:   "This machine allows too few inotify watches. Run: sudo sysctl fs.inotify.max_user_watches=1048576 fs.inotify.max_user_instances=8192, and try again."}
	lateBoot = lab.Text{
		ZhTW: "節點沒有及時開機：這台機器太忙，或 inotify 監看數量不夠。請稍候再試；若一再發生，請執行：sudo sysctl fs.inotify.max_user_watches=1048576 fs.inotify.max_user_instances=8192。",
		En:   "The nodes didn't boot in time: this machine is too busy, or allows too few inotify watches. Try again in a moment; if it goes on, run: sudo sysctl fs.inotify.max_user_watches=1048576 fs.inotify.max_user_instances=8192."}
	rateLimited = lab.Text{
		ZhTW: "映像檔倉庫暫時拒絕下載（次數過多）。請稍後再試、先執行 docker login，或用 --kind-image 指定已經在這台機器上的映像檔。",
		En:   "The image registry refuses downloads for now (too many requests). Try later, run docker login first, or name an image that is on this machine with --kind-image."}
	noImage = lab.Text{
		ZhTW: "找不到節點映像檔。請檢查 --kind-image 的名稱，或先用 docker load 載入它。",
		En:   "The node image isn't there. Check the name given to --kind-image, or load it with docker load first."}
	noNetwork = lab.Text{
		ZhTW: "無法下載節點映像檔：連不到映像檔倉庫。請檢查網路，或先用 docker load 載入映像檔，再以 --kind-image 指定。",
		En:   "The node image can't be downloaded: the registry can't be reached. Check the network, or load the image with docker load and name it with --kind-image."}
	cgroups = lab.Text{
		ZhTW: "這台機器的 cgroup 設定不能執行 Kubernetes 節點（需要 cgroup v2）。請執行 labserver doctor 看詳細說明。",
		En:   "This machine's cgroups can't run Kubernetes nodes (they need cgroup v2). Run labserver doctor for the details."}
	noMemory = lab.Text{
		ZhTW: "伺服器的記憶體不足，叢集無法啟動。請稍候再試一次。",
		En:   "The server is short of memory, so the cluster can't start. Try again in a moment."}
	pids = lab.Text{
		ZhTW: "這台機器的行程數量到達上限了。請停掉一些叢集，或提高上限（sudo sysctl kernel.pid_max=4194304）再試一次。",
		En:   "This machine is at its limit of processes. Stop some clusters, or raise it (sudo sysctl kernel.pid_max=4194304), and try again."}
)

// problem turns a failure into a sentence for people with what to do; the cause has the raw text.
func problem(err error) error {
	var already *lab.Error
	if err == nil || errors.As(err, &already) {
		return err
	}
	stage := ""
	var se *startError
	if errors.As(err, &se) {
		stage = se.stage
	}
	at := stageName(stage)
	switch {
	case errors.Is(err, errTooSlow):
		return lab.Fail(lab.CodeUnavailable,
			"叢集啟動太久還沒好（停在「"+at.ZhTW+"」），已經停下來。伺服器可能正忙，請稍候再試一次。",
			"The cluster took too long to start (it got as far as "+at.En+") and was stopped. The server may be busy; try again in a moment.").Because(err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return lab.Fail(lab.CodeUnavailable, "叢集的啟動被取消了。", "The start of the cluster was cancelled.").Because(err)
	case errors.Is(err, syscall.ENOSPC):
		err = fmt.Errorf("no space left on device: %w", err)
	}
	said := withoutWarning(strings.ToLower(err.Error()))
	for _, s := range sentences {
		if hasAll(said, s.words) {
			return (&lab.Error{Code: lab.CodeUnavailable, Text: s.text}).Because(err)
		}
	}
	return lab.Fail(lab.CodeUnavailable,
		"叢集啟動失敗（停在「"+at.ZhTW+"」）。請再試一次；若持續發生，請告訴講師。",
		"The cluster failed to start (it got as far as "+at.En+"). Try again; if it keeps happening, tell your instructor.").Because(err)
}

// withoutWarning leaves out the line that kind writes on every host with cgroup v1, whatever happens.
func withoutWarning(said string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(said, "\n"), func(line string) bool {
		return strings.Contains(line, "cgroup v1 is deprecated")
	}), "\n")
}

func hasAll(s string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(s, w) {
			return false
		}
	}
	return true
}

// stageName is a stage in words.
func stageName(stage string) lab.Text {
	switch stage {
	case stageImage:
		return lab.Text{ZhTW: "節點映像檔", En: "the node image"}
	case stageNodes:
		return lab.Text{ZhTW: "節點容器", En: "the node containers"}
	case stageConfig:
		return lab.Text{ZhTW: "寫入設定", En: "writing settings"}
	case stageControlPlane:
		return lab.Text{ZhTW: "控制平面", En: "the control plane"}
	case stageNetwork:
		return lab.Text{ZhTW: "叢集網路", En: "the cluster's network"}
	case stageStorage:
		return lab.Text{ZhTW: "儲存", En: "storage"}
	case stageKitchens:
		return lab.Text{ZhTW: "廚房節點", En: "the kitchens"}
	case stagePantry:
		return lab.Text{ZhTW: "課程的映像檔", En: "the course's images"}
	case stageReady:
		return lab.Text{ZhTW: "最後檢查", En: "the last look"}
	}
	return lab.Text{ZhTW: "準備工作", En: "getting ready"}
}

func noRuntime(err error) error {
	return lab.Fail(lab.CodeInvalid,
		"找不到 Docker、nerdctl 或 Podman。kind 叢集需要其中一個；請安裝（例如 sudo apt-get install docker.io），或改用 --driver embedded。",
		"Neither Docker nor nerdctl nor Podman is installed. A kind cluster needs one of them: install it (for instance sudo apt-get install docker.io), or use --driver embedded.").Because(err)
}

func unknownRuntime(name string) error {
	return lab.Fail(lab.CodeInvalid,
		"不認識容器執行環境「"+name+"」：請用 docker、nerdctl 或 podman。", "There is no container runtime \""+name+"\": use docker, nerdctl or podman.")
}

func noFile(path string, err error) error {
	if err == nil {
		err = fmt.Errorf("%s is a folder", path)
	}
	return lab.Fail(lab.CodeInvalid, "找不到檔案 "+path+"。請先執行 make kind-agent。", "The file "+path+" isn't there. Run make kind-agent first.").Because(err)
}

func noFolder(dir string, err error) error {
	return lab.Fail(lab.CodeInvalid,
		"無法使用資料夾 "+dir+"。請確認它存在而且可以寫入。", "The folder "+dir+" can't be used. See that it exists and can be written.").Because(err)
}

func tooBig(k lab.Kitchen, m machine) error {
	return lab.Fail(lab.CodeUnsupported,
		fmt.Sprintf("課程的廚房 %s 需要 %s CPU 和 %s 記憶體，但這台機器只有 %d CPU 和 %.1f GiB。請改用 --driver embedded，或換一台大一點的機器。", k.Name, k.CPU, k.Memory, m.cpus, float64(m.memory)/(1<<30)),
		fmt.Sprintf("The course's kitchen %s wants %s CPUs and %s of memory, and this machine has %d CPUs and %.1f GiB. Use --driver embedded, or a larger machine.", k.Name, k.CPU, k.Memory, m.cpus, float64(m.memory)/(1<<30)))
}

func missing(id string) error {
	return lab.Fail(lab.CodeNotFound, "這個叢集的資料已經不在了。", "This cluster's data is gone.").Because(fmt.Errorf("no record of cluster %s", id))
}
