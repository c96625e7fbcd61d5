package controlplane

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/featuregate"
	"k8s.io/controller-manager/pkg/clientbuilder"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/config"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
)

// controllerStop is how long a controller that is sent home may take to end.
const controllerStop = 30 * time.Second

// controllerManager is kube-controller-manager's controllers, each with a context of
// its own.
type controllerManager struct {
	cfg    controllerConfig
	config *config.CompletedConfig
	ctx    context.Context
	cancel context.CancelFunc

	change    sync.Mutex        // held while a controller is built or stopped
	postponed map[string]func() // by name: how waiting for its first object ends

	mu      sync.Mutex
	running map[string]*runningController
}

// runningController is a controller at work.
type runningController struct {
	app.Controller
	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{}
}

// startControllers builds all controllers but those that are home and runs each in a
// goroutine of its own.
func startControllers(ctx context.Context, cfg controllerConfig, home []string) (*controllerManager, error) {
	complete, err := cfg.complete(ctx)
	if err != nil {
		return nil, err
	}
	m := &controllerManager{cfg: cfg, config: complete, postponed: map[string]func(){}, running: map[string]*runningController{}}
	m.change.Lock()
	defer m.change.Unlock()
	m.ctx, m.cancel = context.WithCancel(ctx)
	cc, err := m.context(m.ctx)
	if err != nil {
		m.cancel()
		return nil, err
	}
	m.config.EventBroadcaster.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: m.config.Client.CoreV1().Events("")})
	var built []*runningController
	for _, name := range controllerNames(cc.ControllerContext) {
		if slices.Contains(home, name) {
			continue
		}
		if postponed, err := m.postpone(name); err != nil || postponed {
			if err != nil {
				m.end(cfg.log)
				return nil, err
			}
			continue
		}
		c, err := m.build(m.ctx, cc, name)
		if err != nil {
			m.end(cfg.log)
			return nil, err
		}
		if c != nil {
			built = append(built, c)
		}
	}
	cc.start(m.ctx)
	for _, c := range built {
		m.run(c, func() {})
	}
	return m, nil
}

// controllerContext is what controllers are built from: informers that they share
// and clients.
type controllerContext struct {
	app.ControllerContext
	root clientbuilder.ControllerClientBuilder
}

// context makes a controllerContext with informers of its own.
func (m *controllerManager) context(ctx context.Context) (controllerContext, error) {
	root := clientbuilder.SimpleControllerClientBuilder{ClientConfig: m.config.Kubeconfig}
	each := clientbuilder.NewDynamicClientBuilder(restConfig(m.cfg.transport, "", "kube-controller-manager"), m.config.Client.CoreV1(), metav1.NamespaceSystem)
	cc, err := app.CreateControllerContext(ctx, m.config, root, each)
	if err != nil {
		return controllerContext{}, fmt.Errorf("controllers: %w", err)
	}
	if err := leaveOutContents(cc.InformerFactory); err != nil {
		return controllerContext{}, fmt.Errorf("controllers: %w", err)
	}
	cc.InformerFactory.InformerName().Release() // names are per process, and this isn't the last one
	return controllerContext{cc, root}, nil
}

// start runs the informers that the built controllers have asked for.
func (cc controllerContext) start(ctx context.Context) {
	cc.InformerFactory.Start(ctx.Done())
	cc.ObjectOrMetadataInformerFactory.Start(ctx.Done())
	close(cc.InformersStarted)
}

// controllerNames are the enabled controllers, the one for tokens first.
func controllerNames(cc app.ControllerContext) []string {
	out := []string{names.ServiceAccountTokenController}
	for name, d := range app.NewControllerDescriptors() {
		if !d.RequiresSpecialHandling() && cc.IsControllerEnabled(d) {
			out = append(out, name)
		}
	}
	return out
}

