// Package assets holds the bundled scripts, styles and icons of the page and
// serves them under names that contain their hash. The bundle is made by
// "npm run build" in this folder; without it Bundle.Built is false.
package assets

import (
	"bytes"
	"compress/gzip"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed all:dist
var dist embed.FS

// Bundle is the built assets. It is immutable and an http.Handler for /assets/.
type Bundle struct {
	names map[string]string // "main.js" -> "main-ABCD1234.js"
	files map[string]file   // by hashed name
}

type file struct {
	plain, gzipped []byte
	contentType    string
}

// Load reads the embedded bundle. A bundle that was never built is no error; a damaged one is.
func Load() (*Bundle, error) {
	sub, err := fs.Sub(dist, "dist")
	if err != nil {
		return nil, err
	}
	return load(sub)
}

func load(fsys fs.FS) (*Bundle, error) {
	b := &Bundle{names: map[string]string{}, files: map[string]file{}}
	manifest, err := fs.ReadFile(fsys, "manifest.json")
	if errors.Is(err, fs.ErrNotExist) {
		return b, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(manifest, &b.names); err != nil {
		return nil, fmt.Errorf("assets: manifest.json: %w", err)
	}
	for _, hashed := range b.names {
		body, err := fs.ReadFile(fsys, hashed)
		if err != nil {
			return nil, fmt.Errorf("assets: %w", err)
		}
		var z bytes.Buffer
		zw, err := gzip.NewWriterLevel(&z, gzip.BestCompression)
		if err != nil {
			return nil, err
		}
		if _, err := zw.Write(body); err != nil {
			return nil, err
		}
		if err := zw.Close(); err != nil {
			return nil, err
		}
		b.files[hashed] = file{plain: body, gzipped: z.Bytes(), contentType: contentType(hashed)}
	}
	return b, nil
}

// contentType doesn't depend on what the machine has registered.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".txt":
		return "text/plain; charset=utf-8"
	}
	return mime.TypeByExtension(path.Ext(name))
}

// Built reports whether there is a bundle.
func (b *Bundle) Built() bool { return len(b.files) > 0 }

// URL is the address of an asset by its plain name; empty for an unknown one.
func (b *Bundle) URL(name string) string {
	hashed, ok := b.names[name]
	if !ok {
		return ""
	}
	return "/assets/" + hashed
}

// ServeHTTP answers GET /assets/NAME. Names change with the content, so answers may be kept forever.
func (b *Bundle) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f, ok := b.files[strings.TrimPrefix(r.URL.Path, "/assets/")]
	if !ok {
		http.Error(w, "no such asset", http.StatusNotFound)
		return
	}
	h := w.Header()
	h.Set("Content-Type", f.contentType)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("Vary", "Accept-Encoding")
	body := f.plain
	if len(f.gzipped) < len(f.plain) && acceptsGzip(r) {
		h.Set("Content-Encoding", "gzip")
		body = f.gzipped
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

// ServeNamed answers with an asset under a name of the caller's, which must not let browsers keep it for long.
func (b *Bundle) ServeNamed(w http.ResponseWriter, r *http.Request, name string) {
	f, ok := b.files[b.names[name]]
	if !ok {
		http.Error(w, "no such asset", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", f.contentType)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.plain))
}

func acceptsGzip(r *http.Request) bool {
	if r.Header.Get("Range") != "" {
		return false
	}
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, q, _ := strings.Cut(part, ";")
		if strings.TrimSpace(name) == "gzip" && strings.ReplaceAll(q, " ", "") != "q=0" {
			return true
		}
	}
	return false
}
