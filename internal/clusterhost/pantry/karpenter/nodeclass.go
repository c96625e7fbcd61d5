package karpenter

import (
	"github.com/awslabs/operatorpkg/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes/scheme"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"kubistro/internal/clusterhost/cloud"
)

// The groups of the node classes: our own, and that of Karpenter's provider for AWS,
// whose objects in public tutorials are taken as they are (what they ask of AWS means
// nothing here).
var (
	kitchenGroup = schema.GroupVersion{Group: "karpenter.kubistro.io", Version: "v1"}
	awsGroup     = schema.GroupVersion{Group: "karpenter.k8s.aws", Version: "v1"}
)

// init tells client-go's scheme, which Karpenter looks in, as Karpenter's own packages
// do; later others would read it meanwhile.
func init() {
	metav1.AddToGroupVersion(scheme.Scheme, kitchenGroup)
	scheme.Scheme.AddKnownTypes(kitchenGroup, &KitchenNodeClass{}, &KitchenNodeClassList{})
	metav1.AddToGroupVersion(scheme.Scheme, awsGroup)
	scheme.Scheme.AddKnownTypes(awsGroup, &EC2NodeClass{}, &EC2NodeClassList{})
	keys := sets.New[string]()
	for _, t := range cloud.Catalogue() {
		keys = keys.Union(sets.KeySet(t.Labels()))
	}
	v1.WellKnownLabels = v1.WellKnownLabels.Union(keys)
}

// NodeClassStatus is what is reported of a node class.
type NodeClassStatus struct {
	Conditions []status.Condition `json:"conditions,omitempty"`
}

// KitchenNodeClass says how machines of the simulated cloud are set up: there is
// nothing to choose. It is Ready by its definition's default.
type KitchenNodeClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Status NodeClassStatus `json:"status,omitempty"`
}

// KitchenNodeClassList is a list of them.
type KitchenNodeClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []KitchenNodeClass `json:"items"`
}

// EC2NodeClass is the class of tutorials for AWS.
type EC2NodeClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Status NodeClassStatus `json:"status,omitempty"`
}

// EC2NodeClassList is a list of them.
type EC2NodeClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []EC2NodeClass `json:"items"`
}

var (
	_ status.Object = (*KitchenNodeClass)(nil)
	_ status.Object = (*EC2NodeClass)(nil)
)

func (s NodeClassStatus) deepCopy() NodeClassStatus {
	return NodeClassStatus{Conditions: append([]status.Condition(nil), s.Conditions...)}
}

// GetConditions and what follows make a class an object with conditions.
func (c *KitchenNodeClass) GetConditions() []status.Condition { return c.Status.Conditions }

// SetConditions replaces the conditions.
func (c *KitchenNodeClass) SetConditions(all []status.Condition) { c.Status.Conditions = all }

// StatusConditions are the conditions with their meaning.
func (c *KitchenNodeClass) StatusConditions(opts ...status.ForOption) status.ConditionSet {
	return status.NewReadyConditions().For(c, opts...)
}

// DeepCopyObject copies the class.
func (c *KitchenNodeClass) DeepCopyObject() runtime.Object {
	out := &KitchenNodeClass{TypeMeta: c.TypeMeta, Status: c.Status.deepCopy()}
	c.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return out
}

// DeepCopyObject copies the list.
func (l *KitchenNodeClassList) DeepCopyObject() runtime.Object {
	out := &KitchenNodeClassList{TypeMeta: l.TypeMeta}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*KitchenNodeClass))
	}
	return out
}

// GetConditions and what follows make a class an object with conditions.
func (c *EC2NodeClass) GetConditions() []status.Condition { return c.Status.Conditions }

// SetConditions replaces the conditions.
func (c *EC2NodeClass) SetConditions(all []status.Condition) { c.Status.Conditions = all }

// StatusConditions are the conditions with their meaning.
func (c *EC2NodeClass) StatusConditions(opts ...status.ForOption) status.ConditionSet {
	return status.NewReadyConditions().For(c, opts...)
}

// DeepCopyObject copies the class.
func (c *EC2NodeClass) DeepCopyObject() runtime.Object {
	out := &EC2NodeClass{TypeMeta: c.TypeMeta, Status: c.Status.deepCopy()}
	c.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return out
}

// DeepCopyObject copies the list.
func (l *EC2NodeClassList) DeepCopyObject() runtime.Object {
	out := &EC2NodeClassList{TypeMeta: l.TypeMeta}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*EC2NodeClass))
	}
	return out
}
