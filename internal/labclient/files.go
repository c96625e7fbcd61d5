package labclient

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
)

// Upload writes a file of the session's home.
func (l *Learner) Upload(ctx context.Context, id, path string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, "PUT", l.s.Base+"/api/v1/sessions/"+id+"/files/"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/octet-stream")
	resp, err := l.c.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		return fmt.Errorf("%s: %s", resp.Status, text)
	}
	return nil
}
