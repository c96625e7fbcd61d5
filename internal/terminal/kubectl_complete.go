package terminal

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"

	"kubistro/internal/shell"
)

// complete proposes what can come at pos: for kubectl its own proposals
// (commands, flags, kinds, names), otherwise commands and files.
func (k *kubectl) complete(ctx context.Context, sh *shell.Shell, line string, pos int) (int, []string) {
	start, first := shell.WordStart(line[:pos])
	if first {
		return sh.Complete(ctx, line, pos)
	}
	words := lastCommand(line[:start])
	if len(words) == 0 || words[0] != "kubectl" && words[0] != "k" {
		return sh.Complete(ctx, line, pos)
	}
	word := line[start:pos]
	if n := len(words); n > 1 && slices.Contains([]string{"-f", "--filename", "-k", "--from-file", "--patch-file"}, words[n-1]) {
		return start, sh.CompleteFile(word)
	}
	if flag, value, ok := strings.Cut(word, "="); ok && strings.HasPrefix(flag, "--") && slices.Contains(pathFlags, strings.TrimLeft(flag, "-")) {
		return start + len(flag) + 1, sh.CompleteFile(value)
	}
	done := make(chan []string, 1)
	go func() { done <- k.ask(ctx, append(words[1:], word)) }()
	select {
	case p := <-done:
		return start, p
	case <-ctx.Done():
		return start, nil
	}
}

// ask runs kubectl's own completion.
func (k *kubectl) ask(ctx context.Context, args []string) []string {
	k.completing.Lock()
	defer k.completing.Unlock()
	if ctx.Err() != nil {
		return nil
	}
	var out strings.Builder
	g := &getter{k: k, ctx: ctx, config: k.config}
	k.execute(ctx, g, genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: io.Discard}, append([]string{"__completeNoDesc"}, args...))
	word := args[len(args)-1]
	var proposals []string
	for _, l := range strings.Split(out.String(), "\n") {
		if l != "" && l[0] != ':' && strings.HasPrefix(l, word) && !strings.Contains(l, " ") {
			proposals = append(proposals, l)
		}
	}
	slices.Sort(proposals)
	return slices.Compact(proposals)
}

// lastCommand splits the words of the command that a line ends in.
func lastCommand(line string) []string {
	if i := strings.LastIndexAny(line, "|;&(\n"); i >= 0 {
		line = line[i+1:]
	}
	words := strings.Fields(line)
	for len(words) > 0 && (strings.Contains(words[0], "=") || slices.Contains([]string{"sudo", "time", "watch", "do", "then"}, words[0])) {
		words = words[1:]
	}
	return words
}

// lookup resolves the names of Services through the API, for when the server
// gave no resolver.
func (k *kubectl) lookup(ctx context.Context, name string) ([]string, error) {
	notFound := &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	parts := strings.Split(strings.TrimSuffix(name, "."), ".")
	ns := "default"
	if len(parts) > 1 {
		ns = parts[1]
	}
	if rest := parts[min(2, len(parts)):]; len(rest) > 0 && !slices.Contains([]string{"svc", "svc.cluster", "svc.cluster.local"}, strings.Join(rest, ".")) {
		return nil, notFound
	}
	client, err := kubernetes.NewForConfig(k.config)
	if err != nil {
		return nil, err
	}
	svc, err := client.CoreV1().Services(ns).Get(ctx, parts[0], metav1.GetOptions{})
	if err != nil {
		return nil, errors.Join(notFound, err)
	}
	if svc.Spec.ClusterIP != "None" && svc.Spec.ClusterIP != "" {
		return svc.Spec.ClusterIPs, nil
	}
	endpointSlices, err := client.DiscoveryV1().EndpointSlices(ns).List(ctx, metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=" + parts[0]})
	if err != nil {
		return nil, err
	}
	var out []string
	for _, s := range endpointSlices.Items {
		for _, e := range s.Endpoints {
			if e.Conditions.Ready == nil || *e.Conditions.Ready {
				out = append(out, e.Addresses...)
			}
		}
	}
	if len(out) == 0 {
		return nil, notFound
	}
	return out, nil
}
