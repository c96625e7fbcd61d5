package terminal

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

// Kinds of frames between the server and a child.
const (
	frameHello  = 'H' // to the child, first: hello
	frameInput  = 'i' // to the child: key presses
	frameSize   = 'r' // to the child: [cols, rows]
	frameEdited = 'd' // to the child: editAnswer
	frameOutput = 'o' // to the server
	frameEdit   = 'e' // to the server: editRequest
	frameExit   = 'x' // to the server: exit code of a script
)

const (
	maxFrame        = 64 << 10
	maxHello        = 4 << 20
	modeInteractive = "interactive"
	modeExec        = "exec"
	exitMemory      = 137
	exitCrash       = 70
)

// hello is what a child is told at its start.
type hello struct {
	Mode       string `json:"mode"`
	Home       string `json:"home"`
	Token      string `json:"token"`
	ServerName string `json:"serverName"`
	CAPEM      []byte `json:"caPEM"`
	Lang       string `json:"lang"`
	Cols       int    `json:"cols"`
	Rows       int    `json:"rows"`
	Script     string `json:"script,omitempty"`
	CanEdit    bool   `json:"canEdit"`
	CanLookup  bool   `json:"canLookup"`
	CanOperate bool   `json:"canOperate"`
}

type editRequest struct {
	ID   uint64 `json:"id"`
	Path string `json:"path"`
}

type editAnswer struct {
	ID    uint64 `json:"id"`
	Error string `json:"error,omitempty"`
}

// frameWriter writes frames; safe for concurrent use.
type frameWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (f *frameWriter) write(kind byte, payload []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	head := make([]byte, 5, 5+len(payload))
	head[0] = kind
	binary.BigEndian.PutUint32(head[1:], uint32(len(payload)))
	_, err := f.w.Write(append(head, payload...))
	return err
}

func (f *frameWriter) json(kind byte, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return f.write(kind, b)
}

// readFrame reads one frame of at most limit bytes.
func readFrame(r io.Reader, limit int) (kind byte, payload []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if int64(n) > int64(limit) {
		return 0, nil, fmt.Errorf("frame of %d bytes", n)
	}
	payload = make([]byte, n)
	_, err = io.ReadFull(r, payload)
	return head[0], payload, err
}
