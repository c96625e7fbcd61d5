package kind

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/clientcmd"

	"kubistro/internal/cluster"
	"kubistro/internal/clusterhost/pace"
	"kubistro/internal/lab"
)

// cleanWithin is how long removing what a failed start left may take.
const cleanWithin = 2 * time.Minute

// removeAgain is how often the containers of a start that was given up are removed,
// until kind has noticed.
const removeAgain = time.Second

// Create starts a new cluster and returns when it is ready. On error nothing of
// it is left; the error is a *lab.Error whose cause holds what kind said.
func (d *Driver) Create(ctx context.Context, id string, spec lab.ClusterSpec, progress cluster.Progress) (cluster.Instance, error) {
	unlock, err := d.lock(id)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if r, err := d.readRecord(id); err == nil && r != nil && r.Made {
		return nil, lab.Fail(lab.CodeConflict, "這個叢集已經存在。", "This cluster exists already.").Because(fmt.Errorf("folder %s", d.dir(id)))
	}
	s := &stages{progress: progress}
	in, err := d.create(ctx, id, spec, s)
	if err != nil {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanWithin)
		defer cancel()
		if rmErr := d.remove(clean, id); rmErr != nil {
			d.log.Error("failed cluster leaves something behind", "cluster", id, "err", rmErr)
		}
		return nil, problem(&startError{stage: s.name(), err: err})
	}
	s.end()
	return in, nil
}

func (d *Driver) create(ctx context.Context, id string, spec lab.ClusterSpec, s *stages) (*instance, error) {
	s.begin(stageImage)
	if err := d.remove(ctx, id); err != nil { // of a create that was killed
		return nil, err
	}
	if err := d.ensureImage(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, d.opt.StartTimeout, errTooSlow)
	defer cancel()
	name := d.prefix + id
	r := newRecord(name, spec, time.Now())
	p, err := d.plan(ctx, r)
	if err != nil {
		return nil, err
	}
	if err := d.writeRecord(id, r); err != nil { // before anything is made
		return nil, err
	}
	if err := d.makePatiently(ctx, id, p, s); err != nil {
		return nil, err
	}
	if err := d.learnAddress(id, r); err != nil {
		return nil, err
	}
	s.begin(stagePantry)
	if err := d.loadArchives(ctx, r); err != nil {
		return nil, err
	}
	s.begin(stageReady)
	in, err := d.begin(ctx, id, r)
	if err != nil {
		return nil, err
	}
	r.Made = true
	return in, d.writeRecord(id, r)
}

// ensureImage pulls the node image when it isn't there: kind would, but can't be stopped then.
func (d *Driver) ensureImage(ctx context.Context) error {
	if _, err := d.engine.run(ctx, nil, "image", "inspect", "--format", "{{.Id}}", d.opt.Image); err == nil || ctx.Err() != nil {
		return err
	}
	_, err := d.engine.run(ctx, nil, "pull", d.opt.Image)
	return err
}

// plan is what a cluster is made from.
type plan struct {
	*record
	clock *pace.Clock
	files map[string]map[string]string // by container and path
}

// plan computes it all before anything is made.
func (d *Driver) plan(ctx context.Context, r *record) (*plan, error) {
	m, err := machineOf(ctx, d.engine)
	if err != nil {
		return nil, err
	}
	c, err := pace.New(r.speed())
	if err != nil {
		return nil, lab.Fail(lab.CodeInvalid, "課程設定的時鐘速度不合法。", "The course asks for a clock speed that isn't possible.").Because(err)
	}
	p := &plan{record: r, clock: c, files: map[string]map[string]string{}}
	for node, container := range r.Nodes {
		patch, err := kubeletPatch(r.kitchen(node), m, c)
		if err != nil {
			return nil, err
		}
		p.files[container] = map[string]string{patchesDir + "/kubeletconfiguration+merge.yaml": patch}
	}
	office := p.files[r.office()]
	office[auditPolicy], office[tokenFile] = policy, tokens(r, d.opt.Trusted)
	return p, nil
}

// machineOf asks the container runtime for its machine.
func machineOf(ctx context.Context, e engine) (machine, error) {
	out, err := e.run(ctx, nil, "info", "--format", "{{json .}}")
	if err != nil {
		return machine{}, err
	}
	return parseInfo(out)
}

// bootTries is how often kind may try to boot the nodes' containers.
const bootTries = 4

