package controlplane

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	apiopenapi "k8s.io/apiserver/pkg/endpoints/openapi"
	genericfeatures "k8s.io/apiserver/pkg/features"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/server/filters"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/apiserver/pkg/util/openapi"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	openapicommon "k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/common/restfuladapter"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/controlplane"
	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"
	generatedopenapi "k8s.io/kubernetes/pkg/generated/openapi"
	"k8s.io/kubernetes/pkg/kubeapiserver"
)

// generic is the configuration that the three layers of the API server share.
type generic struct {
	config    *genericapiserver.Config
	informers informers.SharedInformerFactory
	storage   *serverstorage.DefaultStorageFactory
}

// buildGeneric takes the steps of controlplaneapiserver.BuildGenericConfig. That
// function can't be used itself: it makes clients of the loopback address before
// anybody could say that they must dial the socket, and it has no place for the
// egress before the first user of it.
func buildGeneric(ctx context.Context, s options.CompletedOptions, parts apiServerParts) (*generic, error) {
	codecs := legacyscheme.Codecs
	if utilfeature.DefaultFeatureGate.Enabled(genericfeatures.CBORServingAndStorage) {
		codecs = serializer.NewCodecFactory(legacyscheme.Scheme, serializer.WithSerializer(cbor.NewSerializerInfo))
	}
	c := genericapiserver.NewConfig(codecs)
	c.MergedResourceConfig = controlplane.DefaultAPIResourceConfigSource()
	if err := s.GenericServerRunOptions.ApplyTo(c); err != nil {
		return nil, err
	}
	if err := serve(c, s, parts); err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(c.LoopbackClientConfig)
	if err != nil {
		return nil, err
	}
	g := &generic{config: c}
	g.informers = informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithTransform(withoutManagedFields), informers.WithInformerName(s.InformerName))
	if err := s.Features.ApplyTo(c, client, g.informers); err != nil {
		return nil, err
	}
	if err := s.APIEnablement.ApplyTo(c, c.MergedResourceConfig, legacyscheme.Scheme); err != nil {
		return nil, err
	}
	c.EgressSelector = egressOnly(parts.egress)
	if err := s.Traces.ApplyTo(c.EgressSelector, c); err != nil {
		return nil, err
	}
	describe(c)
	c.LongRunningFunc = filters.BasicLongRunningRequestCheck(sets.NewString("watch", "proxy"),
		sets.NewString("attach", "exec", "proxy", "log", "portforward"))
	if g.storage, err = storageFactory(c, s, parts); err != nil {
		return nil, err
	}
	drained := wait.ContextForChannel(c.DrainedNotify())
	if err := s.Authentication.ApplyTo(drained, &c.Authentication, c.SecureServing, c.EgressSelector, c.OpenAPIConfig, c.OpenAPIV3Config, client, g.informers, c.APIServerID); err != nil {
		return nil, err
	}
	c.Authorization.Authorizer, c.RuleResolver, _, err = controlplaneapiserver.BuildAuthorizer(drained, s.CompletedOptions, c.EgressSelector, c.APIServerID, g.informers)
	if err != nil {
		return nil, err
	}
	c.AuditBackend, c.AuditPolicyRuleEvaluator = parts.audit, auditRules()
	c.DisabledPostStartHooks.Insert(hookRBAC)
	c.AggregatedDiscoveryGroupManager = aggregated.NewResourceManager("apis")
	return g, nil
}

// serve sets the listener and the API server's client of itself.
func serve(c *genericapiserver.Config, s options.CompletedOptions, parts apiServerParts) error {
	if err := s.SecureServing.SecureServingOptions.ApplyTo(&c.SecureServing); err != nil {
		return err
	}
	own, err := newAuthority(genericapiserver.LoopbackClientServerNameOverride)
	if err != nil {
		return err
	}
	cert, key, err := own.issue(&x509.Certificate{
		DNSNames:    []string{genericapiserver.LoopbackClientServerNameOverride},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		return err
	}
	sni, err := dynamiccertificates.NewStaticSNICertKeyContent("loopback", cert, key, genericapiserver.LoopbackClientServerNameOverride)
	if err != nil {
		return err
	}
	c.SecureServing.SNICerts = append([]dynamiccertificates.SNICertKeyContentProvider{sni}, c.SecureServing.SNICerts...)
	transport, err := newTransport(parts.dialSelf, own.pem, genericapiserver.LoopbackClientServerNameOverride)
	if err != nil {
		return err
	}
	token := make([]byte, 32)
	rand.Read(token)
	c.LoopbackClientConfig = restConfig(transport, hex.EncodeToString(token), "kube-apiserver")
	c.LoopbackClientConfig.DisableCompression = true
	return nil
}

// describe sets the OpenAPI documents.
func describe(c *genericapiserver.Config) {
	definitions := openapi.GetOpenAPIDefinitionsWithoutDisabledFeatures(generatedopenapi.GetOpenAPIDefinitions)
	namer := apiopenapi.NewDefinitionNamer(schemes()...)
	c.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(definitions, namer)
	c.OpenAPIConfig.Info.Title = "Kubernetes"
	c.OpenAPIConfig.GetOperationIDAndTagsFromRoute = operationIDAndTags
	c.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(definitions, namer)
	c.OpenAPIV3Config.Info.Title = "Kubernetes"
	c.OpenAPIV3Config.GetOperationIDAndTagsFromRoute = operationIDAndTags
}

// operationIDAndTags is what the builders would set by themselves, as a function that
// keeps the builder and with it all definitions in memory.
func operationIDAndTags(r openapicommon.Route) (string, []string, error) {
	a, ok := r.(*restfuladapter.RouteAdapter)
	if !ok {
		return "", nil, fmt.Errorf("OpenAPI: a route is a %T", r)
	}
	return apiopenapi.GetOperationIDAndTags(a.Route)
}

func storageFactory(c *genericapiserver.Config, s options.CompletedOptions, parts apiServerParts) (*serverstorage.DefaultStorageFactory, error) {
	s.Etcd.StorageConfig.Transport.EgressLookup = c.EgressSelector.Lookup
	s.Etcd.StorageConfig.Transport.TracerProvider = c.TracerProvider
	sc := kubeapiserver.NewStorageFactoryConfigEffectiveVersion(c.EffectiveVersion)
	sc.APIResourceConfig = c.MergedResourceConfig
	sc.DefaultResourceEncoding.SetEffectiveVersion(c.EffectiveVersion)
	f, err := sc.Complete(s.Etcd).New()
	if err != nil {
		return nil, fmt.Errorf("storage: %w", err)
	}
	f.StorageConfig.StorageObjectCountTracker = c.StorageObjectCountTracker
	c.ResourceTransformers = parts.encryption.transformers
	if err := s.Etcd.ApplyWithStorageFactoryTo(f, c); err != nil {
		return nil, fmt.Errorf("storage: %w", err)
	}
	c.RESTOptionsGetter, err = newDirectStorage(wait.ContextForChannel(c.DrainedNotify()), c.RESTOptionsGetter, s.Etcd, parts.etcd)
	return f, err
}

// withoutManagedFields keeps informers' caches small.
func withoutManagedFields(o any) (any, error) {
	if a, err := meta.Accessor(o); err == nil && a.GetManagedFields() != nil {
		a.SetManagedFields(nil)
	}
	return o, nil
}
