package embedded

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"kubistro/internal/clusterhost/controlapi"
)

// logBytes is how large a cluster's log may grow; it is cut to a quarter.
const logBytes = 4 << 20

// tailBytes is how much of the log an error carries.
const tailBytes = 4 << 10

// trimLog cuts a log that is larger than limit to its newest quarter. The host
// goes on appending to the same file; what it writes in the moment of cutting may be lost.
func trimLog(dir string, limit int64) error {
	path := filepath.Join(dir, controlapi.FileLog)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // errors of the writes are seen
	fi, err := f.Stat()
	if err != nil || fi.Size() <= limit {
		return err
	}
	b, err := lastBytes(f, fi.Size(), limit/4)
	if err != nil {
		return err
	}
	if err := f.Truncate(0); err != nil {
		return fmt.Errorf("cut log: %w", err)
	}
	if _, err := f.WriteAt(b, 0); err != nil {
		return fmt.Errorf("cut log: %w", err)
	}
	return nil
}

// lastBytes reads the whole lines among the last n bytes.
func lastBytes(f *os.File, size, n int64) ([]byte, error) {
	from := max(0, size-n)
	b, err := io.ReadAll(io.NewSectionReader(f, from, size-from))
	if err != nil {
		return nil, fmt.Errorf("read log: %w", err)
	}
	if from > 0 {
		if i := strings.IndexByte(string(b), '\n'); i >= 0 {
			b = b[i+1:]
		}
	}
	return b, nil
}

// tail is the end of a cluster's log, for the cause of an error.
func tail(dir string) string {
	f, err := os.Open(filepath.Join(dir, controlapi.FileLog))
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }() // it was only read
	fi, err := f.Stat()
	if err != nil {
		return ""
	}
	b, err := lastBytes(f, fi.Size(), tailBytes)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
