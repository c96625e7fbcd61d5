package main

import (
	"encoding/json"
	"os"
	"path/filepath"
)

// Transcript is what a scenario showed on one cluster, as it came.
type Transcript struct {
	Commands []Command        `json:"commands"`
	Objects  []map[string]any `json:"objects,omitempty"` // of the namespace, without Events
	Events   []map[string]any `json:"events,omitempty"`
	// Failure says which step couldn't be done; then the transcript ends there.
	Failure string `json:"failure,omitempty"`
}

// Command is a Step.Run that was done. Output is standard output and error as a terminal shows them.
type Command struct {
	Line   string `json:"line"`
	Output string `json:"output"`
	Exit   int    `json:"exit"`
}

// save writes the transcript for people to look at, and for a replay.
func (t *Transcript) save(path string) error {
	b, err := json.MarshalIndent(t, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o644)
}

func loadTranscript(path string) (*Transcript, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	t := &Transcript{}
	return t, json.Unmarshal(b, t)
}
