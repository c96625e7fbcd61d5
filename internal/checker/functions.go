package checker

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
)

// functions are what expressions may call besides CEL's own. Arguments are dyn
// because objects are; a wrong kind of argument is a "no such overload" error.
func functions() []cel.EnvOption {
	str, obj := cel.StringType, cel.DynType
	return []cel.EnvOption{
		// sameImage(a, b): nginx is docker.io/library/nginx:latest.
		binary("sameImage", obj, obj, cel.BoolType, func(a, b ref.Val) ref.Val {
			return withStrings(a, b, func(a, b string) ref.Val { return types.Bool(sameImage(a, b)) })
		}),
		// images(o): the images of a Pod or of a workload's template.
		unary("images", obj, cel.ListType(str), withObject(func(o map[string]any) ref.Val {
			return types.NewStringList(types.DefaultTypeAdapter, images(o))
		})),
		// usesImage(o, ref): one of images(o) is ref.
		binary("usesImage", obj, obj, cel.BoolType, func(a, b ref.Val) ref.Val {
			return withStrings(types.String(""), b, func(_, want string) ref.Val {
				return withObject(func(o map[string]any) ref.Val { return types.Bool(usesImage(o, want)) })(a)
			})
		}),
		// compareQuantity(a, b): -1, 0 or 1 for quantities such as 500m and 0.5.
		binary("compareQuantity", obj, obj, cel.IntType, compareQuantity),
		// podStatus(p), podReady(p), restarts(p): kubectl's STATUS, READY and RESTARTS.
		unary("podStatus", obj, str, withObject(func(o map[string]any) ref.Val { return types.String(PodStatus(o)) })),
		unary("podReady", obj, cel.BoolType, withObject(func(o map[string]any) ref.Val { return types.Bool(podReady(o)) })),
		unary("restarts", obj, cel.IntType, withObject(func(o map[string]any) ref.Val { return types.Int(PodRestarts(o)) })),
		// rolledOut(d): a Deployment whose rollout is complete, as kubectl rollout status says.
		unary("rolledOut", obj, cel.BoolType, withObject(func(o map[string]any) ref.Val { return types.Bool(rolledOut(o)) })),
		// ownedBy(o, owner): owner is among the owner references of o, by uid.
		binary("ownedBy", obj, obj, cel.BoolType, func(a, b ref.Val) ref.Val {
			return withObject(func(o map[string]any) ref.Val {
				return withObject(func(owner map[string]any) ref.Val { return types.Bool(ownedBy(o, owner)) })(b)
			})(a)
		}),
		// controller(o): kind and name of the controlling owner, as "ReplicaSet/grill-7c9", or "".
		unary("controller", obj, str, withObject(func(o map[string]any) ref.Val { return types.String(controllerOf(o)) })),
		// ok(r): an answer below 400 came.
		unary("ok", obj, cel.BoolType, withObject(func(o map[string]any) ref.Val { return types.Bool(answered(o)) })),
		// errorRate(list): the share, 0 to 1, of requests with no answer or one of 500 and above; nothing without any.
		unary("errorRate", obj, cel.DoubleType, withList(errorRate)),
		// spread(list): how many requests each Pod answered, by its name.
		unary("spread", obj, cel.MapType(str, cel.IntType), withList(spread)),
		// percentile(list, p): the milliseconds within which p per cent of the answers came; nothing without any.
		binary("percentile", obj, obj, cel.IntType, func(list, p ref.Val) ref.Val {
			return withList(func(l []map[string]any) ref.Val { return percentile(l, p) })(list)
		}),
		// matchesLabels(o, selector): the labels of o contain all of the map.
		binary("matchesLabels", obj, obj, cel.BoolType, func(a, b ref.Val) ref.Val {
			return withObject(func(o map[string]any) ref.Val {
				return withObject(func(sel map[string]any) ref.Val { return types.Bool(matches(o, sel)) })(b)
			})(a)
		}),
	}
}

