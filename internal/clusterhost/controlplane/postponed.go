package controlplane

import (
	"fmt"
	"sync"

	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
)

// firstObject is the informer of the objects without which a controller has nothing to
// do; nil for one that is to work from the beginning. The status controller of
// ValidatingAdmissionPolicies holds the definitions of all built-in types, 6 MB.
func (m *controllerManager) firstObject(name string) cache.SharedIndexInformer {
	if name != names.ValidatingAdmissionPolicyStatusController {
		return nil
	}
	return m.cfg.informers.Admissionregistration().V1().ValidatingAdmissionPolicies().Informer()
}

// postpone has a controller wait for the first of its objects, in the API server's own
// informers. It tells whether it does.
func (m *controllerManager) postpone(name string) (bool, error) {
	informer := m.firstObject(name)
	if informer == nil {
		return false, nil
	}
	var once sync.Once
	seen, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) {
		// Not here: the handler's end waits for its events.
		once.Do(func() { go m.firstSeen(name) })
	}})
	if err != nil {
		return false, fmt.Errorf("controller %s: %w", name, err)
	}
	m.postponed[name] = func() {
		if err := informer.RemoveEventHandler(seen); err != nil {
			m.cfg.log.Warn("an informer keeps its handler", "controller", name, "err", err)
		}
	}
	return true, nil
}

// firstSeen starts a controller that still waits.
func (m *controllerManager) firstSeen(name string) {
	m.change.Lock()
	defer m.change.Unlock()
	if m.postponed[name] == nil || m.ctx.Err() != nil {
		return
	}
	if err := m.late(name); err != nil {
		m.cfg.log.Error("controller can't be started", "controller", name, "err", err)
	}
}

// dontWait ends the waiting of a controller for its first object.
func (m *controllerManager) dontWait(name string) {
	if end := m.postponed[name]; end != nil {
		end()
		delete(m.postponed, name)
	}
}
