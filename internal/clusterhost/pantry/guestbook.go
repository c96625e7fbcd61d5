package pantry

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
)

// guestbookProgram is the web page of the guestbook tutorial: what guests write goes to
// the redis called redis-leader, what they read comes from redis-follower.
func guestbookProgram(ctx context.Context, p *Process) int {
	host := func(role, variable string) string {
		if p.Getenv("GET_HOSTS_FROM") == "env" {
			return p.Getenv(variable)
		}
		return role
	}
	ask := func(ctx context.Context, server string, words ...string) (any, error) {
		c := &redisClient{p: p, address: server + ":6379"}
		defer c.close()
		if err := c.connect(ctx, ""); err != nil {
			return nil, err
		}
		return c.call(words)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, guestbookPage)
	})
	mux.HandleFunc("/guestbook.php", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		key, answer := q.Get("key"), map[string]string{}
		if q.Get("cmd") == "set" {
			said, err := ask(r.Context(), host("redis-leader", "REDIS_LEADER_SERVICE_HOST"), "SET", key, q.Get("value"))
			if refused, ok := said.(redisError); err != nil || ok {
				failedGuest(w, err, string(refused))
				return
			}
			answer["message"] = "Updated"
		} else {
			said, err := ask(r.Context(), host("redis-follower", "REDIS_FOLLOWER_SERVICE_HOST"), "GET", key)
			if refused, ok := said.(redisError); err != nil || ok {
				failedGuest(w, err, string(refused))
				return
			}
			answer["data"], _ = said.(string) // nothing was written yet
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(answer)
	})
	return p.apache(ctx, "2.4.53", mux)
}

func failedGuest(w http.ResponseWriter, err error, refused string) {
	if err != nil {
		refused = dialReason(err)
	}
	http.Error(w, "Fatal error: Uncaught Predis\\Connection\\ConnectionException: "+refused, http.StatusInternalServerError)
}

const guestbookPage = `<!DOCTYPE html>
<html>
  <head>
    <title>Guestbook</title>
    <script>
      const show = () => fetch("guestbook.php?cmd=get&key=messages").then(r => r.json()).then(j => {
        const list = document.getElementById("messages");
        list.replaceChildren(...j.data.split(",").filter(Boolean).map(m => Object.assign(document.createElement("div"), {textContent: m})));
        list.dataset.all = j.data;
      });
      const send = () => {
        const box = document.getElementById("message");
        const all = (document.getElementById("messages").dataset.all || "") + "," + box.value;
        fetch("guestbook.php?cmd=set&key=messages&value=" + encodeURIComponent(all)).then(() => { box.value = ""; show(); });
      };
      addEventListener("load", show);
    </script>
  </head>
  <body>
    <h2>Guestbook</h2>
    <input id="message" placeholder="Messages"> <button onclick="send()">Submit</button>
    <div id="messages"></div>
  </body>
</html>
`
