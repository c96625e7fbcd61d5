package host

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// options are what the flags say. Names are Traefik's static configuration
// (doc.traefik.io, "Static configuration: CLI"), without regard to case.
type options struct {
	entryPoints map[string]*entryPoint

	ingress             bool
	ingressClass        string
	ingressNamespaces   []string
	ingressSelector     string
	ingressIP           string
	ingressHostname     string
	publishedService    string // namespace/name
	allowEmptyServices  bool
	allowExternalNames  bool
	gateway             bool
	gatewayNamespaces   []string
	gatewaySelector     string
	gatewayIP           string
	gatewayHostname     string
	gatewayService      string // namespace/name
	throttle            time.Duration
	endpoint            string // of the API server, when not in a Pod
	token               string
	caFile              string
	logLevel            level
	accessLog           bool
	accessJSON          bool
	ping                bool
	pingEntryPoint      string
	insecureSkipVerify  bool
	dialTimeout         time.Duration
	responseTimeout     time.Duration
	maxIdleConnsPerHost int
	graceTimeout        time.Duration

	unknown []string // flags that have no effect
}

// entryPoint is a port that the program listens on.
type entryPoint struct {
	name        string
	address     string
	tls         bool   // its routers are TLS routers
	redirectTo  string // entry point or :port of an entry-wide redirection
	scheme      string
	permanent   bool
	trustHeader bool // forwardedHeaders.insecure
}

// internalEntry carries ping only.
const internalEntry = "traefik"

// flag is a setting by lower-case name.
type flag func(o *options, value string) error

func text(at func(*options) *string) flag {
	return func(o *options, v string) error { *at(o) = v; return nil }
}

func list(at func(*options) *[]string) flag {
	return func(o *options, v string) error {
		for part := range strings.SplitSeq(v, ",") {
			if part = strings.TrimSpace(part); part != "" {
				*at(o) = append(*at(o), part)
			}
		}
		return nil
	}
}

func truth(at func(*options) *bool) flag {
	return func(o *options, v string) (err error) { *at(o), err = strconv.ParseBool(cmp.Or(v, "true")); return err }
}

// span reads a duration; a bare number is seconds.
func span(at func(*options) *time.Duration) flag {
	return func(o *options, v string) (err error) {
		if n, err := strconv.ParseUint(v, 10, 31); err == nil {
			*at(o) = time.Duration(n) * time.Second
			return nil
		}
		*at(o), err = time.ParseDuration(v)
		return err
	}
}

var flags = map[string]flag{
	"log.level": func(o *options, v string) error {
		l, ok := levels[strings.ToLower(v)]
		if !ok {
			return fmt.Errorf("unknown level %q", v)
		}
		o.logLevel = l
		return nil
	},
	"accesslog":        truth(func(o *options) *bool { return &o.accessLog }),
	"accesslog.format": func(o *options, v string) error { o.accessLog, o.accessJSON = true, v == "json"; return nil },
	"ping":             truth(func(o *options) *bool { return &o.ping }),
	"ping.entrypoint":  func(o *options, v string) error { o.ping, o.pingEntryPoint = true, v; return nil },

	"providers.providersthrottleduration": span(func(o *options) *time.Duration { return &o.throttle }),

	"ingressclass":                                                 text(func(o *options) *string { return &o.ingressClass }),
	"providers.kubernetesingress":                                  truth(func(o *options) *bool { return &o.ingress }),
	"providers.kubernetesingress.ingressclass":                     text(func(o *options) *string { return &o.ingressClass }),
	"providers.kubernetesingress.namespaces":                       list(func(o *options) *[]string { return &o.ingressNamespaces }),
	"providers.kubernetesingress.labelselector":                    text(func(o *options) *string { return &o.ingressSelector }),
	"providers.kubernetesingress.ingressendpoint.ip":               text(func(o *options) *string { return &o.ingressIP }),
	"providers.kubernetesingress.ingressendpoint.hostname":         text(func(o *options) *string { return &o.ingressHostname }),
	"providers.kubernetesingress.ingressendpoint.publishedservice": text(func(o *options) *string { return &o.publishedService }),
	"providers.kubernetesingress.allowemptyservices":               truth(func(o *options) *bool { return &o.allowEmptyServices }),
	"providers.kubernetesingress.allowexternalnameservices":        truth(func(o *options) *bool { return &o.allowExternalNames }),
	"providers.kubernetesingress.throttleduration":                 span(func(o *options) *time.Duration { return &o.throttle }),
	"providers.kubernetesingress.endpoint":                         text(func(o *options) *string { return &o.endpoint }),
	"providers.kubernetesingress.token":                            text(func(o *options) *string { return &o.token }),
	"providers.kubernetesingress.certauthfilepath":                 text(func(o *options) *string { return &o.caFile }),

	"providers.kubernetesgateway":                        truth(func(o *options) *bool { return &o.gateway }),
	"providers.kubernetesgateway.namespaces":             list(func(o *options) *[]string { return &o.gatewayNamespaces }),
	"providers.kubernetesgateway.labelselector":          text(func(o *options) *string { return &o.gatewaySelector }),
	"providers.kubernetesgateway.statusaddress.ip":       text(func(o *options) *string { return &o.gatewayIP }),
	"providers.kubernetesgateway.statusaddress.hostname": text(func(o *options) *string { return &o.gatewayHostname }),
	"providers.kubernetesgateway.statusaddress.service.name": func(o *options, v string) error {
		namespace, _, _ := strings.Cut(o.gatewayService, "/")
		o.gatewayService = namespace + "/" + v
		return nil
	},
	"providers.kubernetesgateway.statusaddress.service.namespace": func(o *options, v string) error {
		_, name, _ := strings.Cut(o.gatewayService, "/")
		o.gatewayService = v + "/" + name
		return nil
	},
	"providers.kubernetesgateway.throttleduration": span(func(o *options) *time.Duration { return &o.throttle }),
	"providers.kubernetesgateway.endpoint":         text(func(o *options) *string { return &o.endpoint }),
	"providers.kubernetesgateway.token":            text(func(o *options) *string { return &o.token }),
	"providers.kubernetesgateway.certauthfilepath": text(func(o *options) *string { return &o.caFile }),

	"serverstransport.insecureskipverify":                       truth(func(o *options) *bool { return &o.insecureSkipVerify }),
	"serverstransport.forwardingtimeouts.dialtimeout":           span(func(o *options) *time.Duration { return &o.dialTimeout }),
	"serverstransport.forwardingtimeouts.responseheadertimeout": span(func(o *options) *time.Duration { return &o.responseTimeout }),
	"serverstransport.maxidleconnsperhost": func(o *options, v string) (err error) {
		o.maxIdleConnsPerHost, err = strconv.Atoi(v)
		return err
	},
}

