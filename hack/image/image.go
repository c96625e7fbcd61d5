package image

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/google/go-containerregistry/pkg/compression"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/zstd"
)

// PathEnv is the search path that images have.
const PathEnv = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Labels that say what an image holds (OCI image specification, annotations).
const (
	LabelTitle       = "org.opencontainers.image.title"
	LabelDescription = "org.opencontainers.image.description"
	LabelVersion     = "org.opencontainers.image.version"
)

// Builder makes images. Layers are kept in its folder, which must outlive the images.
type Builder struct {
	Dir string
	// Zstd compresses layers so that a node unpacks them several times faster;
	// containerd knows it, older Docker engines know gzip only.
	Zstd bool

	layers int
}

// Layer writes the tree to the builder's folder as a compressed layer.
func (b *Builder) Layer(t *Tree) (v1.Layer, error) {
	b.layers++
	media, kind, suffix := types.DockerLayer, compression.GZip, ".gz"
	if b.Zstd {
		media, kind, suffix = types.OCILayerZStd, compression.ZStd, ".zst"
	}
	// Compressed here and kept: the library compresses a plain file again each time that somebody reads it.
	file := filepath.Join(b.Dir, fmt.Sprintf("layer-%d.tar%s", b.layers, suffix))
	err := writeFile(file, func(w io.Writer) error {
		packed, err := b.compressor(w)
		if err != nil {
			return err
		}
		if err := t.Write(packed); err != nil {
			return err
		}
		return packed.Close()
	})
	if err != nil {
		return nil, err
	}
	return tarball.LayerFromFile(file, tarball.WithCompression(kind), tarball.WithMediaType(media))
}

func (b *Builder) compressor(w io.Writer) (io.WriteCloser, error) {
	if b.Zstd {
		return zstd.NewWriter(w, zstd.WithEncoderConcurrency(1)) // one: the bytes don't depend on the machine
	}
	return gzip.NewWriterLevel(w, gzip.BestSpeed)
}

// Image is an image of this machine's architecture with the layers in order.
func (b *Builder) Image(config v1.Config, layers ...v1.Layer) (v1.Image, error) {
	base := empty.Image
	if b.Zstd { // a media type of OCI's in a manifest of Docker's isn't valid
		base = mutate.ConfigMediaType(mutate.MediaType(base, types.OCIManifestSchema1), types.OCIConfigJSON)
	}
	img, err := mutate.AppendLayers(base, layers...)
	if err != nil {
		return nil, err
	}
	file, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.Architecture, file.OS, file.Config, file.Created = runtime.GOARCH, "linux", config, v1.Time{Time: epoch}
	return mutate.ConfigFile(img, file)
}

// Tagged is an image under one of its names.
type Tagged struct {
	Name  string // whole: registry.k8s.io/pause:3.10
	Image v1.Image
}

// WriteOCI writes an OCI archive, which containerd imports (`ctr images import`,
// kind's image loading). The same image may stand under several names.
func WriteOCI(file string, images []Tagged) error {
	dir, err := os.MkdirTemp(filepath.Dir(file), "oci-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, t := range images {
		media, err := t.Image.MediaType()
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: t.Image, Descriptor: v1.Descriptor{
			MediaType:   media,
			Annotations: map[string]string{"io.containerd.image.name": t.Name, "org.opencontainers.image.ref.name": t.Name},
			Platform:    &v1.Platform{Architecture: runtime.GOARCH, OS: "linux"},
		}})
	}
	if _, err := layout.Write(dir, index); err != nil {
		return err
	}
	var t Tree
	if err := t.AddAll("/", dir); err != nil {
		return err
	}
	return writeFile(file, t.Write)
}

// WriteDocker writes an archive for `docker load`.
func WriteDocker(file string, t Tagged) error {
	tag, err := name.NewTag(t.Name)
	if err != nil {
		return err
	}
	return writeFile(file, func(w io.Writer) error { return tarball.Write(tag, t.Image, w) })
}

// writeFile writes a file whole or not at all.
func writeFile(file string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if err := write(f); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Chmod(f.Name(), 0o644); err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}
