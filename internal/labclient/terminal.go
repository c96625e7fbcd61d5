package labclient

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"
)

// Terminal is a connected terminal tab. Not for concurrent use.
type Terminal struct {
	ws    *websocket.Conn
	nonce string // tells the markers of this connection from those in the tab's scrollback
	count int
}

// Terminal connects to a tab of the session's terminal.
func (l *Learner) Terminal(ctx context.Context, id, tab string) (*Terminal, error) {
	ws, err := l.socket(ctx, "sessions/"+id+"/terminal?tab="+tab+"&after=0")
	if err != nil {
		return nil, err
	}
	return &Terminal{ws: ws, nonce: strconv.FormatInt(time.Now().UnixNano(), 36)}, nil
}

// Close drops the connection; the tab and what runs in it stay.
func (t *Terminal) Close() { _ = t.ws.CloseNow() }

// Type sends raw key presses.
func (t *Terminal) Type(ctx context.Context, keys string) error {
	return wsjson.Write(ctx, t.ws, map[string]string{"in": keys})
}

// Run types a command line and returns what the terminal showed until it ended.
// It gives up after 30 s.
func (t *Terminal) Run(ctx context.Context, line string) (string, error) {
	t.count++
	// The marker that is printed differs from the one that is echoed.
	if err := t.Type(ctx, fmt.Sprintf("%s; echo done-$((%d+0))-%s\r", line, t.count, t.nonce)); err != nil {
		return "", err
	}
	return t.Until(ctx, fmt.Sprintf("done-%d-%s", t.count, t.nonce), 30*time.Second)
}

// Until reads output until it holds marker and acknowledges each block.
func (t *Terminal) Until(ctx context.Context, marker string, limit time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var seen strings.Builder
	for {
		var block struct {
			N   uint64 `json:"n"`
			Out string `json:"out"`
		}
		if err := wsjson.Read(ctx, t.ws, &block); err != nil {
			return seen.String(), fmt.Errorf("no %q in %q: %w", marker, last(seen.String(), 2000), err)
		}
		if block.N > 0 {
			if err := wsjson.Write(ctx, t.ws, map[string]uint64{"ack": block.N}); err != nil {
				return seen.String(), err
			}
		}
		if seen.WriteString(block.Out); strings.Contains(seen.String(), marker) {
			return seen.String(), nil
		}
	}
}

func last(s string, n int) string { return s[max(0, len(s)-n):] }
