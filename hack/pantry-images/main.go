// Command pantry-images packs images of the pantry for real containers: an OCI archive
// that kind's nodes load. It needs no container engine. All images share one layer with
// one program, which is what the simulated nodes run.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"kubistro/hack/image"
	"kubistro/internal/clusterhost/pantry"
	"kubistro/internal/clusterhost/pantry/container"
)

// own are Kubistro's images, which no registry has.
var own = []string{"grill-cook:1.4", "grill-cook:1.5", "toolbox:1.0", "kubistro/host:1.0"}

// standIns are public images of which the pantry has a program of the same use.
var standIns = []string{"busybox:1.37", "curlimages/curl:8.18.0", "nginx:1.29", "traefik/whoami:v1.11"}

// binary is the program's path in every image.
const binary = "/usr/lib/kubistro/pantry"

func main() {
	program := flag.String("program", "", "static program made from cmd/pantry")
	out := flag.String("o", "", "archive to write")
	all := flag.Bool("stand-ins", false, "add programs of ours under the names of public images, for machines that can't pull those")
	flag.Parse()
	names := own
	if *all {
		names = append(slices.Clone(own), standIns...)
	}
	if err := run(*program, *out, names); err != nil {
		fmt.Fprintln(os.Stderr, "pantry-images:", err)
		os.Exit(1)
	}
}

func run(program, out string, names []string) error {
	if program == "" || out == "" {
		return errors.New("say -program and -o")
	}
	dir, err := os.MkdirTemp("", "pantry-images-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &image.Builder{Dir: dir, Zstd: true}
	var tree image.Tree
	tree.AddFile(binary, program, 0o755)
	shared, err := b.Layer(&tree)
	if err != nil {
		return err
	}
	registry := pantry.Default()
	var list []image.Tagged
	for _, name := range names {
		img, err := registry.Known(name)
		if err != nil {
			return err
		}
		layer, err := b.Layer(files(name, img))
		if err != nil {
			return err
		}
		packed, err := b.Image(config(img), shared, layer)
		if err != nil {
			return err
		}
		list = append(list, image.Tagged{Name: img.Name, Image: packed})
	}
	return image.WriteOCI(out, list)
}

// files is an image's own layer: its files, and the program under all its names.
func files(name string, img *pantry.Image) *image.Tree {
	t := new(image.Tree)
	t.AddDir("/tmp", 0o777|os.ModeSticky)
	for _, dir := range []string{"/root", "/var/run", "/var/log", "/mnt", "/usr/local"} {
		t.AddDir(dir, 0o755)
	}
	if img.WorkDir != "" && img.WorkDir != "/root" {
		t.AddDir(img.WorkDir, 0o755)
	}
	t.AddData("/etc/passwd", []byte("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/sbin/nologin\n"), 0o644)
	t.AddData("/etc/group", []byte("root:x:0:\nnogroup:x:65534:\n"), 0o644)
	t.AddData(container.ImageFile, []byte(name+"\n"), 0o644)
	for p, data := range img.Files {
		t.AddData(p, data, 0o644)
	}
	for n := range img.Programs {
		t.AddLink("/bin/"+n, binary)
	}
	if e := img.Entrypoint; len(e) > 0 && path.IsAbs(e[0]) && img.Programs[path.Base(e[0])] != nil {
		t.AddLink(e[0], binary)
	}
	return t
}

func config(img *pantry.Image) v1.Config {
	title := img.Name[strings.LastIndexByte(img.Name, '/')+1:]
	title, version, _ := strings.Cut(title, ":")
	c := v1.Config{
		Entrypoint: img.Entrypoint, Cmd: img.Cmd, Env: img.Env, WorkingDir: img.WorkDir,
		Labels: map[string]string{image.LabelTitle: title, image.LabelVersion: version, image.LabelDescription: "Kubistro's " + title},
	}
	if img.Simulated {
		c.Labels[image.LabelDescription] = "Kubistro's own program in the place of the public image " + img.Name
	}
	if img.User != 0 {
		c.User = strconv.FormatInt(img.User, 10)
	}
	for _, p := range img.Ports {
		if c.ExposedPorts == nil {
			c.ExposedPorts = map[string]struct{}{}
		}
		c.ExposedPorts[strconv.Itoa(p)+"/tcp"] = struct{}{}
	}
	return c
}
