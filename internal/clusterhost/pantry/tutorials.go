package pantry

import (
	"maps"
	"slices"
)

// addTutorials adds the public images that the Kubernetes documentation and its
// tutorials run, as far as a small program can honestly do what theirs does. Databases
// with a language of their own and whole applications aren't among them: their names stay unknown, which says so.
func addTutorials(r *Registry) error {
	for _, add := range []func(*Registry) error{addSystems, addWebServers, addHello, addEchoes, addHogs, addPerl, addRedis} {
		if err := add(r); err != nil {
			return err
		}
	}
	return nil
}

// tagged is an image with its versions: a version's name and further tags of the same.
type tagged struct {
	repositories []string
	image        Image
	versions     map[string][]string
}

func (r *Registry) addVersions(list ...tagged) error {
	for _, t := range list {
		t.image.Simulated = true
		if t.image.Env == nil {
			t.image.Env = []string{path1}
		}
		for _, repository := range t.repositories {
			for _, version := range slices.Sorted(maps.Keys(t.versions)) {
				if err := r.AddTagged(t.image, repository, version, append([]string{version}, t.versions[version]...)...); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// singles are versions without further tags.
func singles(versions ...string) map[string][]string {
	out := map[string][]string{}
	for _, v := range versions {
		out[v] = nil
	}
	return out
}

// without is the userland less some commands.
func (r *Registry) without(shells []string, absent ...string) map[string]Program {
	programs := r.userland(shells...)
	for _, name := range absent {
		delete(programs, name)
	}
	return ownAll(shellBytes, programs)
}

// addSystems adds images that are a shell and its commands. Their package managers aren't
// there: there is no world to fetch packages from.
func addSystems(r *Registry) error {
	alpine := r.without([]string{"sh", "ash"}, "curl", "jq", "dig", "httpd", "bash")
	debian := r.without([]string{"sh", "bash", "dash"}, "curl", "wget", "jq", "dig", "host", "nslookup", "httpd", "nc", "ping", "ps", "vi", "hexdump", "xxd", "less", "ip")
	lookup := r.without([]string{"sh", "bash"}, "httpd", "jq", "vi")
	busybox := r.without([]string{"sh", "ash"}, "bash", "curl", "jq", "dig")
	files := func(id, name, version string) map[string][]byte {
		return map[string][]byte{"/etc/os-release": release(id, name, version)}
	}
	return r.addVersions(
		tagged{[]string{"alpine"}, Image{SizeBytes: 3_800_000, Cmd: []string{"/bin/sh"}, Programs: alpine, Files: files("alpine", "Alpine Linux", "3.22.2")},
			map[string][]string{"3.22.2": {"3.22", "3", "latest"}, "3.21.5": {"3.21"}, "3.20": nil, "3.19": nil, "3.18": nil, "3.17": nil, "3.16": nil, "3.15": nil, "3.14": nil, "3.12": nil, "3.10": nil, "3.4": nil}},
		tagged{[]string{"debian"}, Image{SizeBytes: 49_300_000, Cmd: []string{"bash"}, Programs: debian, Files: files("debian", "Debian GNU/Linux", "13")},
			map[string][]string{"trixie": {"13", "latest", "stable", "stable-slim", "trixie-slim"}, "bookworm": {"12", "bookworm-slim"}, "bullseye": {"11", "bullseye-slim"}, "buster": {"10", "buster-slim"}}},
		tagged{[]string{"ubuntu"}, Image{SizeBytes: 29_700_000, Cmd: []string{"/bin/bash"}, Programs: debian, Files: files("ubuntu", "Ubuntu", "24.04")},
			map[string][]string{"24.04": {"noble", "latest"}, "22.04": {"jammy"}, "20.04": {"focal"}, "18.04": {"bionic"}}},
		tagged{[]string{"registry.k8s.io/busybox", "k8s.gcr.io/busybox"}, Image{SizeBytes: 720_019, Cmd: []string{"sh"}, Programs: busybox},
			map[string][]string{"1.27.2": {"1.27", "latest"}, "1.24": nil}},
		tagged{[]string{testImages + "jessie-dnsutils"}, Image{SizeBytes: 111_149_056, Cmd: []string{"bash"}, Programs: lookup, Files: files("debian", "Debian GNU/Linux", "8")},
			singles("1.3", "1.5", "1.7", "1.7-1")},
	)
}

func addWebServers(r *Registry) error {
	slim := nginxImage(r, "1.27.3", []string{"sh", "bash"}, 33_554_432, release("debian", "Debian GNU/Linux", "12"))
	programs := r.without([]string{"sh", "bash"}, "curl", "wget", "jq", "dig", "host", "nslookup", "httpd", "nc", "ping", "ps", "vi", "ip")
	programs["httpd-foreground"] = own(8*mib, apacheProgram)
	programs["httpd"] = programs["httpd-foreground"]
	return r.addVersions(
		tagged{[]string{"registry.k8s.io/nginx-slim", "k8s.gcr.io/nginx-slim"}, slim, singles("0.8", "0.9", "0.21", "0.24", "0.25", "0.26", "0.27")},
		tagged{[]string{"httpd"}, Image{
			SizeBytes: 45_000_000, Cmd: []string{"httpd-foreground"}, Ports: []int{80}, WorkDir: "/usr/local/apache2", Programs: programs,
			Files: map[string][]byte{
				"/etc/os-release":          release("debian", "Debian GNU/Linux", "12"),
				apacheRoot + "/index.html": []byte("<html><body><h1>It works!</h1></body></html>\n"),
			},
		}, map[string][]string{apacheVersion: {"2.4", "2", "latest", "alpine", "2.4-alpine"}}},
	)
}

func addHello(r *Registry) error {
	shell := r.without([]string{"sh", "ash"}, "bash", "curl", "jq", "dig", "httpd")
	bootcamp := r.without([]string{"sh", "bash"}, "wget", "jq", "dig", "httpd", "vi")
	var list []tagged
	for _, v := range []string{"1", "2"} {
		hello, camp := maps.Clone(shell), maps.Clone(bootcamp)
		hello["hello-app"] = own(4*mib, helloProgram(v+".0.0"))
		camp["node"] = own(24*mib, bootcampProgram(v))
		list = append(list,
			tagged{[]string{"gcr.io/google-samples/hello-app", "us-docker.pkg.dev/google-samples/containers/gke/hello-app"},
				Image{SizeBytes: 12_900_000, Cmd: []string{"./hello-app"}, Ports: []int{8080}, Programs: hello}, singles(v + ".0")},
			tagged{[]string{"gcr.io/google-samples/kubernetes-bootcamp", "docker.io/jocatalin/kubernetes-bootcamp", "gcr.io/k8s-minikube/kubernetes-bootcamp"},
				Image{SizeBytes: 83_600_000, Cmd: []string{"/bin/sh", "-c", "node server.js"}, Ports: []int{8080}, Programs: camp, Files: map[string][]byte{
					"/server.js": []byte("// On a simulated node a program of Kubistro answers in place of this script.\n"),
				}}, singles("v" + v)},
		)
	}
	node := with(shell, ownAll(24*mib, map[string]Program{"node": nodeHelloProgram}))
	back := map[string]Program{"hello": own(4*mib, helloBackend)}
	front := nginxImage(r, "1.14.1", []string{"sh", "bash"}, 44_700_000, release("debian", "Debian GNU/Linux", "9"))
	front.Programs["nginx"], front.Entrypoint = own(6*mib, helloFrontend), nil
	list = append(list,
		tagged{[]string{"gcr.io/google-samples/node-hello", "us-docker.pkg.dev/google-samples/containers/gke/node-hello"},
			Image{SizeBytes: 257_000_000, Cmd: []string{"/bin/sh", "-c", "node server.js"}, Ports: []int{8080}, Programs: node}, singles("1.0")},
		tagged{[]string{"gcr.io/google-samples/hello-go-gke"}, Image{SizeBytes: 5_000_000, Entrypoint: []string{"/hello"}, Ports: []int{80}, Programs: back}, singles("1.0")},
		tagged{[]string{"gcr.io/google-samples/hello-frontend"}, front, singles("1.0")},
	)
	return r.addVersions(list...)
}

func addEchoes(r *Registry) error {
	one := func(name string, prog Program) map[string]Program { return map[string]Program{name: own(4*mib, prog)} }
	return r.addVersions(
		tagged{[]string{"hashicorp/http-echo"}, Image{SizeBytes: 3_000_000, Entrypoint: []string{"/http-echo"}, Ports: []int{5678}, Programs: one("http-echo", httpEchoProgram)},
			map[string][]string{"1.0.0": {"1.0", "latest"}, "0.2.3": nil}},
		tagged{[]string{"kicbase/echo-server", "ealen/echo-server", "jmalloc/echo-server"}, Image{SizeBytes: 4_900_000, Entrypoint: []string{"/bin/echo-server"}, Ports: []int{8080}, Programs: one("echo-server", echoServerProgram)},
			map[string][]string{"1.0": {"latest"}}},
		tagged{[]string{"registry.k8s.io/echoserver", "k8s.gcr.io/echoserver", "gcr.io/google_containers/echoserver"},
			Image{SizeBytes: 95_400_000, Cmd: []string{"/usr/local/bin/run.sh"}, Ports: []int{8080}, Programs: one("run.sh", clientValuesProgram)}, singles("1.4", "1.8", "1.10")},
	)
}

func addHogs(r *Registry) error {
	alpine := r.without([]string{"sh", "ash", "bash"}, "curl", "jq", "dig", "httpd")
	apache := r.without([]string{"sh", "bash"}, "wget", "jq", "dig", "httpd", "nc", "ping", "vi")
	apache["apache2-foreground"] = own(10*mib, hpaExampleProgram)
	return r.addVersions(
		tagged{[]string{"polinux/stress", "polinux/stress-ng"}, Image{SizeBytes: 4_000_000, Entrypoint: nil, Cmd: []string{"stress"},
			Programs: with(alpine, ownAll(mib, map[string]Program{"stress": stressProgram, "stress-ng": stressProgram}))},
			map[string][]string{"1.0.4": {"latest"}}},
		tagged{[]string{"vish/stress"}, Image{SizeBytes: 1_560_000, Entrypoint: []string{"/stress"}, Programs: map[string]Program{"stress": own(2*mib, goStressProgram)}},
			map[string][]string{"1.0": {"latest"}}},
		tagged{[]string{"registry.k8s.io/hpa-example", "k8s.gcr.io/hpa-example", "gcr.io/google_containers/hpa-example"},
			Image{SizeBytes: 180_000_000, Cmd: []string{"apache2-foreground"}, Ports: []int{80}, WorkDir: "/var/www/html", Programs: apache},
			map[string][]string{"1.0": {"latest"}}},
	)
}

func addPerl(r *Registry) error {
	programs := r.without([]string{"sh", "bash"}, "jq", "dig", "httpd", "nc", "ping", "vi")
	programs["perl"] = own(8*mib, perlProgram)
	return r.addVersions(tagged{[]string{"perl"}, Image{
		SizeBytes: 336_000_000, Cmd: []string{"perl", "-v"}, Programs: programs, Files: map[string][]byte{"/etc/os-release": release("debian", "Debian GNU/Linux", "12")},
	}, map[string][]string{"5.34.0": {"5.34"}, "5.42.0": {"5.42", "5", "latest"}, "5.40.0": {"5.40"}, "5.38.0": {"5.38"}, "5.36.0": {"5.36"}}})
}

func addRedis(r *Registry) error {
	programs := r.without([]string{"sh", "bash"}, "curl", "wget", "jq", "dig", "host", "nslookup", "httpd", "nc", "ping", "ps", "vi", "ip")
	programs["redis-server"], programs["redis-cli"] = own(3*mib, redisProgram(r.rate)), own(mib, redisCLI)
	follower := maps.Clone(programs)
	follower["run.sh"] = own(3*mib, redisFollower(r.rate))
	front := map[string]Program{"apache2-foreground": own(10*mib, guestbookProgram)}
	server := Image{SizeBytes: 45_000_000, Cmd: []string{"redis-server"}, Ports: []int{6379}, WorkDir: "/data", Programs: programs}
	return r.addVersions(
		tagged{[]string{"redis"}, server, map[string][]string{
			"8.0.2": {"8.0", "8", "latest", "alpine", "8-alpine"}, "7.4": {"7", "7-alpine", "7.4-alpine"}, "7.2": {"7.2-alpine"}, "7.0": {"7.0-alpine"}, "6.2": {"6", "6-alpine", "6.2-alpine"},
			"6.0.5": {"6.0"}, "5.0.4": {"5.0", "5", "5-alpine"}, "3.2-alpine": {"3.2"},
		}},
		tagged{[]string{"gcr.io/google_samples/gb-redis-follower", "gcr.io/google-samples/gb-redis-follower", "us-docker.pkg.dev/google-samples/containers/gke/gb-redis-follower"},
			Image{SizeBytes: 41_000_000, Cmd: []string{"/run.sh"}, Ports: []int{6379}, Programs: follower}, singles("v2")},
		tagged{[]string{"gcr.io/google_samples/gb-frontend", "gcr.io/google-samples/gb-frontend", "us-docker.pkg.dev/google-samples/containers/gke/gb-frontend"},
			Image{SizeBytes: 166_000_000, Cmd: []string{"apache2-foreground"}, Ports: []int{80}, Programs: front}, singles("v5")},
	)
}
