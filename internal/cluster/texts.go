package cluster

import "kubistro/internal/lab"

func unavailable(err error) *lab.Error {
	return lab.Fail(lab.CodeUnavailable,
		"叢集還沒準備好，請稍候再試。", "The cluster isn't ready yet. Try again in a moment.").Because(err)
}

func closed() *lab.Error {
	return lab.Fail(lab.CodeUnavailable,
		"伺服器正在關閉，稍後重新連線即可繼續。", "The server is shutting down. You can go on when it is back.")
}

func gone() *lab.Error {
	return lab.Fail(lab.CodeNotFound,
		"這個叢集已經不在了。", "This cluster is gone.")
}

func crashesAgain() *lab.Error {
	return lab.Fail(lab.CodeUnavailable,
		"你的叢集短時間內連續當掉好幾次，已經停下來。可以再試一次；如果還是不行，請重設叢集。",
		"Your cluster crashed several times in a row and was stopped. Try again; if that doesn't help, reset the cluster.")
}

func lostForGood() *lab.Error {
	return lab.Fail(lab.CodeUnavailable,
		"你的叢集當掉了，裡面的東西無法復原。再試一次會得到一個全新的叢集。",
		"Your cluster crashed and what was in it can't be brought back. Another try gives you a fresh one.")
}
