package kubelet

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// probeGRPC asks a container by the gRPC health protocol: pkg/probe/grpc.
func (w *worker) probeGRPC(ctx context.Context, service string, port int, timeout time.Duration) (ok, warning bool, output string, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	address := net.JoinHostPort(w.ip.String(), strconv.Itoa(port))
	conn, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithUserAgent("kube-probe/1.37"), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return w.b.iface.DialContext(ctx, "tcp", address)
		}))
	if err != nil {
		return false, false, "", err
	}
	defer conn.Close()
	conn.Connect()
	for s := conn.GetState(); s != connectivity.Ready; s = conn.GetState() {
		if !conn.WaitForStateChange(ctx, s) {
			return false, false, fmt.Sprintf("timeout: failed to connect service %q within %v: %v", address, timeout, ctx.Err()), nil
		}
	}
	answer, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{Service: service})
	switch status.Code(err) {
	case codes.OK:
	case codes.Unimplemented:
		return false, false, fmt.Sprintf("error: this server does not implement the grpc health protocol (grpc.health.v1.Health): %s", status.Convert(err).Message()), nil
	case codes.DeadlineExceeded:
		return false, false, fmt.Sprintf("timeout: health rpc did not complete within %v", timeout), nil
	default:
		return false, false, fmt.Sprintf("error: health rpc probe failed: %v", err), nil
	}
	if s := answer.GetStatus(); s != healthpb.HealthCheckResponse_SERVING {
		return false, false, fmt.Sprintf("service unhealthy (responded with %q)", s), nil
	}
	return true, false, "service healthy", nil
}
