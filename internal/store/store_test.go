package store_test

import (
	"bufio"
	"database/sql"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"kubistro/internal/lab"
	"kubistro/internal/store"
	"kubistro/internal/store/storetest"
)

// crashEnv makes the test binary the process that the crash test kills.
const crashEnv = "KUBISTRO_STORE_CRASH_TEST"

func TestMain(m *testing.M) {
	if path := os.Getenv(crashEnv); path != "" {
		os.Exit(appendForever(path))
	}
	goleak.VerifyTestMain(m)
}

func open(t *testing.T, path string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestSQLite(t *testing.T) {
	storetest.Run(t, func(t *testing.T) *store.Store { return open(t, filepath.Join(t.TempDir(), "kubistro.db")) })
}

func TestOpenAgainKeepsAll(t *testing.T) {
	// A path with the characters that a URI would take for its own.
	path := filepath.Join(t.TempDir(), "a b?c%20#廚房.db")
	s := open(t, path)
	if _, err := s.SeeLearner(t.Context(), "ann", time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, path).Learner(t.Context(), "ann"); err != nil {
		t.Error(err)
	}
	if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("stat = %v, %v; want mode 0600", fi, err)
	}
}

// execRaw changes a database behind the store's back.
func execRaw(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, q := range statements {
		if _, err := db.Exec(q); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, tc := range []struct {
		name    string
		prepare func(t *testing.T, path string)
		code    lab.Code
		says    string
	}{
		{"a file that is no database", func(t *testing.T, path string) {
			write(t, path, []byte(strings.Repeat("This is a text.\n", 1000)))
		}, lab.CodeUnavailable, "damaged"},
		{"a truncated database", func(t *testing.T, path string) {
			fill(t, path)
			fi, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(path, fi.Size()/2); err != nil {
				t.Fatal(err)
			}
		}, lab.CodeUnavailable, "damaged"},
		{"a database with a spoiled page", func(t *testing.T, path string) {
			fill(t, path)
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if _, err := f.WriteAt([]byte(strings.Repeat("\xff", 4096)), 3*4096); err != nil {
				t.Fatal(err)
			}
		}, lab.CodeUnavailable, "damaged"},
		{"another program's database", func(t *testing.T, path string) {
			execRaw(t, path, `CREATE TABLE recipes (id INTEGER)`)
		}, lab.CodeInvalid, "another program"},
		{"a newer version's database", func(t *testing.T, path string) {
			fill(t, path)
			execRaw(t, path, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (9000, 1)`)
		}, lab.CodeInvalid, "newer"},
		{"a folder that isn't there", func(t *testing.T, path string) {
			if err := os.Remove(filepath.Dir(path)); err != nil {
				t.Fatal(err)
			}
		}, lab.CodeUnavailable, "can't be opened"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "data", "kubistro.db")
			if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			tc.prepare(t, path)
			before, _ := os.ReadFile(path)
			s, err := store.Open(t.Context(), path)
			if err == nil {
				s.Close()
				t.Fatal("opened")
			}
			var e *lab.Error
			if !errors.As(err, &e) || e.Code != tc.code || !strings.Contains(e.Text.En, tc.says) || !strings.Contains(e.Text.ZhTW, path) {
				t.Errorf("error = %v (%+v), want code %s and %q", err, e, tc.code, tc.says)
			}
			if after, _ := os.ReadFile(path); tc.says == "another program" && string(after) != string(before) {
				t.Error("the file was changed")
			}
		})
	}
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// fill makes a database with some pages of content.
func fill(t *testing.T, path string) {
	t.Helper()
	s, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := prepareStream(s); err != nil {
		t.Fatal(err)
	}
	if err := s.AppendEvents(t.Context(), "s1", batchFrom(1, 500)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestKilledWhileWriting(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubistro.db")
	for round := range 3 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), crashEnv+"="+path)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var reported uint64
		lines := bufio.NewScanner(out)
		for n := 0; n < 50 && lines.Scan(); n++ {
			if reported, err = strconv.ParseUint(lines.Text(), 10, 64); err != nil {
				t.Fatal(err)
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() { // what it had committed and said before the end
			if n, err := strconv.ParseUint(lines.Text(), 10, 64); err == nil {
				reported = n
			}
		}
		if err := cmd.Wait(); err == nil {
			t.Fatal("the writer ended by itself")
		}

		s := open(t, path)
		first, last, err := s.EventRange(t.Context(), "s1")
		if err != nil {
			t.Fatal(err)
		}
		if reported == 0 || last < reported || last%crashBatch != 0 {
			t.Errorf("round %d: last event %d, committed %d in batches of %d", round, last, reported, crashBatch)
		}
		got, err := s.Events(t.Context(), "s1", 0, store.EventsKept)
		if err != nil || len(got) != int(last-first+1) {
			t.Errorf("round %d: %d events of %d to %d, %v", round, len(got), first, last, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
