package kind

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"kubistro/internal/clusterhost/loops"
	"kubistro/internal/clusterhost/pace"
)

// setManagerFlags starts the controller manager with the flags that it is to have:
// the clock's periods, and without the controllers that are home.
func (in *instance) setManagerFlags(ctx context.Context, r *record) error {
	c, err := pace.New(r.speed())
	if err != nil {
		return err
	}
	flags := managerFlags(c)
	// kubeadm's own value, app/phases/controlplane/manifests.go.
	list := []string{"*", "bootstrapsigner", "tokencleaner"}
	for _, name := range r.Changes.Home {
		if slices.Contains(r.Controllers, name) {
			list = append(list, "-"+name)
		}
	}
	flags["controllers"] = strings.Join(list, ",")
	return in.setFlags(ctx, r, loops.Manager, flags)
}

// setFlags changes flags in the manifest of one of the control plane's Pods, takes those in gone out of it,
// and waits until the component runs so. Nothing happens when it does already. A component
// that doesn't come back gets its former manifest again.
func (in *instance) setFlags(ctx context.Context, r *record, name string, flags map[string]string, gone ...string) error {
	path := manifestDir + "/" + name + ".yaml"
	old, err := inNode(ctx, in.d.engine, r.office(), "cat", path)
	if err != nil {
		return err
	}
	fresh, err := withFlags(old, name, flags)
	if err != nil {
		return fmt.Errorf("manifest of %s: %w", name, err)
	}
	fresh = withoutFlags(fresh, gone)
	if fresh != old {
		if err := in.writeManifest(ctx, r, path, fresh); err != nil {
			return err
		}
	}
	var conditions []string
	for _, f := range gone {
		conditions = append(conditions, fmt.Sprintf("! tr '\\0' '\\n' < /proc/$p/cmdline | grep -q -- '^--%s='", f))
	}
	for _, f := range slices.Sorted(maps.Keys(flags)) {
		conditions = append(conditions, fmt.Sprintf("tr '\\0' '\\n' < /proc/$p/cmdline | grep -qxF -- '--%s=%s'", f, flags[f]))
	}
	err = in.awaitProcess(ctx, r, fmt.Sprintf("{ p=$(pgrep -xn %s) && %s && %s; }", processName(name), strings.Join(conditions, " && "), healthy(name)))
	if err == nil || fresh == old {
		return err
	}
	back, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanWithin)
	defer cancel()
	return errors.Join(err, in.writeManifest(back, r, path, old))
}

// writeManifest writes a static Pod's manifest, through another folder: the kubelet reads every
// file that appears in its own.
func (in *instance) writeManifest(ctx context.Context, r *record, path, text string) error {
	script := `set -e; mkdir -p "$2"; cat > "$2/new.yaml"; chmod 600 "$2/new.yaml"; mv "$2/new.yaml" "$1"`
	_, err := in.d.engine.run(ctx, strings.NewReader(text), "exec", "-i", r.office(), "sh", "-c", script, "sh", path, homeDir)
	return err
}

// withoutFlags takes flags out of a manifest.
func withoutFlags(manifest string, names []string) string {
	for _, f := range names {
		manifest = regexp.MustCompile(`(?m)^ *- --`+regexp.QuoteMeta(f)+`=.*\n`).ReplaceAllString(manifest, "")
	}
	return manifest
}

// withFlags sets flags of the command in a static Pod's manifest as kubeadm writes it:
// one line for each.
func withFlags(manifest, name string, flags map[string]string) (string, error) {
	command := regexp.MustCompile(`(?m)^( *)- ` + regexp.QuoteMeta(name) + `\n`)
	at := command.FindStringSubmatchIndex(manifest)
	if at == nil {
		return "", fmt.Errorf("no command %s", name)
	}
	indent := manifest[at[2]:at[3]]
	for _, f := range slices.Sorted(maps.Keys(flags)) {
		line := fmt.Sprintf("%s- --%s=%s\n", indent, f, flags[f])
		if strings.ContainsAny(flags[f], "\n'\"") {
			return "", fmt.Errorf("flag %s: %q", f, flags[f])
		}
		old := regexp.MustCompile(`(?m)^ *- --` + regexp.QuoteMeta(f) + `=.*\n`)
		if found := old.FindStringIndex(manifest); found != nil {
			manifest = manifest[:found[0]] + line + manifest[found[1]:]
		} else {
			manifest = manifest[:at[1]] + line + manifest[at[1]:]
		}
	}
	return manifest, nil
}

// knownControllers asks the controller manager which controllers it has.
func (d *Driver) knownControllers(ctx context.Context, r *record) ([]string, error) {
	out, err := inNode(ctx, d.engine, r.office(), "sh", "-c",
		`crictl exec "$(crictl ps -q --name '^kube-controller-manager$' | head -n 1)" kube-controller-manager --help`)
	if err != nil {
		return nil, err
	}
	return parseControllers(out)
}

var controllersInHelp = regexp.MustCompile(`All controllers: ([a-z0-9, -]+)`)

// parseControllers finds the list in the help text of --controllers.
func parseControllers(help string) ([]string, error) {
	m := controllersInHelp.FindStringSubmatch(strings.Join(strings.Fields(help), " "))
	if m == nil {
		return nil, fmt.Errorf("the controller manager's help lists no controllers: %q", lastBytes(help, 200))
	}
	list, _, _ := strings.Cut(m[1], " Disabled-by-default")
	names := strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
	slices.Sort(names)
	return slices.Compact(names), nil
}
