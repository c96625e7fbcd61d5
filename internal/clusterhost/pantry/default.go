package pantry

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const (
	mib        = 1 << 20
	path1      = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	shellBytes = 1 * mib // what a small program holds
)

// Default is the pantry of this version.
//
// grill-cook and toolbox are Kubistro's own. grill-cook has no tag that lessons
// would reach by accident: latest is the newest, 1.5, as a registry's is, and lessons
// always name a tag.
func Default() *Registry {
	r := NewRegistry()
	for _, add := range []func(*Registry) error{addCook, addToolbox, addBusybox, addCurl, addWhoami, addNginx, addPause, addKubectl, addHost, addContractor, addPrivate, addControllers, addTestImages, addTutorials} {
		if err := add(r); err != nil {
			panic(err) // a name in this file can't be parsed: every start would fail the same way
		}
	}
	return r
}

// release is a text for /etc/os-release.
func release(id, name, version string) []byte {
	return fmt.Appendf(nil, "NAME=%q\nID=%s\nVERSION_ID=%q\nPRETTY_NAME=%q\n", name, id, version, name+" "+version)
}

func addCook(r *Registry) error {
	tools := r.userland("sh", "ash")
	for version, tags := range map[string][]string{"1.4": {"1.4"}, "1.5": {"1.5", "latest"}} {
		programs := with(ownAll(shellBytes, tools), ownAll(0, cookCommands()))
		programs["grill-cook"] = own(12*mib, cookProgram(version))
		img := Image{
			SizeBytes:  11_534_336,
			Entrypoint: []string{"grill-cook"},
			Env:        []string{path1},
			WorkDir:    "/kitchen",
			Ports:      []int{8080},
			Programs:   programs,
			Controls:   slices.Sorted(maps.Keys(cookCommands())),
			Files: map[string][]byte{
				"/etc/os-release":     release("alpine", "Alpine Linux", "3.22"),
				"/kitchen/README.txt": []byte("grill-cook " + version + ": standard training of the head office.\n\nCommands: burn-dish, ready on|off, health on|off, load 500m|off [TIME], hoard MIB [TIME]\n"),
			},
		}
		if err := r.AddTagged(img, "grill-cook", version, tags...); err != nil {
			return err
		}
	}
	return nil
}

func addToolbox(r *Registry) error {
	programs := ownAll(shellBytes, r.userland("sh", "ash", "bash"))
	programs["kubectl"] = own(20*mib, kubectlProgram)
	return r.AddTagged(Image{
		SizeBytes: 18_874_368, Cmd: []string{"bash"}, Env: []string{path1, "HOME=/root"}, WorkDir: "/root",
		Programs: programs,
		Files:    map[string][]byte{"/etc/os-release": release("alpine", "Alpine Linux", "3.22")},
	}, "toolbox", "1.0", "1.0", "latest")
}

func addBusybox(r *Registry) error {
	for version, tags := range map[string][]string{
		"1.37.0": {"1.37.0", "1.37", "1", "latest", "stable", "glibc", "musl", "uclibc", "stable-musl", "stable-glibc", "1.37-musl", "1.37-glibc"},
		"1.36.1": {"1.36.1", "1.36"}, "1.35.0": {"1.35.0", "1.35"}, "1.34.1": {"1.34.1", "1.34"}, "1.28.4": {"1.28.4", "1.28"},
	} {
		programs := r.userland("sh", "ash")
		for _, absent := range []string{"bash", "curl", "jq", "dig"} {
			delete(programs, absent)
		}
		if err := r.AddTagged(Image{
			SizeBytes: 2_224_358, Cmd: []string{"sh"}, Env: []string{path1}, Simulated: true,
			Programs: ownAll(shellBytes, programs),
		}, "busybox", version, tags...); err != nil {
			return err
		}
	}
	return nil
}

