// Package e2e pins what Kubernetes' own end-to-end suite needs beside Kubernetes
// itself. It is a module of its own so that these requirements don't weigh on
// the product's; the versions that both share are the same, so that building the
// suite compiles only what clusterhost doesn't hold.
package e2e