func unary(name string, arg, result *cel.Type, f func(ref.Val) ref.Val) cel.EnvOption {
	return cel.Function(name, cel.Overload(name+"_one", []*cel.Type{arg}, result, cel.UnaryBinding(f)))
}

func binary(name string, a, b, result *cel.Type, f func(a, b ref.Val) ref.Val) cel.EnvOption {
	return cel.Function(name, cel.Overload(name+"_two", []*cel.Type{a, b}, result, cel.BinaryBinding(f)))
}

func withStrings(a, b ref.Val, f func(a, b string) ref.Val) ref.Val {
	x, okX := a.(types.String)
	y, okY := b.(types.String)
	switch {
	case !okX:
		return types.MaybeNoSuchOverloadErr(a)
	case !okY:
		return types.MaybeNoSuchOverloadErr(b)
	}
	return f(string(x), string(y))
}

// withObject calls f with a map; null is the missing object.
func withObject(f func(map[string]any) ref.Val) func(ref.Val) ref.Val {
	return func(v ref.Val) ref.Val {
		if v == types.NullValue {
			return types.NewErr("no such key: the object doesn't exist")
		}
		m, ok := v.Value().(map[string]any)
		if !ok {
			native, err := v.ConvertToNative(reflect.TypeFor[map[string]any]())
			if m, ok = native.(map[string]any); err != nil || !ok {
				return types.MaybeNoSuchOverloadErr(v)
			}
		}
		return f(m)
	}
}

func compareQuantity(a, b ref.Val) ref.Val {
	x, err := quantity(a)
	if err != nil {
		return types.WrapErr(err)
	}
	y, err := quantity(b)
	if err != nil {
		return types.WrapErr(err)
	}
	return types.Int(x.Cmp(y))
}

func quantity(v ref.Val) (resource.Quantity, error) {
	switch v.(type) {
	case types.String, types.Int, types.Double, types.Uint:
		q, err := resource.ParseQuantity(strings.TrimSpace(fmt.Sprint(v.Value())))
		if err != nil {
			return q, fmt.Errorf("quantity %v: %w", v.Value(), err)
		}
		return q, nil
	}
	return resource.Quantity{}, fmt.Errorf("no such overload: quantity of %s", v.Type().TypeName())
}

func usesImage(o map[string]any, want string) bool {
	for _, i := range images(o) {
		if sameImage(i, want) {
			return true
		}
	}
	return false
}

func podReady(pod map[string]any) bool {
	return condition(pod, "Ready") == "True" && text(pod, "metadata", "deletionTimestamp") == ""
}

// rolledOut follows kubectl's rollout status for Deployments.
func rolledOut(d map[string]any) bool {
	want := int64(1)
	if value(d, "spec", "replicas") != nil {
		want = number(d, "spec", "replicas")
	}
	return number(d, "status", "observedGeneration") >= number(d, "metadata", "generation") &&
		number(d, "status", "updatedReplicas") == want &&
		number(d, "status", "replicas") == want &&
		number(d, "status", "availableReplicas") == want
}

func ownedBy(o, owner map[string]any) bool {
	uid := text(owner, "metadata", "uid")
	for _, r := range items(o, "metadata", "ownerReferences") {
		if uid != "" && text(r, "uid") == uid {
			return true
		}
	}
	return false
}

func controllerOf(o map[string]any) string {
	for _, r := range items(o, "metadata", "ownerReferences") {
		if flag(r, "controller") {
			return text(r, "kind") + "/" + text(r, "name")
		}
	}
	return ""
}

func matches(o, selector map[string]any) bool {
	want := labels.Set{}
	for k, v := range selector {
		s, ok := v.(string)
		if !ok {
			return false
		}
		want[k] = s
	}
	return len(want) > 0 && labels.SelectorFromSet(want).Matches(labels.Set(labelMap(o, "metadata", "labels")))
}
