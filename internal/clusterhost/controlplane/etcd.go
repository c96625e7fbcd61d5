package controlplane

import (
	"context"
	"expvar"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// fileEtcd is etcd's socket in the cluster's folder.
const fileEtcd = "etcd.sock"

// walSegment is what etcd preallocates on disk twice per cluster; its own
// default of 64 MB would cost a workshop gigabytes.
const walSegment = 4 << 20

// etcdMember is the whiteboard: one etcd member on a unix socket, without peers.
type etcdMember struct {
	embed *embed.Etcd
	url   string
	quota int64
	log   *slog.Logger
	stop  context.CancelFunc
	wg    sync.WaitGroup
}

// startEtcd starts the member on folder dir/etcd; ready tells when it serves. The
// data isn't forced to the disk at every write: a crash of the machine may cost
// a cluster its last seconds, a crash of the process nothing.
func startEtcd(dir, socket string, quota int64, log *slog.Logger) (*etcdMember, error) {
	data := filepath.Join(dir, "etcd")
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
	}
	wal.SegmentSizeBytes = walSegment
	client := url.URL{Scheme: "unix", Path: socket}
	peer := url.URL{Scheme: "http", Host: "localhost:2380"} // a name only: nothing listens there
	cfg := embed.NewConfig()
	cfg.Name = officeName
	cfg.Dir = data
	cfg.LogLevel = "error"
	cfg.ListenClientUrls = []url.URL{client}
	cfg.AdvertiseClientUrls = []url.URL{client}
	cfg.ListenPeerUrls = nil
	cfg.AdvertisePeerUrls = []url.URL{peer}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.UnsafeNoFsync = true
	// Ticks are for members that lose each other, and each wakes the idle process twice.
	// The first election doesn't wait for them: see elect.
	cfg.TickMs = 1000
	cfg.ElectionMs = 5000
	cfg.BackendBatchInterval = time.Second // what isn't in the database yet is in the log
	cfg.BackendBatchLimit = 100            // nor in memory without bound
	cfg.QuotaBackendBytes = quota
	cfg.SnapshotCount = 2000
	cfg.SnapshotCatchUpEntries = 1 // entries that are kept in memory for members that lag behind: there are none
	cfg.EnableGRPCGateway = false
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
	}
	m := &etcdMember{embed: e, url: client.String(), quota: quota, log: log}
	var care context.Context
	care, m.stop = context.WithCancel(context.Background())
	m.wg.Go(func() { m.maintain(care) })
	return m, nil
}

// ready lets the member elect itself and waits until it serves.
func (m *etcdMember) ready(ctx context.Context) error {
	t := time.NewTicker(2 * time.Millisecond)
	defer t.Stop()
	for {
		select {
		case <-m.embed.Server.ReadyNotify():
			return nil
		case err := <-m.embed.Err():
			return fmt.Errorf("etcd: %w", err)
		case <-ctx.Done():
			return fmt.Errorf("etcd: %w", context.Cause(ctx))
		case <-t.C:
		}
		if err := m.elect(ctx); err != nil {
			return fmt.Errorf("etcd: %w", err)
		}
	}
}

// elect tells a member without a leader to stand for election at once, with the message
// that hands leadership over. It does nothing while the member isn't so far, and not before raft
// knows that all committed entries are applied: raft looks through the others for
// changes of the membership, and panics over those that are compacted
// already. Once there is a leader, what it has done is put into the
// database, where the member looks for the version of its storage.
func (m *etcdMember) elect(ctx context.Context) error {
	s := m.embed.Server
	if s.Leader() != 0 {
		s.Backend().ForceCommit()
		return nil
	}
	id := uint64(s.MemberID())
	if st, ok := raftStatus(); ok && st.ID == id && st.Applied != st.GetCommit() {
		return nil
	}
	return s.Process(ctx, &raftpb.Message{Type: raftpb.MsgTimeoutNow.Enum(), From: new(id), To: new(id)})
}

// raftStatus is that of the member of this process that was started last, which etcd publishes.
func raftStatus() (raft.Status, bool) {
	f, ok := expvar.Get("raft.status").(expvar.Func)
	if !ok {
		return raft.Status{}, false
	}
	st, ok := f.Value().(raft.Status)
	return st, ok
}

// close stops the member; everything written is on the disk afterwards.
func (m *etcdMember) close() {
	m.stop()
	m.wg.Wait()
	m.embed.Close()
}

// size is how many bytes the database takes.
func (m *etcdMember) size() int64 { return m.embed.Server.Backend().Size() }

// maintain keeps the database small and takes back the alarm of a full one: with
// the alarm only reads and deletes go on, until somebody compacts,
// defragments and disarms, which a learner can't.
func (m *etcdMember) maintain(ctx context.Context) {
	t := time.NewTicker(5 * time.Second)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if err := m.maintainOnce(ctx); err != nil && ctx.Err() == nil {
			m.log.Warn("etcd maintenance failed", "err", err)
		}
	}
}

func (m *etcdMember) maintainOnce(ctx context.Context) error {
	s := m.embed.Server
	alarm := false
	for _, a := range s.Alarms() {
		alarm = alarm || a.Alarm == pb.AlarmType_NOSPACE
	}
	if !alarm && s.Backend().Size() < m.quota*7/10 {
		return nil
	}
	rev := s.KV().Rev()
	if rev > s.KV().FirstRev() {
		if _, err := s.Compact(ctx, &pb.CompactionRequest{Revision: rev, Physical: true}); err != nil {
			return fmt.Errorf("compact: %w", err)
		}
	}
	b := s.Backend()
	b.ForceCommit()
	if b.SizeInUse() < b.Size()*8/10 {
		if err := b.Defrag(); err != nil {
			return fmt.Errorf("defragment: %w", err)
		}
	}
	if !alarm || b.Size() >= m.quota*9/10 {
		return nil
	}
	_, err := s.Alarm(ctx, &pb.AlarmRequest{Action: pb.AlarmRequest_DEACTIVATE, MemberID: uint64(s.MemberID()), Alarm: pb.AlarmType_NOSPACE})
	if err != nil {
		return fmt.Errorf("disarm: %w", err)
	}
	m.log.Info("etcd has room again", "bytes", b.Size(), "quota", m.quota)
	return nil
}
