package controlapi

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
)

// maxSocketPath keeps below the kernels' limits on the path of a unix socket
// (108 bytes on Linux, 104 elsewhere, with the final zero).
const maxSocketPath = 100

// SocketDir gives paths of the sockets in a folder that are short enough for the
// kernel, however long the folder's own path is.
type SocketDir struct {
	dir  string
	file *os.File // the open folder, where its path is too long
}

// OpenSocketDir prepares paths of the sockets in dir, which must exist. The paths
// are good until Close and in this process only.
func OpenSocketDir(dir string) (*SocketDir, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("folder of the sockets: %w", err)
	}
	if len(abs)+1+len(FileControl) <= maxSocketPath {
		return &SocketDir{dir: abs}, nil
	}
	if runtime.GOOS != "linux" {
		return nil, fmt.Errorf("the path %s is too long for unix sockets (%d bytes at most)", abs, maxSocketPath-1-len(FileControl))
	}
	f, err := os.Open(abs)
	if err != nil {
		return nil, fmt.Errorf("folder of the sockets: %w", err)
	}
	return &SocketDir{dir: fmt.Sprintf("/proc/self/fd/%d", f.Fd()), file: f}, nil
}

// Path is where the socket called name can be listened on or dialled.
func (d *SocketDir) Path(name string) string { return filepath.Join(d.dir, name) }

// Listen listens on the socket called name, in place of one that an ended process left.
func (d *SocketDir) Listen(name string) (net.Listener, error) {
	p := d.Path(name)
	if err := os.Remove(p); err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("old socket: %w", err)
	}
	return net.Listen("unix", p)
}

// Dial connects to the socket called name.
func (d *SocketDir) Dial(ctx context.Context, name string) (net.Conn, error) {
	var nd net.Dialer
	return nd.DialContext(ctx, "unix", d.Path(name))
}

// Close frees the folder; connections and listeners live on.
func (d *SocketDir) Close() error {
	if d.file == nil {
		return nil
	}
	return d.file.Close()
}

// DialSocket connects to a unix socket by its path, however long that is.
func DialSocket(ctx context.Context, path string) (net.Conn, error) {
	d, err := OpenSocketDir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Dial(ctx, filepath.Base(path))
}
