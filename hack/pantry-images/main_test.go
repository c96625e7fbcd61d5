package main

import (
	"slices"
	"strings"
	"testing"

	"kubistro/hack/image"
	"kubistro/internal/clusterhost/pantry"
	"kubistro/internal/clusterhost/pantry/container"
)

// Every image that is packed is in the pantry, and has its programs and says what it is.
func TestImages(t *testing.T) {
	registry := pantry.Default()
	for _, name := range slices.Concat(own, standIns) {
		img, err := registry.Known(name)
		if err != nil {
			t.Error(err)
			continue
		}
		tree := files(name, img)
		for n := range img.Programs {
			if !tree.Has("/bin/" + n) {
				t.Errorf("%s lacks %s", name, n)
			}
		}
		if !tree.Has(container.ImageFile) {
			t.Errorf("%s doesn't know what it is", name)
		}
		for _, e := range slices.Concat(img.Entrypoint[:min(1, len(img.Entrypoint))], img.Cmd[:min(1, len(img.Cmd))]) {
			if strings.HasPrefix(e, "/") && !tree.Has(e) {
				t.Errorf("%s starts %s, which it hasn't", name, e)
			}
		}
		description := config(img).Labels[image.LabelDescription]
		if img.Simulated != strings.Contains(description, "in the place of the public image") {
			t.Errorf("%s: %q", name, description)
		}
	}
}
