package session

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"kubistro/internal/lab"
	"kubistro/internal/store"
)

// ServerName is the name that the server's own certificate is for. Kubeconfigs
// ask for it, whatever address they reach the server by.
const ServerName = "kubistro"

// Kubeconfig is part of API. A base URL with https is taken as it is (a proxy
// with a certificate of its own); with http it becomes https with the server's
// own certificate, because client-go sends no token over plain HTTP.
func (s *Service) Kubeconfig(ctx context.Context, learner lab.LearnerID, id, baseURL string) ([]byte, error) {
	l, err := s.find(ctx, learner, id)
	if err != nil {
		return nil, err
	}
	now := s.Clock.Now().UTC()
	secret, err := s.Store.NewToken(ctx, store.Token{Session: id, Learner: learner, Created: now, Expires: now.Add(s.TokenLifetime)})
	if err != nil {
		return nil, fmt.Errorf("session: token: %w", err)
	}
	name := "kubistro-" + l.opened.ID
	c := clientcmdapi.NewConfig()
	server := &clientcmdapi.Cluster{Server: baseURL + "/k8s/" + id}
	if address, plain := strings.CutPrefix(server.Server, "http://"); plain && len(s.ServingCA) > 0 {
		server.Server = "https://" + address
		server.CertificateAuthorityData = s.ServingCA
		server.TLSServerName = ServerName
	}
	c.Clusters[name] = server
	c.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: secret}
	c.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: "default"}
	c.CurrentContext = name
	data, err := clientcmd.Write(*c)
	if err != nil {
		return nil, fmt.Errorf("session: kubeconfig: %w", err)
	}
	return data, nil
}

// RevokeKubeconfigs is part of API.
func (s *Service) RevokeKubeconfigs(ctx context.Context, learner lab.LearnerID, id string) error {
	if _, err := s.find(ctx, learner, id); err != nil {
		return err
	}
	if err := s.Store.RevokeTokens(ctx, id); err != nil {
		return fmt.Errorf("session: revoke tokens: %w", err)
	}
	return nil
}