func addCurl(r *Registry) error {
	for version, tags := range map[string][]string{
		"8.18.0": {"8.18.0", "latest"}, "8.17.0": {"8.17.0"}, "8.16.0": {"8.16.0"}, "8.15.0": {"8.15.0"}, "8.12.1": {"8.12.1"},
		"8.11.1": {"8.11.1"}, "8.10.1": {"8.10.1"}, "8.8.0": {"8.8.0"}, "8.5.0": {"8.5.0"}, "7.88.1": {"7.88.1"},
	} {
		programs := r.userland("sh", "ash")
		delete(programs, "bash")
		programs["entrypoint.sh"] = curlEntrypoint
		if err := r.AddTagged(Image{
			SizeBytes: 9_961_472, Entrypoint: []string{"/entrypoint.sh"}, Cmd: []string{"curl"}, Simulated: true,
			Env:      []string{path1, "CURL_CA_BUNDLE=/cacert.pem"},
			WorkDir:  "/home/curl_user",
			Programs: ownAll(shellBytes, programs),
			Files:    map[string][]byte{"/etc/os-release": release("alpine", "Alpine Linux", "3.22")},
		}, "curlimages/curl", version, tags...); err != nil {
			return err
		}
	}
	return nil
}

// curlEntrypoint runs curl with the arguments, or the command that they name.
func curlEntrypoint(ctx context.Context, p *Process) int {
	args := p.Args[1:]
	if len(args) == 0 || strings.HasPrefix(args[0], "-") || p.Programs[args[0]] == nil && !strings.Contains(args[0], "/") {
		args = append([]string{"curl"}, args...)
	}
	return p.run(ctx, args)
}

func addWhoami(r *Registry) error {
	for version, tags := range map[string][]string{
		"v1.11.0": {"v1.11.0", "v1.11", "v1", "latest"}, "v1.10.3": {"v1.10.3", "v1.10"}, "v1.10.1": {"v1.10.1"}, "v1.9.0": {"v1.9.0", "v1.9"},
	} {
		for _, repository := range []string{"traefik/whoami", "ghcr.io/traefik/whoami"} {
			if err := r.AddTagged(Image{
				SizeBytes: 2_936_012, Entrypoint: []string{"/whoami"}, Ports: []int{80}, Simulated: true,
				Env:      []string{path1},
				Programs: map[string]Program{"whoami": own(5*mib, whoamiProgram)},
			}, repository, version, tags...); err != nil {
				return err
			}
		}
	}
	return nil
}

// nginxVersions are the releases that tutorials name, with their tags.
func nginxVersions() map[string][]string {
	out := map[string][]string{
		"1.29.3": {"1.29.3", "1.29", "1", "latest", "mainline"},
		"1.28.0": {"1.28.0", "1.28", "stable"},
	}
	for _, v := range []string{"1.27.5", "1.26.3", "1.25.5", "1.24.0", "1.23.4", "1.22.1", "1.21.6", "1.20.2", "1.19.10", "1.18.0", "1.17.10", "1.16.1", "1.14.2", "1.9.1", "1.7.9"} {
		out[v] = []string{v, v[:strings.LastIndexByte(v, '.')]}
	}
	return out
}

func addNginx(r *Registry) error {
	for version, tags := range nginxVersions() {
		var alpine []string
		for _, t := range tags {
			if t == "latest" {
				alpine = append(alpine, "alpine")
			} else {
				alpine = append(alpine, t+"-alpine")
			}
		}
		debian := nginxImage(r, version, []string{"sh", "bash"}, 72_351_744, release("debian", "Debian GNU/Linux", "12"))
		for _, absent := range []string{"dig", "host", "httpd", "ip", "jq", "nc", "nslookup", "ping", "ps", "vi", "wget"} { // as in the real one
			delete(debian.Programs, absent)
		}
		if err := r.AddTagged(debian, "nginx", version, tags...); err != nil {
			return err
		}
		small := nginxImage(r, version, []string{"sh", "ash"}, 20_971_520, release("alpine", "Alpine Linux", "3.22"))
		for _, absent := range []string{"dig", "httpd", "jq"} {
			delete(small.Programs, absent)
		}
		if err := r.AddTagged(small, "nginx", version+"-alpine", alpine...); err != nil {
			return err
		}
	}
	return nil
}

