package course

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"kubistro/internal/checker"
)

// Lint returns every fault of every course, sorted by file and line. Images are
// looked up in pantry; with a nil pantry they aren't looked at.
func Lint(fsys fs.FS, pantry []Repository) []Fault {
	l, faults := load(fsys, nil)
	if l == nil {
		return faults
	}
	var levels []*manifests
	shared := &manifests{fsys: fsys, dir: sharedFolder, pantry: pantry, seen: map[string]bool{}}
	for _, c := range l.Courses {
		for _, level := range c.Levels {
			if level.Coming || level.Files == nil {
				continue
			}
			m := &manifests{fsys: fsys, dir: path.Join(c.ID, level.ID), pantry: pantry}
			m.readMissing()
			shared.missing = append(shared.missing, m.missing...)
			levels = append(levels, m)
		}
	}
	if _, err := fs.Stat(fsys, sharedFolder); err == nil {
		faults = append(faults, shared.lint()...)
	}
	for _, m := range levels {
		m.seen = maps.Clone(shared.seen)
		faults = append(append(faults, m.lint()...), m.useless()...)
	}
	return sorted(append(faults, lintGlossary(fsys, l)...))
}

// manifests looks through the YAML files of a level's subfolders.
type manifests struct {
	fsys    fs.FS
	dir     string
	pantry  []Repository
	missing []word // of level.yaml
	seen    map[string]bool
	faults  Faults
}

func (m *manifests) levelFile() string { return path.Join(m.dir, "level.yaml") }

// readMissing reads which images the level wants to be missing.
func (m *manifests) readMissing() {
	var src levelFile
	if raw, err := fs.ReadFile(m.fsys, m.levelFile()); err == nil {
		(&decoder{file: m.levelFile()}).decode(raw, &src)
	}
	m.missing = src.MissingImages
}

func (m *manifests) lint() Faults {
	err := fs.WalkDir(m.fsys, m.dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Dir(p) == m.dir || !slices.Contains([]string{".yaml", ".yml"}, path.Ext(p)) {
			return err
		}
		raw, err := fs.ReadFile(m.fsys, p)
		if err != nil {
			return err
		}
		m.manifest(p, raw)
		return nil
	})
	if err != nil {
		m.faults = append(m.faults, Fault{File: m.dir, Message: err.Error()})
	}
	return m.faults
}

// useless names missing images that aren't missing, or that no manifest uses, of the level or shared.
func (m *manifests) useless() (faults Faults) {
	for _, w := range m.missing {
		if m.pantry == nil {
			continue
		}
		if known, _ := m.lookUp(w.Value); known {
			faults = append(faults, Fault{File: m.levelFile(), Line: w.Line, Message: fmt.Sprintf("image %q should be missing, but the pantry has it", w.Value)})
		}
		if !m.seen[w.Value] {
			faults = append(faults, Fault{File: m.levelFile(), Line: w.Line, Message: fmt.Sprintf("no manifest uses the missing image %q", w.Value)})
		}
	}
	return faults
}

// manifest checks one file: YAML documents with kind and name, images that exist.
func (m *manifests) manifest(file string, raw []byte) {
	fault := func(line int, format string, args ...any) {
		m.faults = append(m.faults, Fault{File: file, Line: line, Message: fmt.Sprintf(format, args...)})
	}
	for dec := yaml.NewDecoder(bytes.NewReader(raw)); ; {
		var doc yaml.Node
		if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			fault(0, "%v", err)
			return
		}
		if len(doc.Content) == 0 {
			continue
		}
		root := doc.Content[0]
		for _, want := range []string{"apiVersion", "kind", "metadata"} {
			if want == "metadata" && isKustomization(root) {
				continue
			}
			if field(root, want) == nil {
				fault(root.Line, "the manifest has no %s", want)
			}
		}
		walkImages(root, func(n *yaml.Node) {
			m.seen[n.Value] = true
			if known, why := m.lookUp(n.Value); !known && m.pantry != nil && !m.expectedMissing(n.Value) {
				fault(n.Line, "%s", why)
			}
		})
	}
}

// isKustomization tells the sheets of kustomize, which nobody sends to a cluster and which need no name.
func isKustomization(root *yaml.Node) bool {
	v := field(root, "apiVersion")
	return v != nil && strings.HasPrefix(v.Value, "kustomize.config.k8s.io/")
}

func (m *manifests) expectedMissing(image string) bool {
	return slices.ContainsFunc(m.missing, func(w word) bool { return w.Value == image })
}

// lookUp finds an image in the pantry.
func (m *manifests) lookUp(image string) (known bool, why string) {
	repository, tag := checker.NormalizeImage(image)
	for _, r := range m.pantry {
		if name, _ := checker.NormalizeImage(r.Name); name != repository {
			continue
		}
		if slices.Contains(r.Tags, tag) {
			return true, ""
		}
		return false, fmt.Sprintf("the pantry has %s only with the tags %s, not %q", r.Name, strings.Join(r.Tags, ", "), tag)
	}
	return false, fmt.Sprintf("the pantry has no image %q", image)
}

// field is the value of a mapping's key; nil without one.
func field(n *yaml.Node, key string) *yaml.Node {
	if n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// walkImages calls f for the image of every container in a manifest.
func walkImages(n *yaml.Node, f func(*yaml.Node)) {
	for _, list := range []string{"containers", "initContainers"} {
		if c := field(n, list); c != nil && c.Kind == yaml.SequenceNode {
			for _, container := range c.Content {
				if image := field(container, "image"); image != nil {
					f(image)
				}
			}
		}
	}
	for _, c := range n.Content {
		walkImages(c, f)
	}
}
