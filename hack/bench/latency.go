package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"
	"sigs.k8s.io/yaml"
)

func (l *learner) socket(ctx context.Context, path string) (*websocket.Conn, error) {
	c, _, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(l.s.base, "http")+"/api/v1/"+path, &websocket.DialOptions{HTTPClient: &http.Client{Jar: l.c.Jar}})
	if err != nil {
		return nil, err
	}
	c.SetReadLimit(16 << 20)
	return c, nil
}

// eventLatency creates n ConfigMaps one after the other and times each from just
// before the write until its frame is read from the event WebSocket.
func (l *learner) eventLatency(ctx context.Context, id string, n int) ([]time.Duration, error) {
	ws, err := l.socket(ctx, "sessions/"+id+"/events?after=0")
	if err != nil {
		return nil, err
	}
	defer func() { _ = ws.CloseNow() }()
	url, token, err := l.kubeconfig(ctx, id)
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

func (l *learner) kubeconfig(ctx context.Context, id string) (server, token string, err error) {
	req, err := http.NewRequestWithContext(ctx, "GET", l.s.base+"/api/v1/sessions/"+id+"/kubeconfig", nil)
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
	return c.Clusters[0].Cluster.Server, c.Users[0].User.Token, nil
}

// terminalLatency types `kubectl get pods` n times into the web terminal, each
// followed by a marker, and times from the Enter key to the marker's output.
func (l *learner) terminalLatency(ctx context.Context, id string, n int) ([]time.Duration, error) {
	ws, err := l.socket(ctx, "sessions/"+id+"/terminal?tab=bench&after=0")
	if err != nil {
		return nil, err
	}
	defer func() { _ = ws.CloseNow() }()
	var took []time.Duration
	for i := range n + 1 {
		// The marker that is printed differs from the one that is echoed.
		line := fmt.Sprintf("kubectl get pods; echo done-$((%d+0))-\r", i)
		text, err := json.Marshal(map[string]string{"in": line})
		if err != nil {
			return nil, err
		}
		begin := time.Now()
		if err := ws.Write(ctx, websocket.MessageText, text); err != nil {
			return nil, err
		}
		if err := readUntil(ctx, ws, fmt.Sprintf("done-%d-", i)); err != nil {
			return nil, err
		}
		if i > 0 { // the first one starts the shell and reads the API's discovery
			took = append(took, time.Since(begin))
		}
	}
	return took, nil
}

func readUntil(ctx context.Context, ws *websocket.Conn, marker string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for seen := ""; ; {
		var block struct {
			N   uint64
			Out string
		}
		if err := wsjson.Read(ctx, ws, &block); err != nil {
			return errors.Join(fmt.Errorf("no %q in %q", marker, seen), err)
		}
		if block.N > 0 {
			if err := wsjson.Write(ctx, ws, map[string]uint64{"ack": block.N}); err != nil {
				return err
			}
		}
		if seen += block.Out; strings.Contains(seen, marker) {
			return nil
		}
	}
}
