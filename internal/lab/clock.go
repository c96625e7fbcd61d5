package lab

// MaxSpeed is the highest speed of a Clock.
const MaxSpeed = 60

// Clock tells how a cluster's periods are compressed for class.
type Clock struct {
	Speed   int      `json:"speed"` // 1: nothing is compressed
	Figures []Figure `json:"figures"`
}

// Figure is a period that the clock compresses. Who shows NowMillis shows RealMillis beside it.
type Figure struct {
	Component  string `json:"component"` // kubelet, kube-controller-manager, ...; or the kind of a field
	Name       string `json:"name"`      // the flag or field that it belongs to
	RealMillis int64  `json:"realMillis"`
	NowMillis  int64  `json:"nowMillis"`
}

// Parts of the cluster that ControlLoop.Part names.
const (
	LoopComponent  = "component"  // kube-scheduler, kube-controller-manager, kube-proxy, coredns
	LoopController = "controller" // one of kube-controller-manager's
	LoopKubelet    = "kubelet"    // kubelet/NODE
)

// ControlLoop is a part of a cluster that can be sent home and called back.
type ControlLoop struct {
	Name string `json:"name"`
	Part string `json:"part"`
	Home bool   `json:"home"` // it was sent home: it doesn't work
}