func nginxImage(r *Registry, version string, shells []string, size int64, osRelease []byte) Image {
	programs := ownAll(shellBytes, r.userland(shells...))
	programs["docker-entrypoint.sh"] = nginxEntrypoint
	programs["nginx"] = own(6*mib, nginxProgram(version))
	return Image{
		SizeBytes: size, Simulated: true, Programs: programs, Ports: []int{80},
		Entrypoint: []string{"/docker-entrypoint.sh"}, Cmd: []string{"nginx", "-g", "daemon off;"},
		Env: []string{path1, "NGINX_VERSION=" + version},
		Files: map[string][]byte{
			"/etc/os-release":         osRelease,
			nginxRoot + "/index.html": []byte(nginxWelcome),
			nginxRoot + "/50x.html":   []byte("<!DOCTYPE html>\n<html>\n<head><title>Error</title></head>\n<body>\n<h1>An error occurred.</h1>\n</body>\n</html>\n"),
			nginxConf + "/default.conf": []byte("server {\n    listen       80;\n    server_name  localhost;\n\n    location / {\n        root   " + nginxRoot +
				";\n        index  index.html index.htm;\n    }\n\n    error_page   500 502 503 504  /50x.html;\n}\n"),
		},
	}
}

// nginxEntrypoint prepares nothing here, but says what the real one says.
func nginxEntrypoint(ctx context.Context, p *Process) int {
	if len(p.Args) > 1 && (p.Args[1] == "nginx" || p.Args[1] == "nginx-debug") {
		for _, line := range []string{
			"/docker-entrypoint.d/ is not empty, will attempt to perform configuration",
			"Looking for shell scripts in /docker-entrypoint.d/",
			"Configuration complete; ready for start up",
		} {
			fmt.Fprintln(p.Stdout, "/docker-entrypoint.sh: "+line)
		}
	}
	return p.run(ctx, p.Args[1:])
}

const nginxWelcome = `<!DOCTYPE html>
<html>
<head>
<title>Welcome to nginx!</title>
<style>
html { color-scheme: light dark; }
body { width: 35em; margin: 0 auto;
font-family: Tahoma, Verdana, Arial, sans-serif; }
</style>
</head>
<body>
<h1>Welcome to nginx!</h1>
<p>If you see this page, the nginx web server is successfully installed and
working. Further configuration is required.</p>

<p>For online documentation and support please refer to
<a href="http://nginx.org/">nginx.org</a>.<br/>
Commercial support is available at
<a href="http://nginx.com/">nginx.com</a>.</p>

<p><em>Thank you for using nginx.</em></p>
</body>
</html>
`

func addPause(r *Registry) error {
	img := Image{
		SizeBytes: 320_448, Entrypoint: []string{"/pause"}, Simulated: true, Env: []string{path1},
		Programs: map[string]Program{"pause": own(256<<10, pauseProgram)},
	}
	for _, version := range []string{"3.10.2", "3.10.1", "3.10", "3.9", "3.8"} {
		if err := r.AddTagged(img, "registry.k8s.io/pause", version, version); err != nil {
			return err
		}
	}
	for _, version := range []string{"3.10", "3.9", "3.7"} { // of Karpenter's guides
		if err := r.AddTagged(img, "public.ecr.aws/eks-distro/kubernetes/pause", version, version); err != nil {
			return err
		}
	}
	return nil
}

// addKubectl adds images that jobs in tutorials talk to the API server with.
func addKubectl(r *Registry) error {
	for _, minor := range []string{"1.37", "1.36", "1.35", "1.34", "1.33", "1.32"} {
		tags := []string{minor, minor + ".0"}
		if minor == "1.37" {
			tags = append(tags, "1.37.2", "latest")
		}
		programs := ownAll(shellBytes, r.userland("sh", "bash"))
		programs["kubectl"] = own(20*mib, kubectlProgram)
		if err := r.AddTagged(Image{
			SizeBytes: 71_303_168, Entrypoint: []string{"kubectl"}, Cmd: []string{"--help"}, Simulated: true,
			Env: []string{path1, "HOME=/"}, Programs: programs,
		}, "bitnami/kubectl", minor, tags...); err != nil {
			return err
		}
	}
	return r.AddTagged(Image{
		SizeBytes: 27_262_976, Entrypoint: []string{"/bin/kubectl"}, Simulated: true, Env: []string{path1},
		Programs: map[string]Program{"kubectl": own(20*mib, kubectlProgram)},
	}, "registry.k8s.io/kubectl", "v1.37.2", "v1.37.2", "v1.37.0", "v1.36.0", "v1.35.0", "v1.34.0", "v1.33.0")
}
