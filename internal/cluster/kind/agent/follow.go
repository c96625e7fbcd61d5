package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// maxLine bounds a line of the log; the API server cuts objects at 1.5 MB on its
// way in, and the log has them as JSON.
const maxLine = 4 << 20

// audit streams the log's entries. An entry's number is where its line ends,
// counted in bytes from the log's very beginning: it stays the same for every
// reader, and grows from entry to entry.
func (s *server) audit(w http.ResponseWriter, r *http.Request) {
	after, err := strconv.ParseUint(r.URL.Query().Get("after"), 10, 64)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	flush := http.NewResponseController(w)
	w.WriteHeader(http.StatusOK)
	if flush.Flush() != nil {
		return
	}
	enc := json.NewEncoder(w)
	_ = follow(r.Context(), s.Audit, func(n uint64, line []byte) error {
		if n <= after {
			return nil
		}
		e, ok := reduce(line)
		if !ok {
			return nil
		}
		e.N = n
		return enc.Encode(e)
	}, flush.Flush) // it ends with the request; the client asks again for anything else
}

// follow reads the lines of a log that is rotated as lumberjack does (NAME-TIME.EXT
// beside NAME.EXT), the oldest first, and then waits for more until ctx ends. idle
// is called when all that there is was read.
func follow(ctx context.Context, path string, line func(n uint64, line []byte) error, idle func() error) error {
	changes, err := watch(ctx, filepath.Dir(path))
	if err != nil {
		return err
	}
	base, err := readRotated(path, line)
	if err != nil {
		return err
	}
	for {
		f, err := awaitFile(ctx, path, changes)
		if err != nil {
			return err
		}
		if base, err = begin(f, base); err != nil {
			f.Close()
			return err
		}
		size, err := readCurrent(ctx, f, path, base, line, idle, changes)
		f.Close()
		if err != nil {
			return err
		}
		base += size
	}
}

// readRotated reads the files that were rotated away and returns how many bytes
// have gone before the current one.
func readRotated(path string, line func(uint64, []byte) error) (uint64, error) {
	ext := filepath.Ext(path)
	old, err := filepath.Glob(strings.TrimSuffix(path, ext) + "-*" + ext)
	if err != nil {
		return 0, err
	}
	slices.Sort(old) // their names hold their times
	var base uint64
	for _, name := range old {
		f, err := os.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, err
		}
		if base, err = begin(f, base); err == nil {
			l := lines{r: bufio.NewReaderSize(f, 64<<10), n: base}
			err = l.read(line)
			base = l.n
		}
		f.Close()
		if err != nil {
			return 0, err
		}
	}
	return base, nil
}

// awaitFile opens the file, when it is there.
func awaitFile(ctx context.Context, path string, changes <-chan struct{}) (*os.File, error) {
	for {
		f, err := os.Open(path)
		if !errors.Is(err, fs.ErrNotExist) {
			return f, err
		}
		select {
		case <-changes:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// readCurrent reads a file until another one has its name, and returns its size.
func readCurrent(ctx context.Context, f *os.File, path string, base uint64, line func(uint64, []byte) error, idle func() error, changes <-chan struct{}) (uint64, error) {
	l := lines{r: bufio.NewReaderSize(f, 64<<10), n: base}
	for {
		// Looked at before reading: what is written until it is renamed must be read.
		rotated := !same(f, path)
		if err := l.read(line); err != nil {
			return 0, err
		}
		if rotated {
			return l.n - base, nil
		}
		if err := idle(); err != nil {
			return 0, err
		}
		select {
		case <-changes:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

func same(f *os.File, path string) bool {
	a, err := f.Stat()
	if err != nil {
		return false
	}
	b, err := os.Stat(path)
	return err == nil && os.SameFile(a, b)
}

// lines reads whole lines; a half one waits for its rest.
type lines struct {
	r    *bufio.Reader
	n    uint64 // bytes that were read
	half []byte
	long bool // the half line is longer than maxLine
}

func (l *lines) read(line func(uint64, []byte) error) error {
	for {
		piece, err := l.r.ReadSlice('\n')
		l.n += uint64(len(piece))
		if l.long = l.long || len(l.half)+len(piece) > maxLine; l.long {
			l.half = l.half[:0]
		} else {
			l.half = append(l.half, piece...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if !l.long {
			if err := line(l.n, l.half); err != nil {
				return err
			}
		}
		l.half, l.long = l.half[:0], false
	}
}
