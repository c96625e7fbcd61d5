package pantry

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"sort"
	"strconv"
	"strings"
	"time"
)

// Bounds of what one request may ask a cook for.
const (
	maxDish  = 10 * time.Minute
	maxHoard = 64 << 30
)

func (c *cook) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/", c.greet)
	mux.HandleFunc("/healthz", c.probe("healthy", &c.healthy))
	mux.HandleFunc("/readyz", c.probe("ready", &c.ready))
	mux.HandleFunc("/menu", c.menu)
	mux.HandleFunc("/cook", c.cookDish)
	mux.HandleFunc("/hoard", c.hoard)
	mux.HandleFunc("POST /admin/", c.admin)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := c.p.Clock.Now()
		sw := &statusWriter{ResponseWriter: w}
		if c.spend(r.Context(), requestCPU) {
			mux.ServeHTTP(sw, r)
		}
		if r.URL.Path != "/healthz" && r.URL.Path != "/readyz" {
			c.say("%s %s %d to %s in %s", r.Method, r.URL.RequestURI(), sw.status, r.RemoteAddr, c.p.Clock.Since(start).Round(time.Millisecond))
		}
	})
}

// greet answers who served the guest.
func (c *cook) greet(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/" {
		http.Error(w, "404 this dish isn't on the menu: "+r.URL.Path, http.StatusNotFound)
		return
	}
	greeting := "Welcome! Your dish comes from the " + c.station + " station."
	if c.version != "1.4" {
		greeting = "Welcome! Trained by version " + c.version + ", your dish comes from the " + c.station + " station."
	}
	fields := [][2]string{
		{"greeting", greeting}, {"hostname", c.p.Hostname}, {"version", c.version}, {"station", c.station},
	}
	if wantsJSON(r) {
		writeJSON(w, http.StatusOK, object(fields))
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintf(w, "%s\nHostname: %s\nVersion: %s\nStation: %s\n", greeting, c.p.Hostname, c.version, c.station)
}

// probe is a switchable health endpoint.
func (c *cook) probe(name string, on interface{ Load() bool }) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if on.Load() {
			io.WriteString(w, "ok\n")
			return
		}
		http.Error(w, "not "+name, http.StatusServiceUnavailable)
	}
}

// menu shows the settings: variables that start with MENU_, and the files of /etc/menu as they are now.
func (c *cook) menu(w http.ResponseWriter, r *http.Request) {
	settings := c.settings()
	if wantsJSON(r) {
		writeJSON(w, http.StatusOK, object(settings))
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if len(settings) == 0 {
		io.WriteString(w, "The menu is empty: no MENU_ variables and no files in /etc/menu.\n")
	}
	for _, kv := range settings {
		fmt.Fprintf(w, "%s: %s\n", kv[0], kv[1])
	}
}

func (c *cook) settings() [][2]string {
	var out [][2]string
	for _, kv := range c.p.Env {
		if name, value, _ := strings.Cut(kv, "="); strings.HasPrefix(name, "MENU_") {
			out = append(out, [2]string{name, value})
		}
	}
	sort.Slice(out, func(a, b int) bool { return out[a][0] < out[b][0] })
	entries, err := c.p.FS.ReadDir("/etc/menu")
	if err != nil {
		return out
	}
	for _, e := range entries {
		name := path.Join("/etc/menu", e.Name())
		if e.IsDir() || strings.HasPrefix(e.Name(), "..") {
			continue
		}
		file, err := c.p.FS.OpenFile(name, 0, 0)
		if err != nil {
			continue
		}
		data, err := io.ReadAll(io.LimitReader(file, 64<<10))
		file.Close()
		if err == nil {
			out = append(out, [2]string{name, strings.TrimRight(string(data), "\n")})
		}
	}
	return out
}

// cookDish costs ms milliseconds (default 100) of CPU time on one core, and takes
// longer than that where the CPU is scarce; mib MiB of memory are held meanwhile.
func (c *cook) cookDish(w http.ResponseWriter, r *http.Request) {
	took := 100 * time.Millisecond
	if s := r.URL.Query().Get("ms"); s != "" {
		ms, err := strconv.Atoi(s)
		if err != nil || ms < 0 || time.Duration(ms)*time.Millisecond > maxDish {
			http.Error(w, fmt.Sprintf("ms must be a number from 0 to %d", maxDish.Milliseconds()), http.StatusBadRequest)
			return
		}
		took = time.Duration(ms) * time.Millisecond
	}
	held := int64(0)
	if s := r.URL.Query().Get("mib"); s != "" {
		var err error
		if held, err = mebibytes(s); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	c.busy.Add(1)
	defer c.busy.Add(-1)
	c.p.Usage.AddMemory(held)
	defer c.p.Usage.AddMemory(-held)
	if !c.spend(r.Context(), took) {
		return // the guest left, or the cook was cut off
	}
	n := c.dishes.Add(1)
	if wantsJSON(r) {
		writeJSON(w, http.StatusOK, map[string]string{"dish": strconv.FormatInt(n, 10), "cook": c.p.Hostname, "took": took.String()})
		return
	}
	fmt.Fprintf(w, "Dish %d by %s, cooked for %s\n", n, c.p.Hostname, took)
}

// hoard piles up mib MiB more of memory (negative: less; without mib: says how
// much); with for=30s all of it is given back then.
func (c *cook) hoard(w http.ResponseWriter, r *http.Request) {
	held := c.hoarded.Load()
	if s := r.URL.Query().Get("mib"); s != "" {
		mib, err := strconv.ParseInt(s, 10, 32)
		if err != nil || held+mib<<20 > maxHoard {
			http.Error(w, fmt.Sprintf("mib must be a number; at most %d in all", maxHoard>>20), http.StatusBadRequest)
			return
		}
		d, err := duration(r.URL.Query().Get("for"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		held = max(held+mib<<20, 0)
		c.setHoard(held, d)
	}
	fmt.Fprintf(w, "%s holds %d MiB on the counter\n", c.p.Hostname, held>>20)
}

// admin switches the cook's state; only from inside of the Pod.
func (c *cook) admin(w http.ResponseWriter, r *http.Request) {
	if !fromHere(r) {
		http.Error(w, "only the cook's own Pod may do that: use kubectl exec or port-forward", http.StatusForbidden)
		return
	}
	on := r.URL.Query().Get("on") != "false"
	switch r.URL.Path {
	case "/admin/ready":
		c.ready.Store(on)
	case "/admin/health":
		c.healthy.Store(on)
	case "/admin/burn":
		c.burn("somebody asked for it")
	case "/admin/load":
		load, err := millicores(r.URL.Query().Get("cpu"))
		d, err2 := duration(r.URL.Query().Get("for"))
		if err := errors.Join(err, err2); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		c.setLoad(load, d)
	default:
		http.NotFound(w, r)
		return
	}
	io.WriteString(w, "ok\n")
}

func wantsJSON(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "application/json")
}

// object is a JSON object with the fields in order.
func object(fields [][2]string) json.Marshaler { return ordered(fields) }

type ordered [][2]string

func (o ordered) MarshalJSON() ([]byte, error) {
	var b strings.Builder
	b.WriteByte('{')
	for k, f := range o {
		if k > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(f[0])
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(f[1])
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return []byte(b.String()), nil
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.Encode(v) // a guest that left can't be told
}
