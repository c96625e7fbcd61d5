package pantry

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	appslisters "k8s.io/client-go/listers/apps/v1"
	"k8s.io/client-go/tools/cache"
)

const (
	operatorName  = "kubistro-operator"
	operatorRetry = 5 * time.Second
	managedBy     = "app.kubernetes.io/managed-by"
)

// operator is kubistro/operator: the controller of a custom resource. For each
// object it keeps a Deployment of the same name with spec.image and spec.replicas, and
// reports in status how many Pods are ready.
type operator struct {
	p         *Process
	gvr       schema.GroupVersionResource
	custom    dynamic.Interface
	client    kubernetes.Interface
	objects   cache.GenericLister
	deployed  appslisters.DeploymentLister
	wake      chan struct{}
	lastError string
}

func operatorProgram(ctx context.Context, p *Process) int {
	f := flag.NewFlagSet("operator", flag.ContinueOnError)
	f.SetOutput(p.Stderr)
	resource := f.String("resource", "", "the custom resource, as PLURAL.VERSION.GROUP")
	namespace := f.String("namespace", "", "the only namespace to work in; empty: all")
	if err := f.Parse(p.Args[1:]); err != nil {
		return 2
	}
	gvr, _ := schema.ParseResourceArg(*resource)
	if gvr == nil {
		fmt.Fprintln(p.Stderr, "operator: --resource=PLURAL.VERSION.GROUP must be set")
		return 2
	}
	o := &operator{p: p, gvr: *gvr, wake: make(chan struct{}, 1)}
	if err := o.connect(); err != nil {
		fmt.Fprintf(p.Stderr, "operator: %v\n", err)
		return 1
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	custom := dynamicinformer.NewFilteredDynamicSharedInformerFactory(o.custom, 0, *namespace, nil)
	own := informers.NewSharedInformerFactoryWithOptions(o.client, 0, informers.WithNamespace(*namespace),
		informers.WithTweakListOptions(func(l *metav1.ListOptions) { l.LabelSelector = managedBy + "=" + operatorName }))
	o.objects, o.deployed = custom.ForResource(o.gvr).Lister(), own.Apps().V1().Deployments().Lister()
	changed := cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { o.poke() }, UpdateFunc: func(any, any) { o.poke() }, DeleteFunc: func(any) { o.poke() },
	}
	custom.ForResource(o.gvr).Informer().AddEventHandler(changed)
	own.Apps().V1().Deployments().Informer().AddEventHandler(changed)
	custom.Start(ctx.Done())
	own.Start(ctx.Done())
	done := make(chan struct{})
	go func() {
		defer close(done)
		custom.WaitForCacheSync(ctx.Done())
		own.WaitForCacheSync(ctx.Done())
		o.run(ctx)
	}()
	fmt.Fprintf(p.Stdout, "operator watches %s\n", o.gvr.GroupResource())
	code := 137
	if _, ok := p.terminated(ctx); ok {
		code = 0
	}
	cancel()
	<-done
	custom.Shutdown()
	own.Shutdown()
	return code
}

func (o *operator) connect() error {
	cfg, err := o.p.InClusterConfig()
	if err != nil {
		return err
	}
	if o.client, err = kubernetes.NewForConfig(cfg); err != nil {
		return err
	}
	o.custom, err = dynamic.NewForConfig(cfg)
	return err
}

func (o *operator) poke() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// run brings all objects to what they want whenever something has changed, and
// again a while after a failure.
func (o *operator) run(ctx context.Context) {
	for ctx.Err() == nil {
		var again <-chan time.Time
		stop := func() bool { return true }
		if err := o.all(ctx); err != nil && ctx.Err() == nil {
			if text := err.Error(); text != o.lastError {
				o.lastError = text
				fmt.Fprintf(o.p.Stderr, "operator: %s\n", text)
			}
			t := o.p.Clock.NewTimer(operatorRetry)
			again, stop = t.C(), t.Stop
		}
		select {
		case <-ctx.Done():
		case <-o.wake:
		case <-again:
		}
		stop()
	}
}

