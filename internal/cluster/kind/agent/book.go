package agent

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// fileBook, beside the log, remembers where its files begin.
const fileBook = "numbers.json"

// bookMost is how many files the book remembers; the log has two.
const bookMost = 8

// begin says how many bytes of the log went before a file: what the book says, so that
// numbers don't begin anew when older files are removed. A file that isn't in
// it follows what was read before, and is written into it.
func begin(f *os.File, before uint64) (uint64, error) {
	fi, err := f.Stat()
	if err != nil {
		return 0, err
	}
	path, id := filepath.Join(filepath.Dir(f.Name()), fileBook), fileID(fi)
	bases := map[string]uint64{}
	if b, err := os.ReadFile(path); err == nil {
		_ = json.Unmarshal(b, &bases) // a spoiled one is a lost one
	}
	known, ok := bases[id]
	if ok && known >= before {
		return known, nil
	}
	for _, base := range bases { // also when all that went before has been removed
		before = max(before, base)
	}
	if len(bases) >= bookMost {
		clear(bases)
	}
	bases[id] = before
	return before, writeBook(path, bases)
}

func writeBook(path string, bases map[string]uint64) error {
	b, err := json.Marshal(bases)
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".numbers-")
	if err != nil {
		return fmt.Errorf("audit numbers: %w", err)
	}
	_, err = tmp.Write(b)
	if closeErr := tmp.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		os.Remove(tmp.Name())
		return fmt.Errorf("audit numbers: %w", err)
	}
	return nil
}