// quiet are flags of Traefik that ask for nothing that would be missed here.
var quiet = []string{"global.", "log.format", "log.nocolor", "metrics", "api", "tracing", "accesslog."}

// parse reads the flags; done means that the program ends with code at once. Defaults are
// Traefik's but for allowEmptyServices, which its Helm chart switches on too: a
// Service without endpoints is to be told (503) from a rule that isn't there (404).
func parse(args []string, out io.Writer) (o options, code int, done bool) {
	o = options{
		entryPoints: map[string]*entryPoint{}, allowEmptyServices: true, throttle: 2 * time.Second, logLevel: levelError,
		pingEntryPoint: internalEntry, dialTimeout: 30 * time.Second, maxIdleConnsPerHost: 200, graceTimeout: 10 * time.Second,
	}
	if len(args) > 0 && args[0] == "version" || slices.Contains(args, "--version") {
		fmt.Fprintf(out, "Version:      %s\nCodename:     kubistro/host\nOS/Arch:      linux/amd64\n", Version)
		return o, 0, true
	}
	for k := 0; k < len(args); k++ {
		arg := args[k]
		name, value, inline := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if !inline && k+1 < len(args) && !strings.HasPrefix(args[k+1], "-") {
			k++
			value = args[k]
		}
		if err := o.set(arg, strings.ToLower(name), value); err != nil {
			fmt.Fprintf(out, "command traefik error: failed to decode configuration from flags: --%s: %v\n", name, err)
			return o, 1, true
		}
	}
	if len(o.entryPoints) == 0 {
		o.entry("http").address = ":80"
	}
	if o.ping && o.pingEntryPoint == internalEntry && o.entryPoints[internalEntry] == nil {
		o.entry(internalEntry).address = ":8080"
	}
	for _, name := range slices.Sorted(maps.Keys(o.entryPoints)) {
		if o.entryPoints[name].address == "" {
			fmt.Fprintf(out, "command traefik error: entry point %s has no address\n", name)
			return o, 1, true
		}
	}
	return o, 0, false
}

func (o *options) entry(name string) *entryPoint {
	if o.entryPoints[name] == nil {
		o.entryPoints[name] = &entryPoint{name: name, scheme: "https", permanent: true}
	}
	return o.entryPoints[name]
}

// set takes one flag.
func (o *options) set(arg, name, value string) error {
	if f := flags[name]; f != nil {
		o.ingress = o.ingress || strings.HasPrefix(name, "providers.kubernetesingress.") // a setting switches its provider on
		o.gateway = o.gateway || strings.HasPrefix(name, "providers.kubernetesgateway.")
		return f(o, value)
	}
	if rest, ok := strings.CutPrefix(name, "entrypoints."); ok {
		if entry, setting, ok := strings.Cut(rest, "."); ok {
			return o.entrySetting(arg, entry, setting, value)
		}
	}
	if !slices.ContainsFunc(quiet, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
		o.unknown = append(o.unknown, arg)
	}
	return nil
}

func (o *options) entrySetting(arg, name, setting, value string) (err error) {
	e := o.entry(name)
	switch setting {
	case "address":
		address, protocol, _ := strings.Cut(value, "/")
		if protocol != "" && protocol != "tcp" {
			delete(o.entryPoints, name)
			o.unknown = append(o.unknown, arg)
			return nil
		}
		e.address = address
	case "http.tls":
		e.tls, err = strconv.ParseBool(cmp.Or(value, "true"))
	case "http.redirections.entrypoint.to":
		e.redirectTo = value
	case "http.redirections.entrypoint.scheme":
		e.scheme = value
	case "http.redirections.entrypoint.permanent":
		e.permanent, err = strconv.ParseBool(cmp.Or(value, "true"))
	case "forwardedheaders.insecure":
		e.trustHeader, err = strconv.ParseBool(cmp.Or(value, "true"))
	case "transport.lifecycle.gracetimeout":
		return span(func(o *options) *time.Duration { return &o.graceTimeout })(o, value)
	case "asdefault":
	default:
		if strings.HasPrefix(setting, "http.tls.") {
			e.tls = true
		}
		o.unknown = append(o.unknown, arg)
	}
	return err
}
