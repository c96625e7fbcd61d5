package kind

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestImagesOfAnArchive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "images.tar")
	content := tarOf(t, map[string][]byte{
		"manifest.json": []byte(`[{"RepoTags":["docker.io/library/nginx:latest","kubistro/cook:1"]}]`),
		"index.json":    []byte(`{"manifests":[{"annotations":{"io.containerd.image.name":"docker.io/traefik/whoami:latest","org.opencontainers.image.ref.name":"latest"}},{}]}`),
		"layer.tar":     []byte("not JSON"),
	}, 0o600)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	names, err := imagesIn(path)
	if err != nil || !slices.Equal(names, []string{"docker.io/library/nginx:latest", "docker.io/traefik/whoami:latest", "kubistro/cook:1"}) {
		t.Errorf("names = %v, %v", names, err)
	}
	want := []string{"docker.io/library/nginx", "docker.io/library/nginx:latest", "docker.io/traefik/whoami", "docker.io/traefik/whoami:latest",
		"kubistro/cook:1", "library/nginx", "library/nginx:latest", "nginx", "nginx:latest", "traefik/whoami", "traefik/whoami:latest"}
	if got := spellings(names); !slices.Equal(got, want) {
		t.Errorf("spellings = %v", got)
	}
	if err := os.WriteFile(path, content[:514], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := imagesIn(path); err == nil {
		t.Error("half an archive was read")
	}
}
