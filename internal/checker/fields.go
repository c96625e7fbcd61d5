package checker

import "encoding/json"

// value walks down an object in its JSON form; nil when something is missing.
func value(obj map[string]any, path ...string) any {
	var v any = obj
	for _, p := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[p]
	}
	return v
}

func text(obj map[string]any, path ...string) string {
	s, _ := value(obj, path...).(string)
	return s
}

func flag(obj map[string]any, path ...string) bool {
	b, _ := value(obj, path...).(bool)
	return b
}

func object(obj map[string]any, path ...string) map[string]any {
	m, _ := value(obj, path...).(map[string]any)
	return m
}

func number(obj map[string]any, path ...string) int64 {
	switch n := value(obj, path...).(type) {
	case int64:
		return n
	case int:
		return int64(n)
	case int32:
		return int64(n)
	case float64:
		return int64(n)
	case json.Number:
		i, _ := n.Int64()
		return i
	}
	return 0
}

// items is a list of objects; what isn't an object is left out.
func items(obj map[string]any, path ...string) []map[string]any {
	switch list := value(obj, path...).(type) {
	case []map[string]any:
		return list
	case []any:
		out := make([]map[string]any, 0, len(list))
		for _, e := range list {
			if m, ok := e.(map[string]any); ok {
				out = append(out, m)
			}
		}
		return out
	}
	return nil
}

func conditions(obj map[string]any) []map[string]any { return items(obj, "status", "conditions") }

// condition is the status of a condition by type; empty when there is none.
func condition(obj map[string]any, kind string) string {
	return text(conditionOf(obj, kind), "status")
}

func conditionOf(obj map[string]any, kind string) map[string]any {
	for _, c := range conditions(obj) {
		if text(c, "type") == kind {
			return c
		}
	}
	return nil
}

// labelMap is a map of strings at a path.
func labelMap(obj map[string]any, path ...string) map[string]string {
	out := map[string]string{}
	for k, v := range object(obj, path...) {
		if s, ok := v.(string); ok {
			out[k] = s
		}
	}
	return out
}
