package pantry

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"kubistro/internal/clusterhost/pantry/memfs"
)

// mountText is what mounttest writes into new files.
const mountText = "mount-tester new file\n"

// agnhostMounttest looks at and writes files of volumes, always in the same
// order, and says what it finds. It fails if one of the steps does.
func agnhostMounttest(ctx context.Context, a *agnhost, args []string) int {
	f := a.flags("mounttest")
	values := map[string]*string{}
	for _, name := range []string{
		"fs_type", "file_mode", "file_perm", "file_owner", "new_file_0644", "new_file_0666", "new_file_0660", "new_file_0777",
		"file_content", "file_content_in_loop",
	} {
		values[name] = f.String(name, "", "")
	}
	retry := f.Int("retry_time", 180, "")
	until := f.Bool("break_on_expected_content", true, "")
	if code, ok := a.parse(f, args); !ok {
		return code
	}
	m := mounttest{a, 0}
	step := func(flag string, do func(string)) {
		if name := *values[flag]; name != "" {
			do(name)
		}
	}
	step("fs_type", m.fsType)
	for flag, perm := range map[string]fs.FileMode{"new_file_0644": 0o644, "new_file_0666": 0o666, "new_file_0660": 0o660, "new_file_0777": 0o777} {
		step(flag, func(name string) { m.create(name, perm) })
	}
	step("file_mode", func(name string) {
		m.stat(name, func(i fs.FileInfo) { fmt.Fprintf(a.Stdout, "mode of file %q: %v\n", name, i.Mode()) })
	})
	step("file_perm", func(name string) {
		m.stat(name, func(i fs.FileInfo) { fmt.Fprintf(a.Stdout, "perms of file %q: %v\n", name, i.Mode().Perm()) })
	})
	step("file_owner", func(name string) {
		m.stat(name, func(i fs.FileInfo) {
			o := memfs.AttributesOf(i)
			fmt.Fprintf(a.Stdout, "owner UID of %q: %d\nowner GID of %q: %d\n", name, o.UID, name, o.GID)
		})
	})
	step("file_content", func(name string) { m.read(name) })
	step("file_content_in_loop", func(name string) { m.loop(ctx, name, time.Duration(*retry)*time.Second, *until) })
	if ctx.Err() != nil {
		return exitSigkill
	}
	return m.code
}

type mounttest struct {
	*agnhost
	code int
}

func (m *mounttest) fail(format string, args ...any) {
	fmt.Fprintf(m.Stdout, format+"\n", args...)
	m.code = 1
}

func (m *mounttest) stat(name string, show func(fs.FileInfo)) {
	info, err := m.FS.Stat(name)
	if err != nil {
		m.fail("error from Stat(%q): %v", name, err)
		return
	}
	show(info)
}

// ext4Magic is what statfs(2) says of an ordinary disk.
const ext4Magic = 61267

func (m *mounttest) fsType(name string) {
	m.stat(name, func(i fs.FileInfo) {
		kind := memfs.AttributesOf(i).FSType
		if kind == "" {
			kind = fmt.Sprint(ext4Magic)
		}
		fmt.Fprintf(m.Stdout, "mount type of %q: %s\n", name, kind)
	})
}

func (m *mounttest) create(name string, perm fs.FileMode) {
	f, err := m.FS.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, perm)
	if err == nil {
		if _, err = io.WriteString(f, mountText); err == nil {
			err = f.Close()
		}
	}
	if err != nil {
		m.fail("error writing new file %q: %v", name, err)
		return
	}
	m.read(name)
}

func (m *mounttest) read(name string) {
	b, err := m.readFile(name)
	if err != nil {
		m.fail("error reading file content for %q: %v", name, err)
		return
	}
	fmt.Fprintf(m.Stdout, "content of file %q: %s\n", name, b)
}

// loop shows a file every two seconds for some time, or until it holds mountText.
func (m *mounttest) loop(ctx context.Context, name string, during time.Duration, until bool) {
	start := m.Clock.Now()
	var last error
	for m.Clock.Since(start) < during {
		var b []byte
		if b, last = m.readFile(name); last != nil {
			fmt.Fprintf(m.Stdout, "Error reading file %s: %v, retrying\n", name, last)
		} else {
			fmt.Fprintf(m.Stdout, "content of file %q: %s\n", name, b)
			if until && string(b) == mountText {
				return
			}
			if until {
				fmt.Fprintf(m.Stdout, "Unexpected content. Expected: %s. Retrying\n", mountText)
			}
		}
		if !m.sleep(ctx, 2*time.Second) {
			return
		}
	}
	if last != nil {
		m.code = 1
	}
}

func agnhostHosts(_ context.Context, a *agnhost, _ []string) int {
	b, err := a.readFile("/etc/hosts")
	if err != nil {
		return a.fatal("%v", err)
	}
	fmt.Fprintln(a.Stdout, string(b))
	return 0
}

// agnhostResolver prints a line of /etc/resolv.conf with commas between its words.
func agnhostResolver(keyword string) func(context.Context, *agnhost, []string) int {
	return func(_ context.Context, a *agnhost, _ []string) int {
		b, err := a.readFile("/etc/resolv.conf")
		if err != nil {
			return a.fatal("%v", err)
		}
		for line := range strings.Lines(string(b)) {
			if words := strings.Fields(line); len(words) > 0 && words[0] == keyword {
				fmt.Fprintln(a.Stdout, strings.Join(words[1:], ","))
				return 0
			}
		}
		return a.fatal("no %s in /etc/resolv.conf", keyword)
	}
}
