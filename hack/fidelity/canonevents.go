package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// repeated are reasons that come again and again while a state lasts: how often depends on when one looks.
var repeated = map[string]bool{
	"BackOff": true, "Unhealthy": true, "FailedScheduling": true, "FailedGetResourceMetric": true, "FailedComputeMetricsReplicas": true,
	"FailedMount": true, "FailedCreate": true, "Failed": true, "Pulling": true, "ProvisioningFailed": true, "ExternalProvisioning": true,
	"FailedAttachVolume": true, "WaitForFirstConsumer": true, "InspectFailed": true, "ErrImageNeverPull": true, "FailedGetScale": true,
	"NoPods": true, "CalculateExpectedPodCountFailed": true, "WaitForPodScheduled": true, "DeadlineExceeded": true, "UnexpectedJob": true,
}

// canonicalEvents groups Events by the object they are about, in the order in which they were recorded.
func canonicalEvents(list []map[string]any, keepNodes bool) []string {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b map[string]any) int { return cmp.Compare(recorded(a), recorded(b)) })
	type about struct{ kind, name string }
	byObject := map[about][]string{}
	for _, e := range list {
		o, _ := e["involvedObject"].(map[string]any)
		k := about{fmt.Sprint(o["kind"]), fmt.Sprint(o["name"])}
		line := "  " + canonicalLine(eventLine(e, o), keepNodes)
		if lines := byObject[k]; len(lines) > 0 && lines[len(lines)-1] == line && repeated[fmt.Sprint(e["reason"])] {
			continue
		}
		byObject[k] = append(byObject[k], line)
	}
	var docs []string
	for k, lines := range byObject {
		docs = append(docs, canonicalLine(k.kind+" "+k.name, keepNodes)+"\n"+strings.Join(lines, "\n"))
	}
	return counted(docs)
}

func eventLine(e, object map[string]any) string {
	source, _ := e["source"].(map[string]any)
	component := fmt.Sprint(source["component"])
	if source["component"] == nil {
		component = fmt.Sprint(e["reportingComponent"])
	}
	count := "once"
	if n := times(e); repeated[fmt.Sprint(e["reason"])] {
		count = "repeatedly"
	} else if n > 1 {
		count = strconv.FormatInt(n, 10) + " times"
	}
	path, _ := object["fieldPath"].(string)
	return fmt.Sprintf("%v %v, %s by %s: %s%s", e["type"], e["reason"], count, component, prefixed(path), strings.TrimSpace(fmt.Sprint(e["message"])))
}

func prefixed(path string) string {
	if path == "" {
		return ""
	}
	return path + ": "
}

func times(e map[string]any) int64 {
	if series, ok := e["series"].(map[string]any); ok {
		return number(series["count"])
	}
	return number(e["count"])
}

func number(v any) int64 {
	switch v := v.(type) {
	case int64:
		return v
	case float64:
		return int64(v)
	}
	return 0
}

// recorded is when an Event was made, in nanoseconds: its recorder writes that into the name's end
// (k8s.io/client-go/tools/record and tools/events).
func recorded(e map[string]any) int64 {
	meta, _ := e["metadata"].(map[string]any)
	name, _ := meta["name"].(string)
	n, err := strconv.ParseInt(name[strings.LastIndexByte(name, '.')+1:], 16, 64)
	if err != nil {
		return 0
	}
	return n
}
