package session

import "testing"

func TestBetween(t *testing.T) {
	for _, tt := range []struct {
		name, raw, typed, printed string
		echoed                    bool
	}{
		{"plain", "kubectl get pods\r\nNAME\r\nsoup\r\n~$ ", "kubectl get pods", "NAME\nsoup\n", true},
		{"a late prompt before the echo", "^C\r\n~$ kubectl get pods\r\nNAME\r\n~$ ", "kubectl get pods", "NAME\n", true},
		{"colours and modes", "\x1b[?2004h\x1b[32mls\x1b[0m\x1b[K\r\n\x1b[?2004l\x1b]0;title\x07a.yaml\r\n\x1b[1m~$ \x1b[0m", "ls", "a.yaml\n", true},
		{"written over", "load\r\n10%\r50%\rdone\r\n~$ ", "load", "done\n", true},
		{"nothing printed", "true\r\n~$ ", "true", "", true},
		{"not echoed yet", "^C\r\n~$ ", "ls", "", false},
	} {
		printed, echoed := between(tt.raw, tt.typed)
		if printed != tt.printed || echoed != tt.echoed {
			t.Errorf("%s: %q %v, want %q %v", tt.name, printed, echoed, tt.printed, tt.echoed)
		}
	}
}