// knownControllers are the controllers that can be there, in order.
func knownControllers() []string {
	var out []string
	off := append(app.ControllersDisabledByDefault(), controllersUnused...)
	for name, d := range app.NewControllerDescriptors() {
		gated := slices.ContainsFunc(d.GetRequiredFeatureGates(), func(f featuregate.Feature) bool { return !utilfeature.DefaultFeatureGate.Enabled(f) })
		if !gated && !slices.Contains(off, name) && (!d.RequiresSpecialHandling() || name == names.ServiceAccountTokenController) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// build makes a controller that stops with its own context; nil when a feature gate is off.
func (m *controllerManager) build(ctx context.Context, cc controllerContext, name string) (*runningController, error) {
	c := &runningController{done: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancel(ctx)
	var err error
	if name == names.ServiceAccountTokenController {
		c.Controller, err = newTokenController(c.ctx, cc.ControllerContext, cc.root)
	} else {
		c.Controller, err = app.NewControllerDescriptors()[name].BuildController(c.ctx, cc.ControllerContext)
	}
	if err != nil || c.Controller == nil {
		c.cancel()
	}
	if err != nil {
		return nil, fmt.Errorf("controllers: %s: %w", name, err)
	}
	if c.Controller == nil {
		return nil, nil
	}
	return c, nil
}

// run lets a controller work until its context ends; after is called then.
func (m *controllerManager) run(c *runningController, after func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running[c.Name()] = c
	go func() {
		defer close(c.done)
		defer after()
		defer c.cancel()
		defer utilruntime.HandleCrashWithContext(c.ctx)
		c.Run(c.ctx)
		if c.ctx.Err() == nil {
			m.cfg.log.Warn("controller ended by itself", "controller", c.Name())
		}
	}()
}

// names are the controllers at work.
func (m *controllerManager) names() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []string
	for name := range m.running {
		out = append(out, name)
	}
	return out
}

// stop sends one controller home and waits for that.
func (m *controllerManager) stop(ctx context.Context, name string) error {
	m.change.Lock()
	defer m.change.Unlock()
	m.dontWait(name)
	m.mu.Lock()
	c := m.running[name]
	m.mu.Unlock()
	if c == nil {
		return nil
	}
	c.cancel()
	t := time.NewTimer(controllerStop)
	defer t.Stop()
	select {
	case <-c.done:
	case <-t.C:
		return fmt.Errorf("controller %s doesn't end", name)
	case <-ctx.Done():
		return ctx.Err()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.running, name)
	return nil
}

// call lets one controller work again. It gets informers of its own: those that the
// others share have been started, and keep the indexes and handlers of its former life.
func (m *controllerManager) call(name string) error {
	m.change.Lock()
	defer m.change.Unlock()
	return m.late(name)
}

// late starts one controller after the others.
func (m *controllerManager) late(name string) error {
	m.dontWait(name)
	if slices.Contains(m.names(), name) {
		return nil
	}
	ctx, cancel := context.WithCancel(m.ctx)
	cc, err := m.context(ctx)
	if err != nil {
		cancel()
		return err
	}
	c, err := m.build(ctx, cc, name)
	if err == nil && c == nil {
		err = errors.New("its feature gate is off")
	}
	if err == nil {
		err = withIndexes(cc, name)
	}
	if err != nil {
		cancel()
		return fmt.Errorf("controller %s: %w", name, err)
	}
	cc.start(ctx)
	m.run(c, func() {
		cancel()
		cc.InformerFactory.Shutdown()
	})
	return nil
}

// withIndexes adds what a controller finds in the shared informers because another one
// has added it: taint eviction looks Pods up by the index of node-lifecycle-controller.
func withIndexes(cc controllerContext, name string) error {
	if name != names.TaintEvictionController && name != names.DeviceTaintEvictionController {
		return nil
	}
	pods := cc.InformerFactory.Core().V1().Pods().Informer()
	const byNode = "spec.nodeName"
	if _, ok := pods.GetIndexer().GetIndexers()[byNode]; ok {
		return nil
	}
	return pods.AddIndexers(cache.Indexers{byNode: func(o any) ([]string, error) {
		if p, ok := o.(*corev1.Pod); ok && p.Spec.NodeName != "" {
			return []string{p.Spec.NodeName}, nil
		}
		return nil, nil
	}})
}

// close ends all controllers and waits for them, at most stopTimeout.
func (m *controllerManager) close(log *slog.Logger) {
	m.cancel()
	m.change.Lock()
	defer m.change.Unlock()
	m.end(log)
}

func (m *controllerManager) end(log *slog.Logger) {
	m.cancel()
	for name := range m.postponed {
		m.dontWait(name)
	}
	m.config.EventBroadcaster.Shutdown()
	t := time.NewTimer(stopTimeout)
	defer t.Stop()
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, c := range m.running {
		select {
		case <-c.done:
		case <-t.C:
			log.Warn("some controllers are still running", "one", name)
			return
		}
	}
}
