// Package browsertest drives the pages in a real headless Chromium: on doubles
// for layout, folding, reconnects, languages and keyboard, and on the real
// programs for the whole path of a new learner.
package browsertest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience is how long a page may take on a busy machine.
const patience = 90 * time.Second

var browser = sync.OnceValues(findBrowser)

func findBrowser() (string, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			return p, nil
		}
	}
	return "", fmt.Errorf("no Chromium found: install it (Debian: apt-get install chromium)")
}

// tab is one page of a fresh browser profile.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	console  []string // errors and refusals of the page's policy
	forgiven []string
}

// open starts a browser with a window of a size, in a language.
func open(t *testing.T, width, height int64, lang string) *tab {
	t.Helper()
	path, err := browser()
	if err != nil {
		t.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("no-first-run", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		chromedp.Flag("accept-lang", lang), chromedp.Flag("lang", lang),
		chromedp.Flag("force-prefers-reduced-motion", os.Getenv("KUBISTRO_MOTION") == ""),
		chromedp.WindowSize(int(width), int(height)),
	)
	alloc, cancelAlloc := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancelAlloc)
	ctx, cancel := chromedp.NewContext(alloc)
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx}
	// The first call starts the browser, which lives as long as ctx.
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Listen(ctx, b.listen); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, log.Enable, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	if width < 600 {
		b.run(chromedp.EmulateViewport(width, height, chromedp.EmulateMobile))
	} else {
		b.run(chromedp.EmulateViewport(width, height))
	}
	t.Cleanup(b.checkConsole)
	return b
}

func (b *tab) listen(ev any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := ev.(type) {
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError {
			b.console = append(b.console, e.Entry.Text+" "+e.Entry.URL)
		}
	case *cdpruntime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
		b.console = append(b.console, "exception: "+text)
	}
}

// forgive allows console errors that hold a text: those that a test makes on purpose.
func (b *tab) forgive(text string) { b.forgiven = append(b.forgiven, text) }

// checkConsole fails the test when the page complained: also how a refusal by the policy shows.
func (b *tab) checkConsole() {
	b.mu.Lock()
	defer b.mu.Unlock()
next:
	for _, line := range b.console {
		for _, f := range b.forgiven {
			if strings.Contains(line, f) {
				continue next
			}
		}
		b.t.Errorf("the browser's console: %s", line)
	}
}

// run does something or fails the test; with KUBISTRO_SHOTS a picture tells what the page showed.
func (b *tab) run(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.shot("failed-" + strings.ReplaceAll(b.t.Name(), "/", "-"))
		b.t.Fatal(err)
	}
}

// do runs a script.
func (b *tab) do(script string) {
	b.t.Helper()
	b.run(chromedp.Evaluate[chromedp.Void](script))
}

// js evaluates an expression.
func js[T any](b *tab, expression string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// wait waits until an expression is true. (chromedp's own polling makes
// functions of strings, which the page's policy forbids.)
func (b *tab) wait(what, expression string) {
	b.t.Helper()
	b.waitFor(patience, what, expression)
}

// waitLong is wait for what a real cluster does.
func (b *tab) waitLong(what, expression string) {
	b.t.Helper()
	b.waitFor(long, what, expression)
}

func (b *tab) waitFor(limit time.Duration, what, expression string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, limit)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("Boolean("+expression+")"))
		if ok {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			b.shot("failed-" + strings.ReplaceAll(b.t.Name(), "/", "-"))
			b.t.Fatalf("waited in vain for %s (%s): %v", what, expression, err)
		}
	}
}

// shot saves a picture of the page where KUBISTRO_SHOTS says.
func (b *tab) shot(name string) {
	dir := os.Getenv("KUBISTRO_SHOTS")
	if dir == "" {
		return
	}
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.t.Logf("no picture: %v", err)
		return
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
		b.t.Log(err)
	}
}

// theme makes the browser prefer dark or light.
func (b *tab) theme(scheme string) {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}})
	if err != nil {
		b.t.Fatal(err)
	}
}

// typeText presses a key for each character, as a person does. (chromedp's KeyEvent sends a
// character twice to elements that listen to both key presses and characters, as a terminal does.)
func (b *tab) typeText(text string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	for _, c := range text {
		p := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Text: string(c), Key: string(c)}
		if c == '\r' {
			p.Key, p.Code, p.WindowsVirtualKeyCode = "Enter", "Enter", 13
		}
		if _, err := chromedp.Call(ctx, input.DispatchKeyEvent, p); err != nil {
			b.t.Fatal(err)
		}
		p.Type, p.Text = input.DispatchKeyEventTypeKeyUp, ""
		if _, err := chromedp.Call(ctx, input.DispatchKeyEvent, p); err != nil {
			b.t.Fatal(err)
		}
	}
}
