// Command probe serves hello on ports 8080 and 8081, or asks a server once and prints
// what came back: the body, or "timeout", or the error.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == "get" {
		fmt.Println(get(os.Args[2]))
		return
	}
	if len(os.Args) == 2 { // a file that it must be able to write
		if err := os.WriteFile(os.Args[1], []byte("hello\n"), 0o600); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") })
	ended := make(chan error)
	for _, address := range []string{":8080", ":8081"} {
		go func() { ended <- http.ListenAndServe(address, hello) }()
	}
	fmt.Fprintln(os.Stderr, <-ended)
	os.Exit(1)
}

func get(url string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err.Error()
	}
	answer, err := http.DefaultClient.Do(r)
	if errors.Is(err, context.DeadlineExceeded) {
		return "timeout"
	} else if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return err.Error()
	}
	return string(body)
}
