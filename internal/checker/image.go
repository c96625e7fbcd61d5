package checker

import "strings"

// image is a container image reference in its full form.
type image struct{ repository, tag, digest string }

// parseImage completes a reference as a container runtime does: nginx is
// docker.io/library/nginx:latest.
func parseImage(ref string) image {
	name, digest, _ := strings.Cut(strings.TrimSpace(ref), "@")
	tag := ""
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		name, tag = name[:i], name[i+1:]
	}
	if tag == "" && digest == "" {
		tag = "latest"
	}
	host, rest, found := strings.Cut(name, "/")
	if !found || !(strings.ContainsAny(host, ".:") || host == "localhost") {
		host, rest = "docker.io", name
	}
	if host == "index.docker.io" {
		host = "docker.io"
	}
	if host == "docker.io" && !strings.Contains(rest, "/") {
		rest = "library/" + rest
	}
	return image{repository: host + "/" + rest, tag: tag, digest: digest}
}

// sameImage reports whether two references name the same image. With digests on
// both sides only these count, as for the runtime.
func sameImage(a, b string) bool {
	x, y := parseImage(a), parseImage(b)
	if x.repository != y.repository {
		return false
	}
	if x.digest != "" || y.digest != "" {
		return x.digest == y.digest
	}
	return x.tag == y.tag
}

// NormalizeImage completes an image reference: nginx becomes
// docker.io/library/nginx and latest. The tag is empty for a reference by digest.
func NormalizeImage(ref string) (repository, tag string) {
	i := parseImage(ref)
	return i.repository, i.tag
}
