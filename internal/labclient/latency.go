package labclient

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"
	"sigs.k8s.io/yaml"
)

func (l *Learner) socket(ctx context.Context, path string) (*websocket.Conn, error) {
	c, _, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(l.s.Base, "http")+"/api/v1/"+path, &websocket.DialOptions{
		HTTPClient: &http.Client{Jar: l.c.Jar}, HTTPHeader: http.Header{"Accept-Language": {"en"}},
	})
	if err != nil {
		return nil, err
	}
	c.SetReadLimit(16 << 20)
	return c, nil
}

// EventLatency creates n ConfigMaps one after the other and times each from just
// before the write until its frame is read from the event WebSocket.
func (l *Learner) EventLatency(ctx context.Context, id string, n int) ([]time.Duration, error) {
	ws, err := l.socket(ctx, "sessions/"+id+"/events?after=0")
	if err != nil {
		return nil, err
	}
	defer func() { _ = ws.CloseNow() }()
	url, token, err := l.Kubeconfig(ctx, id)
	if err != nil {
		return nil, err
	}
	type frame struct {
		Type, Verb string
		Object     struct{ Kind, Name string }
	}
	var f frame
	for f.Type != "snapshot" {
		if err := wsjson.Read(ctx, ws, &f); err != nil {
			return nil, err
		}
	}
	var took []time.Duration
	for i := range n {
		name := fmt.Sprintf("bench-%d", i)
		body := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q}}`, name)
		begin := time.Now()
		written := make(chan error, 1)
		go func() { written <- post(ctx, url+"/api/v1/namespaces/default/configmaps", token, body) }()
		for f = (frame{}); f.Type != "object" || f.Object.Name != name; {
			if err := wsjson.Read(ctx, ws, &f); err != nil {
				return nil, err
			}
		}
		took = append(took, time.Since(begin))
		if err := <-written; err != nil {
			return nil, err
		}
	}
	return took, nil
}

func post(ctx context.Context, url, token, body string) error {
	req, err := http.NewRequestWithContext(ctx, "POST", url, bytes.NewReader([]byte(body)))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusCreated {
		return fmt.Errorf("%s: %s", resp.Status, text)
	}
	return nil
}

// Kubeconfig downloads the session's kubeconfig and returns its server and token.
// The port speaks plain HTTP too, which this client uses.
func (l *Learner) Kubeconfig(ctx context.Context, id string) (server, token string, err error) {
	req, err := http.NewRequestWithContext(ctx, "GET", l.s.Base+"/api/v1/sessions/"+id+"/kubeconfig", nil)
	if err != nil {
		return "", "", err
	}
	resp, err := l.c.Do(req)
	if err != nil {
		return "", "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", "", err
	}
	var c struct {
		Clusters []struct {
			Cluster struct{ Server string }
		}
		Users []struct {
			User struct{ Token string }
		}
	}
	if err := yaml.Unmarshal(text, &c); err != nil {
		return "", "", err
	}
	if len(c.Clusters) != 1 || len(c.Users) != 1 {
		return "", "", fmt.Errorf("unexpected kubeconfig: %s", text)
	}
	return strings.Replace(c.Clusters[0].Cluster.Server, "https://", "http://", 1), c.Users[0].User.Token, nil
}

// TerminalLatency types `kubectl get pods` n times into the web terminal and
// times each from the Enter key to the end of its output.
func (l *Learner) TerminalLatency(ctx context.Context, id string, n int) ([]time.Duration, error) {
	t, err := l.Terminal(ctx, id, "latency")
	if err != nil {
		return nil, err
	}
	defer t.Close()
	// The first command starts the shell and reads the API's discovery.
	if _, err := t.Run(ctx, "kubectl get pods"); err != nil {
		return nil, err
	}
	var took []time.Duration
	for range n {
		begin := time.Now()
		if _, err := t.Run(ctx, "kubectl get pods"); err != nil {
			return nil, err
		}
		took = append(took, time.Since(begin))
	}
	return took, nil
}
