package host

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// level orders log lines.
type level int

const (
	levelDebug level = iota
	levelInfo
	levelWarn
	levelError
	levelNone
)

// levels by the names that --log.level takes.
var levels = map[string]level{
	"trace": levelDebug, "debug": levelDebug, "info": levelInfo, "warn": levelWarn, "warning": levelWarn, "error": levelError, "fatal": levelNone, "panic": levelNone,
}

// logger writes lines in the form of Traefik's console format: time, level in three
// letters, message, and key=value pairs. Equal consecutive complaints are
// written once: a configuration is made anew on every change of an endpoint.
type logger struct {
	clock clock.PassiveClock
	min   level

	mu   sync.Mutex
	w    io.Writer
	said map[string]bool // complaints of the configuration before
	now  map[string]bool // and of the one that is being made
}

func newLogger(w io.Writer, c clock.PassiveClock, min level) *logger {
	return &logger{w: w, clock: c, min: min, said: map[string]bool{}, now: map[string]bool{}}
}

func (l *logger) line(at level, name, message string, pairs []any) string {
	if at < l.min {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s", l.clock.Now().UTC().Format(time.RFC3339), name, message)
	for k := 0; k+1 < len(pairs); k += 2 {
		value := fmt.Sprint(pairs[k+1])
		if strings.ContainsAny(value, " \"=\n\t") || value == "" {
			value = strconv.Quote(value)
		}
		fmt.Fprintf(&b, " %v=%s", pairs[k], value)
	}
	b.WriteByte('\n')
	return b.String()
}

func (l *logger) write(line string) {
	if line == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	io.WriteString(l.w, line)
}

func (l *logger) debug(message string, pairs ...any) {
	l.write(l.line(levelDebug, "DBG", message, pairs))
}
func (l *logger) info(message string, pairs ...any) {
	l.write(l.line(levelInfo, "INF", message, pairs))
}
func (l *logger) warn(message string, pairs ...any) {
	l.write(l.line(levelWarn, "WRN", message, pairs))
}
func (l *logger) error(message string, pairs ...any) {
	l.write(l.line(levelError, "ERR", message, pairs))
}
func (l *logger) fatal(message string) { l.write(l.line(levelNone, "FTL", message, nil)) }

// complain is error for what is wrong with the objects that a configuration is made of.
func (l *logger) complain(message string, pairs ...any) {
	key := message + fmt.Sprint(pairs...)
	l.mu.Lock()
	known := l.said[key] || l.now[key]
	l.now[key] = true
	l.mu.Unlock()
	if !known {
		l.error(message, pairs...)
	}
}

// built ends a configuration: what wasn't complained of this time may be said anew.
func (l *logger) built() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.said, l.now = l.now, map[string]bool{}
}
