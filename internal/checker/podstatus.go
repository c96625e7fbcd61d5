package checker

// PodStatus is kubectl's STATUS column for a Pod in its JSON form: Running,
// CrashLoopBackOff, Init:0/1, Terminating, Completed and so on.
func PodStatus(pod map[string]any) string { panic("being built") }

// PodReady counts the ready containers of a Pod and all of them: kubectl's READY column.
func PodReady(pod map[string]any) (ready, total int) { panic("being built") }

// PodRestarts is kubectl's RESTARTS column without its age.
func PodRestarts(pod map[string]any) int { panic("being built") }
