package main

import (
	"slices"
	"testing"
)

func TestAllowedHosts(t *testing.T) {
	for _, tt := range []struct {
		o    serveOptions
		host string
		want bool // the list is there and has host
		any  bool // there is no list
	}{
		{serveOptions{addr: "127.0.0.1:8080"}, "localhost", true, false},
		{serveOptions{addr: "localhost:0"}, "127.0.0.1", true, false},
		{serveOptions{addr: "[::1]:80"}, "::1", true, false},
		{serveOptions{addr: "127.0.0.2:80"}, "127.0.0.2", true, false},
		{serveOptions{addr: "127.0.0.1:80"}, "evil.example", false, false},
		{serveOptions{addr: "127.0.0.1:80", publicURL: "https://lab.example:8443/x"}, "lab.example", true, false},
		{serveOptions{addr: "127.0.0.1:80", trustProxy: true}, "", false, true},
		{serveOptions{addr: "0.0.0.0:80"}, "", false, true},
		{serveOptions{addr: ":80"}, "", false, true},
		{serveOptions{addr: "192.0.2.1:80"}, "", false, true},
	} {
		got := allowedHosts(tt.o)
		if (got == nil) != tt.any || !tt.any && slices.Contains(got, tt.host) != tt.want {
			t.Errorf("%+v: %q", tt.o, got)
		}
	}
}
