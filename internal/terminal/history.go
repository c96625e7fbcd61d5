package terminal

import (
	"io"
	"os"
	"strings"
)

// The file in the home that keeps what was entered, and how many of its lines are offered.
const (
	history    = ".shell_history"
	maxHistory = 500
)

// loadHistory reads the history file; a line's own line breaks are written as \n.
func (c *inside) loadHistory() []string {
	f, err := c.home.root.Open(history)
	if err != nil {
		return nil
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 1<<20))
	if err != nil {
		return nil
	}
	lines := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	lines = lines[max(len(lines)-maxHistory, 0):]
	for i, l := range lines {
		lines[i] = strings.NewReplacer(`\\`, `\`, `\n`, "\n").Replace(l)
	}
	return lines
}

// saveHistory adds a line, and now and then cuts the file.
func (c *inside) saveHistory(line string) {
	line = strings.NewReplacer(`\`, `\\`, "\n", `\n`).Replace(line)
	if len(line) > 16<<10 {
		return
	}
	if info, err := c.home.root.Stat(history); err == nil && info.Size() > 256<<10 {
		old := c.loadHistory()
		for i, l := range old {
			old[i] = strings.NewReplacer(`\`, `\\`, "\n", `\n`).Replace(l)
		}
		c.home.root.WriteFile(history, []byte(strings.Join(old[max(len(old)-200, 0):], "\n")+"\n"), 0o600)
	}
	f, err := c.home.root.OpenFile(history, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	io.WriteString(f, line+"\n")
}
