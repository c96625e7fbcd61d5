import assert from "node:assert/strict";
import { test } from "node:test";
import { liveValue } from "../src/live.ts";
import { lastPart, moodOf, shortImage, World } from "../src/world.ts";
import { frame, pod, put, ref } from "./frames.ts";

test("a snapshot replaces everything that was known", () => {
  const w = new World();
  w.apply(put(pod("old")));
  w.apply(frame({ type: "snapshot", verb: "snapshot", state: [pod("new")] }));
  assert.deepEqual(w.all("Pod").map((p) => p.ref.name), ["new"]);
});

test("a removed predecessor of the same name doesn't take its successor along", () => {
  const w = new World();
  w.apply(put({ ...pod("solo"), ref: ref("Pod", "solo", "u1") }));
  w.apply(put({ ...pod("solo"), ref: ref("Pod", "solo", "u2") }));
  w.apply(frame({ verb: "remove", object: ref("Pod", "solo", "u1") }));
  assert.equal(w.all("Pod").length, 1);
  w.apply(frame({ verb: "remove", object: ref("Pod", "solo", "u2") }));
  assert.equal(w.all("Pod").length, 0);
});

test("numbers in names count as numbers", () => {
  const w = new World();
  for (const n of ["kitchen-10", "kitchen-2", "kitchen-1"]) w.apply(put({ ref: ref("Node", n) }));
  assert.deepEqual(w.all("Node").map((x) => x.ref.name), ["kitchen-1", "kitchen-2", "kitchen-10"]);
});

test("a Deployment's Pods are found through its ReplicaSets, by uid", () => {
  const w = new World();
  const d = ref("Deployment", "grill");
  const rs = { ref: ref("ReplicaSet", "grill-1"), owner: d };
  w.apply(put({ ref: d }));
  w.apply(put(rs));
  w.apply(put(pod("grill-1-aaaaa", { owner: rs.ref })));
  w.apply(put(pod("stranger", { owner: { ...rs.ref, uid: "another" } })));
  assert.deepEqual(w.podsOf(d).map((p) => p.ref.name), ["grill-1-aaaaa"]);
});

for (const [mood, state] of [
  ["ready", {}],
  ["unready", { ready: 0 }],
  ["starting", { status: "ContainerCreating", ready: 0 }],
  ["starting", { status: "Init:0/1", ready: 0 }],
  ["waiting", { status: "Pending", ready: 0, node: undefined }],
  ["starting", { status: "Pending", ready: 0 }],
  ["crash", { status: "CrashLoopBackOff", ready: 0 }],
  ["crash", { status: "Error", ready: 0 }],
  ["crash", { status: "OOMKilled", ready: 0 }],
  ["crash", { status: "Init:Error", ready: 0 }],
  ["image", { status: "ErrImagePull", ready: 0 }],
  ["image", { status: "Init:ImagePullBackOff", ready: 0 }],
  ["done", { status: "Completed", ready: 0 }],
  ["leaving", { status: "Terminating" }],
  ["leaving", { status: "Running", deleting: true }],
  ["failed", { status: "Evicted", ready: 0 }],
] as const) {
  test(`a cook with ${JSON.stringify(state)} is ${mood}`, () => assert.equal(moodOf(pod("p", state)), mood));
}

test("short names", () => {
  assert.equal(lastPart("grill-5d7c9f8b6-x2k9q"), "x2k9q");
  assert.equal(lastPart("solo"), "solo");
  assert.equal(shortImage("docker.io/library/nginx:1.27"), "nginx:1.27");
  assert.equal(shortImage("traefik/whoami"), "traefik/whoami");
});

test("live values", () => {
  const w = new World();
  const d = ref("Deployment", "grill");
  const rs = { ref: ref("ReplicaSet", "grill-1"), owner: d };
  w.apply(put({ ref: d }));
  w.apply(put(rs));
  const q = { want: "name", pick: "newest", kind: "Pod", owner: "deployment/grill", labels: "" };
  assert.equal(liveValue(w, q), undefined);
  const labels = { station: "grill" };
  w.apply(put(pod("grill-1-aaaaa", { owner: rs.ref, created: "2026-01-01T00:00:01Z", ip: "10.0.0.1", labels })));
  w.apply(put(pod("grill-1-bbbbb", { owner: rs.ref, created: "2026-01-01T00:00:02Z", ip: "10.0.0.2", labels })));
  w.apply(put(pod("other", { created: "2026-01-01T00:00:03Z" })));
  assert.equal(liveValue(w, q), "grill-1-bbbbb");
  assert.equal(liveValue(w, { ...q, pick: "oldest", want: "ip" }), "10.0.0.1");
  assert.equal(liveValue(w, { ...q, owner: "", labels: "station=grill", want: "count", pick: "" }), "2");
  w.apply(put(pod("grill-1-bbbbb", { owner: rs.ref, created: "2026-01-01T00:00:02Z", deleting: true, labels })));
  assert.equal(liveValue(w, q), "grill-1-aaaaa", "who is leaving isn't the newest");
});
