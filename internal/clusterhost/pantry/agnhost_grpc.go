package pantry

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// grpcHealth answers gRPC health checks: well until it is told otherwise or for some time.
type grpcHealth struct {
	healthpb.UnimplementedHealthServer
	a       *agnhost
	service string
	until   time.Time // zero: for ever

	mu     sync.Mutex
	forced *bool
}

func (g *grpcHealth) Check(_ context.Context, r *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	if r.GetService() != g.service {
		return nil, status.Error(codes.NotFound, "unknown service")
	}
	well := g.until.IsZero() || g.a.Clock.Now().Before(g.until)
	g.mu.Lock()
	if g.forced != nil {
		well = well && *g.forced
	}
	g.mu.Unlock()
	if !well {
		return &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_NOT_SERVING}, nil
	}
	return &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING}, nil
}

func (g *grpcHealth) force(well bool) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		g.mu.Lock()
		g.forced = &well
		g.mu.Unlock()
		io.WriteString(w, "ok")
	}
}

func agnhostGRPC(ctx context.Context, a *agnhost, args []string) int {
	f := a.flags("grpc-health-checking")
	g := &grpcHealth{a: a}
	port, httpPort := f.Int("port", 5000, ""), f.Int("http-port", 8080, "")
	delay := f.Int("delay-unhealthy-sec", -1, "")
	f.StringVar(&g.service, "service", "", "")
	cert, key := f.String("tls-cert-file", "", ""), f.String("tls-private-key-file", "", "")
	if code, ok := a.parse(f, args); !ok {
		return code
	}
	if (*cert == "") != (*key == "") {
		return a.fatal("Both --tls-cert-file and --tls-private-key-file must be set")
	}
	if *delay >= 0 {
		g.until = a.Clock.Now().Add(time.Duration(*delay) * time.Second)
	}
	var options []grpc.ServerOption
	if *cert != "" {
		pair, err := a.certificate(*cert, *key)
		if err != nil {
			return a.fatal("Failed to generate credentials %v", err)
		}
		options = append(options, grpc.Creds(credentials.NewServerTLSFromCert(&pair)))
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/make-serving", g.force(true))
	mux.HandleFunc("/make-not-serving", g.force(false))
	switches, err := a.listenHTTP(":"+strconv.Itoa(*httpPort), mux)
	if err != nil {
		return a.fatal("%s", listenError(err))
	}
	defer switches.stop()
	l, err := a.Net.Listen(":" + strconv.Itoa(*port))
	if err != nil {
		return a.fatal("Error while starting the listening service %s", listenError(err))
	}
	server := grpc.NewServer(options...)
	healthpb.RegisterHealthServer(server, g)
	var served sync.WaitGroup
	served.Go(func() { server.Serve(l) })
	defer served.Wait()
	defer server.Stop()
	a.printf("gRPC server starting to listen on :%d", *port)
	return a.run(ctx, 0, 2)
}
