package pantry

import (
	"errors"
	"fmt"
	"strings"
)

// Reference is a parsed image reference, normalised as Docker does: nginx is
// docker.io/library/nginx:latest.
type Reference struct {
	Domain string // docker.io
	Path   string // library/nginx
	Tag    string // latest; empty when only a digest was given
	Digest string // sha256:...; empty when none was given
}

// Name is the repository with its domain.
func (r Reference) Name() string { return r.Domain + "/" + r.Path }

// String is the whole normalised reference.
func (r Reference) String() string {
	s := r.Name()
	if r.Tag != "" {
		s += ":" + r.Tag
	}
	if r.Digest != "" {
		s += "@" + r.Digest
	}
	return s
}

// The reasons why a reference can't be parsed, in the words that runtimes use.
var (
	errReference = errors.New("invalid reference format")
	errTooLong   = errors.New("repository name must not be more than 255 characters")
	errIDName    = errors.New("cannot specify 64-byte hexadecimal strings")
)

// ParseReference reads a reference by the grammar of the distribution project:
//
//	reference  = name [ ":" tag ] [ "@" digest ]
//	name       = [ domain "/" ] component { "/" component }
//	domain     = host [ ":" port ]
//	component  = alphanumeric { separator alphanumeric }, separator = "_" | "." | "__" | "-"...
//	tag        = [A-Za-z0-9_] [A-Za-z0-9_.-]{0,127}
//	digest     = algorithm ":" hex{32,}
//
// The first component is a domain when it has a dot or a colon, is localhost, or
// isn't lower case; without a tag and a digest the tag is latest.
func ParseReference(s string) (Reference, error) {
	if isHex(s) && len(s) == 64 {
		return Reference{}, errIDName
	}
	rest, digest, hasDigest := strings.Cut(s, "@")
	if hasDigest && !isDigest(digest) {
		return Reference{}, errReference
	}
	domain, remainder := splitDomain(rest)
	name, tag, hasTag := strings.Cut(remainder, ":")
	if hasTag && !isTag(tag) {
		return Reference{}, errReference
	}
	if !isDomain(domain) {
		return Reference{}, errReference
	}
	if !isPath(name) {
		if isPath(strings.ToLower(name)) {
			return Reference{}, fmt.Errorf("%w: repository name (%s) must be lowercase", errReference, name)
		}
		return Reference{}, errReference
	}
	if len(name) > 255 {
		return Reference{}, errTooLong
	}
	r := Reference{Domain: domain, Path: name, Tag: tag, Digest: digest}
	if r.Tag == "" && r.Digest == "" {
		r.Tag = "latest"
	}
	return r, nil
}

// splitDomain tells a registry's host from the first part of a path.
func splitDomain(s string) (domain, remainder string) {
	first, rest, ok := strings.Cut(s, "/")
	if !ok || !strings.ContainsAny(first, ".:") && first != "localhost" && strings.ToLower(first) == first {
		domain, remainder = "docker.io", s
	} else {
		domain, remainder = first, rest
	}
	if domain == "index.docker.io" {
		domain = "docker.io"
	}
	if domain == "docker.io" && !strings.Contains(remainder, "/") {
		remainder = "library/" + remainder
	}
	return domain, remainder
}

func isDomain(s string) bool {
	host, port := s, ""
	if strings.HasPrefix(s, "[") {
		inner, rest, ok := strings.Cut(s[1:], "]")
		if !ok || inner == "" || !all(inner, func(c byte) bool { return isHexDigit(c) || c >= 'A' && c <= 'F' || c == ':' }) {
			return false
		}
		if rest == "" {
			return true
		}
		var found bool
		if rest, port, found = strings.Cut(rest, ":"); rest != "" || !found {
			return false
		}
		return port != "" && all(port, isDigit)
	}
	if h, p, ok := strings.Cut(s, ":"); ok {
		if host, port = h, p; port == "" || !all(port, isDigit) {
			return false
		}
	}
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || label[0] == '-' || label[len(label)-1] == '-' ||
			!all(label, func(c byte) bool { return isAlphanumeric(c) || c >= 'A' && c <= 'Z' || c == '-' }) {
			return false
		}
	}
	return true
}

func isPath(s string) bool {
	for component := range strings.SplitSeq(s, "/") {
		if !isComponent(component) {
			return false
		}
	}
	return true
}

// isComponent: runs of alphanumerics with one separator between two of them.
func isComponent(s string) bool {
	if s == "" || !isAlphanumeric(s[0]) || !isAlphanumeric(s[len(s)-1]) {
		return false
	}
	for i := 0; i < len(s); {
		if isAlphanumeric(s[i]) {
			i++
			continue
		}
		start := i
		for i < len(s) && !isAlphanumeric(s[i]) {
			i++
		}
		switch sep := s[start:i]; {
		case sep == "." || sep == "_" || sep == "__":
		case strings.Trim(sep, "-") == "":
		default:
			return false
		}
	}
	return true
}

func isTag(s string) bool {
	word := func(c byte) bool { return isAlphanumeric(c) || c >= 'A' && c <= 'Z' || c == '_' }
	return s != "" && len(s) <= 128 && word(s[0]) &&
		all(s, func(c byte) bool { return word(c) || c == '.' || c == '-' })
}

// isDigest accepts the registered algorithms only, as runtimes do.
func isDigest(s string) bool {
	algorithm, hex, _ := strings.Cut(s, ":")
	size := map[string]int{"sha256": 64, "sha384": 96, "sha512": 128}[algorithm]
	return size > 0 && len(hex) == size && isHex(hex)
}

func isHex(s string) bool        { return all(s, isHexDigit) }
func isHexDigit(c byte) bool     { return isDigit(c) || c >= 'a' && c <= 'f' }
func isDigit(c byte) bool        { return c >= '0' && c <= '9' }
func isAlphanumeric(c byte) bool { return isDigit(c) || c >= 'a' && c <= 'z' }
func all(s string, ok func(byte) bool) bool {
	for i := range len(s) {
		if !ok(s[i]) {
			return false
		}
	}
	return true
}
