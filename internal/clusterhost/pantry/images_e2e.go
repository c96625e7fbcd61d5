package pantry

import (
	"context"
	"fmt"
)

// testImages is where the images of Kubernetes' own tests are, which its
// documentation uses as well.
const testImages = "registry.k8s.io/e2e-test-images/"

// addTestImages adds the images of test/utils/image/manifest.go as far as their
// programs are there.
func addTestImages(r *Registry) error {
	for _, add := range []func(*Registry) error{addAgnhost, addTestBusybox, addTestNginx, addUpdateDemo, addTestTools} {
		if err := add(r); err != nil {
			return err
		}
	}
	return nil
}

func addAgnhost(r *Registry) error {
	tools := r.userland("sh", "ash", "bash")
	for _, absent := range []string{"httpd", "jq"} {
		delete(tools, absent)
	}
	programs := ownAll(shellBytes, tools)
	for _, name := range []string{"agnhost", "agnhost-2"} {
		programs[name] = own(8*mib, agnhostProgram)
	}
	files, err := localhostFiles()
	if err != nil {
		return err
	}
	files["/etc/os-release"], files["/uploads/.keep"] = release("alpine", "Alpine Linux", "3.22"), nil
	for _, version := range []string{"2.66.1", "2.55", "2.53", "2.47", "2.45", "2.43", "2.40", "2.39", "2.21"} {
		if err := r.AddTagged(Image{
			SizeBytes: 58_720_256, Entrypoint: []string{"/agnhost"}, Cmd: []string{"pause"}, Env: []string{path1}, Simulated: true,
			Ports: []int{80, 8080, 8081, 9376, 5000}, Programs: programs,
			Files: files,
		}, testImages+"agnhost", version, version); err != nil {
			return err
		}
	}
	return nil
}

func addTestBusybox(r *Registry) error {
	programs := r.userland("sh", "ash")
	for _, absent := range []string{"bash", "curl", "jq", "dig"} {
		delete(programs, absent)
	}
	for _, version := range []string{"1.37.0-2", "1.37.0-1", "1.36.1-1", "1.29-4", "1.29-2"} {
		if err := r.AddTagged(Image{
			SizeBytes: 2_224_358, Cmd: []string{"sh"}, Env: []string{path1}, Simulated: true,
			Programs: ownAll(shellBytes, programs),
		}, testImages+"busybox", version, version); err != nil {
			return err
		}
	}
	return nil
}

func addTestNginx(r *Registry) error {
	for _, version := range []string{"1.27.0", "1.28.0"} {
		img := nginxImage(r, version, []string{"sh", "ash"}, 20_971_520, release("alpine", "Alpine Linux", "3.22"))
		for _, absent := range []string{"dig", "httpd", "jq"} {
			delete(img.Programs, absent)
		}
		if err := r.AddTagged(img, testImages+"nginx", version+"-2", version+"-2"); err != nil {
			return err
		}
	}
	return nil
}

// addUpdateDemo adds the two images that are rolled out in turns: each serves which picture it is.
func addUpdateDemo(r *Registry) error {
	for _, name := range []string{"nautilus", "kitten"} {
		if err := r.AddTagged(Image{
			SizeBytes: 16_777_216, Entrypoint: []string{"/agnhost"}, Cmd: []string{"test-webserver"}, Env: []string{path1}, Simulated: true, Ports: []int{80},
			Programs: map[string]Program{"agnhost": own(8*mib, agnhostProgram)},
			Files: map[string][]byte{
				"/data.json": []byte("{\n  \"image\": \"" + name + ".jpg\"\n}\n"), "/etc/os-release": release("alpine", "Alpine Linux", "3.22"),
			},
		}, testImages+name, "1.8", "1.8"); err != nil {
			return err
		}
	}
	return nil
}

// addTestTools adds small images: look-ups by the C library of GNU, and a user that isn't root.
func addTestTools(r *Registry) error {
	debian := map[string][]byte{"/etc/os-release": release("debian", "Debian GNU/Linux", "12")}
	lookup := r.userland("sh", "bash")
	for _, absent := range []string{"curl", "httpd", "jq", "nc", "ping", "ps", "vi", "wget"} {
		delete(lookup, absent)
	}
	for _, img := range []struct {
		name, version string
		image         Image
	}{
		{"glibc-dns-testing", "2.1.1", Image{SizeBytes: 67_108_864, Cmd: []string{"bash"}, Programs: ownAll(shellBytes, lookup)}},
		{"nonroot", "1.5", Image{SizeBytes: 42_991_616, Cmd: []string{"bash"}, User: 1234, Programs: ownAll(shellBytes, r.userland("sh", "bash"))}},
		{"nonewprivs", "1.4", Image{SizeBytes: 7_340_032, Entrypoint: []string{"/nnp"}, Programs: map[string]Program{"nnp": own(mib, effectiveUID)}}},
	} {
		img.image.Simulated, img.image.Env, img.image.Files = true, []string{path1}, debian
		if err := r.AddTagged(img.image, testImages+img.name, img.version, img.version); err != nil {
			return err
		}
	}
	return nil
}

// effectiveUID says whom it runs as. The real program's file belongs to root and
// has the setuid bit, which counts unless the container has no_new_privs; here no
// container gains privileges.
func effectiveUID(_ context.Context, p *Process) int {
	fmt.Fprintf(p.Stdout, "Effective uid: %d\n", p.User.UID)
	return 0
}