func (o *operator) all(ctx context.Context) error {
	list, err := o.objects.List(labels.Everything())
	if err != nil {
		return err
	}
	var errs []error
	for _, obj := range list {
		if u, ok := obj.(*unstructured.Unstructured); ok && u.GetDeletionTimestamp() == nil {
			if err := o.reconcile(ctx, u); err != nil && !apierrors.IsConflict(err) {
				errs = append(errs, fmt.Errorf("%s/%s: %w", u.GetNamespace(), u.GetName(), err))
			}
		}
	}
	return errors.Join(errs...)
}

func (o *operator) reconcile(ctx context.Context, u *unstructured.Unstructured) error {
	want := deploymentOf(u)
	api := o.client.AppsV1().Deployments(want.Namespace)
	have, err := o.deployed.Deployments(want.Namespace).Get(want.Name)
	switch {
	case apierrors.IsNotFound(err):
		have, err = api.Create(ctx, want, metav1.CreateOptions{})
		if err == nil {
			fmt.Fprintf(o.p.Stdout, "%s %s/%s: created its Deployment\n", u.GetKind(), u.GetNamespace(), u.GetName())
		}
	case err == nil && !metav1.IsControlledBy(have, u):
		return errors.New("there is a Deployment of that name that belongs to somebody else")
	case err == nil && (*have.Spec.Replicas != *want.Spec.Replicas || have.Spec.Template.Spec.Containers[0].Image != want.Spec.Template.Spec.Containers[0].Image):
		next := have.DeepCopy()
		next.Spec.Replicas = want.Spec.Replicas
		next.Spec.Template.Spec.Containers[0].Image = want.Spec.Template.Spec.Containers[0].Image
		have, err = api.Update(ctx, next, metav1.UpdateOptions{})
		if err == nil {
			fmt.Fprintf(o.p.Stdout, "%s %s/%s: changed its Deployment\n", u.GetKind(), u.GetNamespace(), u.GetName())
		}
	}
	if err != nil {
		return err
	}
	return o.report(ctx, u, have)
}

// report writes the status, by the subresource where the definition has one.
func (o *operator) report(ctx context.Context, u *unstructured.Unstructured, d *appsv1.Deployment) error {
	phase := "Pending"
	if d.Status.ReadyReplicas >= *d.Spec.Replicas && d.Status.ObservedGeneration >= d.Generation {
		phase = "Ready"
	}
	status := map[string]any{"phase": phase, "readyReplicas": int64(d.Status.ReadyReplicas), "observedGeneration": u.GetGeneration()}
	if was, _, _ := unstructured.NestedMap(u.Object, "status"); len(was) > 0 && was["phase"] == phase &&
		was["readyReplicas"] == status["readyReplicas"] && was["observedGeneration"] == status["observedGeneration"] {
		return nil
	}
	next := u.DeepCopy()
	next.Object["status"] = status
	api := o.custom.Resource(o.gvr).Namespace(u.GetNamespace())
	_, err := api.UpdateStatus(ctx, next, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = api.Update(ctx, next, metav1.UpdateOptions{})
	}
	return err
}

// deploymentOf is what an object asks for.
func deploymentOf(u *unstructured.Unstructured) *appsv1.Deployment {
	replicas, ok, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
	if !ok {
		replicas = 1
	}
	image, _, _ := unstructured.NestedString(u.Object, "spec", "image")
	if image == "" {
		image = "grill-cook:1.5"
	}
	n := int32(max(0, min(replicas, 100)))
	own := map[string]string{"app.kubernetes.io/name": u.GetName(), managedBy: operatorName}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Name: u.GetName(), Namespace: u.GetNamespace(), Labels: own,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(u, u.GroupVersionKind())},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: &n, Selector: &metav1.LabelSelector{MatchLabels: own},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: own},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}},
			},
		},
	}
}
