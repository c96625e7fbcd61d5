package addons

import (
	"net/http"
	"strings"
)

// The documents that the aggregation layer asks each of its APIs for; kubectl explain reads them.
const (
	openAPIv2 = "/openapi/v2"
	openAPIv3 = "/openapi/v3"
)

// jsonMap is a JSON object of a document.
type jsonMap = map[string]any

// metricsKinds are the kinds of the group with what they are about.
func metricsKinds() map[string]jsonMap {
	text := func(s string) jsonMap { return jsonMap{"type": "string", "description": s} }
	usage := jsonMap{"type": "object", "description": "The memory usage is the memory working set.", "additionalProperties": jsonMap{"type": "string"}}
	kind := func(description, key string, value jsonMap) jsonMap {
		return jsonMap{"type": "object", "description": description, "required": []string{"timestamp", "window", key}, "properties": jsonMap{
			"apiVersion": text("The version of this representation."), "kind": text("The kind of this object."),
			"metadata":  jsonMap{"type": "object", "description": "Standard object's metadata."},
			"timestamp": jsonMap{"type": "string", "format": "date-time", "description": "Metrics were collected from the interval [Timestamp-Window, Timestamp]."},
			"window":    text("The length of the interval."),
			key:         value,
		}}
	}
	return map[string]jsonMap{
		"NodeMetrics": kind("NodeMetrics sets resource usage metrics of a node.", "usage", usage),
		"PodMetrics": kind("PodMetrics sets resource usage metrics of a pod.", "containers", jsonMap{"type": "array", "description": "Metrics for all containers are collected within the same time window.",
			"items": jsonMap{"type": "object", "required": []string{"name", "usage"}, "properties": jsonMap{"name": text("Container name corresponding to the one from pod.spec.containers."), "usage": usage}}}),
	}
}

const metricsPackage = "io.k8s.metrics.pkg.apis.metrics.v1beta1."

// metricsDocument is the group's document; reference says where schemas are in it.
func metricsDocument(reference string) (schemas, paths jsonMap) {
	schemas, paths = jsonMap{}, jsonMap{}
	for name, schema := range metricsKinds() {
		gvk := jsonMap{"group": "metrics.k8s.io", "version": "v1beta1", "kind": name}
		list := jsonMap{"group": "metrics.k8s.io", "version": "v1beta1", "kind": name + "List"}
		schema["x-kubernetes-group-version-kind"] = []jsonMap{gvk}
		schemas[metricsPackage+name] = schema
		schemas[metricsPackage+name+"List"] = jsonMap{
			"type": "object", "description": "A list of " + name + ".", "required": []string{"items"}, "x-kubernetes-group-version-kind": []jsonMap{list},
			"properties": jsonMap{
				"apiVersion": jsonMap{"type": "string"}, "kind": jsonMap{"type": "string"}, "metadata": jsonMap{"type": "object"},
				"items": jsonMap{"type": "array", "items": jsonMap{"$ref": reference + metricsPackage + name}},
			},
		}
		resource := strings.ToLower(strings.TrimSuffix(name, "Metrics")) + "s"
		at := groupPath + "/" + resource
		paths[at] = reading(reference, name+"List", "list", list)
		one := at + "/{name}"
		if resource == "pods" {
			one = groupPath + "/namespaces/{namespace}/pods/{name}"
			paths[groupPath+"/namespaces/{namespace}/pods"] = reading(reference, name+"List", "list", list)
		}
		paths[one] = reading(reference, name, "get", gvk)
	}
	return schemas, paths
}

// reading is a path with its one operation, in the form of both versions.
func reading(reference, kind, action string, gvk jsonMap) jsonMap {
	schema := jsonMap{"$ref": reference + metricsPackage + kind}
	answer := jsonMap{"description": "OK"}
	if strings.HasPrefix(reference, "#/components") {
		answer["content"] = jsonMap{"application/json": jsonMap{"schema": schema}}
	} else {
		answer["schema"] = schema
	}
	return jsonMap{"get": jsonMap{
		"description": action + " " + kind, "responses": jsonMap{"200": answer},
		"x-kubernetes-action": action, "x-kubernetes-group-version-kind": gvk,
	}}
}

// serveOpenAPI answers for a path below /openapi; false: there is no such document.
func serveOpenAPI(w http.ResponseWriter, path string) bool {
	info := jsonMap{"title": "metrics-server", "version": "v0.9.0"}
	switch path {
	case openAPIv2:
		schemas, paths := metricsDocument("#/definitions/")
		answer(w, jsonMap{"swagger": "2.0", "info": info, "paths": paths, "definitions": schemas})
	case openAPIv3:
		answer(w, jsonMap{"paths": jsonMap{strings.TrimPrefix(groupPath, "/"): jsonMap{"serverRelativeURL": openAPIv3 + groupPath}}})
	case openAPIv3 + groupPath:
		schemas, paths := metricsDocument("#/components/schemas/")
		answer(w, jsonMap{"openapi": "3.0.0", "info": info, "paths": paths, "components": jsonMap{"schemas": schemas}})
	default:
		return false
	}
	return true
}