// slowBoot is what kind says when systemd in a node isn't up within 30 s, which nobody can set:
// pkg/cluster/internal/providers/common/logs.go and its callers.
const slowBoot = "could not find a log line that matches"

// makePatiently is make, again when a busy machine was too slow for kind.
func (d *Driver) makePatiently(ctx context.Context, id string, p *plan, s *stages) error {
	for try := 1; ; try++ {
		err := d.make(ctx, id, p, s)
		if err == nil || try == bootTries || ctx.Err() != nil || !strings.Contains(err.Error(), slowBoot) {
			return err
		}
		d.log.Info("nodes of a cluster didn't boot in time, trying again", "cluster", id, "try", try)
		if err := removeContainers(ctx, d.engine, d.prefix+id); err != nil { // kind has done so, if it could
			return err
		}
	}
}

// make lets kind make the cluster, and deletes it again when ctx ends.
func (d *Driver) make(ctx context.Context, id string, p *plan, s *stages) error {
	cfg, err := configOf(p.Spec, d.opt.Image, p.clock)
	if err != nil {
		return err
	}
	name := d.prefix + id
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	l := &listener{stages: s}
	l.entered = func(stage string) {
		// The nodes run now, and kubeadm hasn't read anything yet.
		if stage == stageConfig {
			if err := d.prepare(ctx, p); err != nil {
				giveUp(err)
			}
		}
	}
	made := make(chan error, 1)
	go func() { made <- d.maker.Create(name, cfg, filepath.Join(d.dir(id), fileKubeconfig), l) }()
	select {
	case err := <-made:
		if cause := context.Cause(ctx); cause != nil && err != nil {
			return cause
		}
		if err != nil {
			return &kindError{err, l.text()}
		}
		return ctx.Err()
	case <-ctx.Done():
	}
	// kind's Create takes no context: it fails at its next step without its containers.
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanWithin)
	defer cancel()
	again := time.NewTicker(removeAgain)
	defer again.Stop()
	for {
		if err := removeContainers(clean, d.engine, name); err != nil && clean.Err() == nil {
			d.log.Debug("containers of a start that was given up", "cluster", id, "err", err)
		}
		select {
		case <-made: // whatever it says; the caller removes what it may have made meanwhile
			return context.Cause(ctx)
		case <-again.C:
		}
	}
}

// prepare writes our files into the nodes.
func (d *Driver) prepare(ctx context.Context, p *plan) error {
	g, ctx := errgroup.WithContext(ctx)
	for container, files := range p.files {
		g.Go(func() error {
			for path, content := range files {
				if err := writeFile(ctx, d.engine, container, path, "600", strings.NewReader(content)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// fileKubeconfig is where kind leaves the administrator's kubeconfig for a moment.
const fileKubeconfig = "kubeconfig"

// learnAddress takes from kind's kubeconfig how the API server is reached. The
// administrator's certificate in it isn't kept.
func (d *Driver) learnAddress(id string, r *record) error {
	path := filepath.Join(d.dir(id), fileKubeconfig)
	c, err := clientcmd.LoadFromFile(path)
	if err != nil {
		return fmt.Errorf("kind's kubeconfig: %w", err)
	}
	for _, x := range c.Clusters {
		r.CA, r.Address = x.CertificateAuthorityData, strings.TrimPrefix(x.Server, "https://")
	}
	if len(r.CA) == 0 || r.Address == "" {
		return errors.New("kind's kubeconfig names no API server")
	}
	if d.opt.Internal {
		r.Address = r.office() + ":6443"
	}
	return os.Remove(path)
}

// loadArchives gives every node our images.
func (d *Driver) loadArchives(ctx context.Context, r *record) error {
	g, ctx := errgroup.WithContext(ctx)
	var mu sync.Mutex // one node after the other reads a file, so that it stays in memory
	for _, container := range r.Nodes {
		g.Go(func() error {
			mu.Lock()
			defer mu.Unlock()
			for _, path := range d.opt.Archives {
				if err := loadArchive(ctx, d.engine, container, path); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// loadArchive imports an archive into a node's containerd. It is unpacked when the
// first container needs it, by the snapshotter that the node is set to.
func loadArchive(ctx context.Context, e engine, container, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = e.run(ctx, f, "exec", "-i", container, "ctr", "--namespace=k8s.io", "images", "import", "--all-platforms", "--digests", "--no-unpack", "-")
	return err
}
