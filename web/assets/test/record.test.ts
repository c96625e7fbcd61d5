import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { noFilter, RecordModel } from "../src/record-model.ts";
import { actorName, fullSentence, sentence } from "../src/record-text.ts";
import { setLang } from "../src/texts.ts";
import type { Frame } from "../src/types.ts";
import { World } from "../src/world.ts";
import { frame, pod, put, ref, restart } from "./frames.ts";

let world = new World();
let record = new RecordModel();

beforeEach(() => {
  restart();
  world = new World();
  record = new RecordModel();
  setLang("en");
});

function take(f: Frame) {
  return record.add(f, world.apply(f) ?? {});
}

function hire(): void {
  const p = ref("Pod", "grill-5d7c9f8b6-x2k9q");
  take(frame({ type: "audit", actor: "learner", verb: "create", object: ref("Deployment", "grill") }));
  take(frame({ type: "audit", actor: "replicaset-controller", verb: "create", object: p, cause: 1 }));
  take(put(pod(p.name, { status: "Pending", ready: 0, node: undefined }), { verb: "add", actor: "replicaset-controller", cause: 2 }));
  take(frame({ type: "audit", actor: "kube-scheduler", verb: "bind", object: p, cause: 2 }));
  take(put(pod(p.name, { status: "Running", ready: 1 }), { actor: "kubelet/kitchen-1", cause: 4 }));
}

test("both vocabularies, both languages", () => {
  hire();
  const text = (n: number) => [fullSentence(record.get(n)!, "restaurant"), fullSentence(record.get(n)!, "kubernetes")];
  assert.deepEqual(text(1), ["you wrote a new line: whiteboard line grill", "you created Deployment grill"]);
  assert.deepEqual(text(2), ["the team lead hired cook grill-x2k9q", "replicaset-controller created Pod grill-5d7c9f8b6-x2k9q"]);
  assert.equal(sentence(record.get(5)!, "restaurant"), "cook grill-x2k9q is at work, ready 1/1");
  setLang("zh-TW");
  assert.deepEqual(text(2), ["組長請來廚師 grill-x2k9q", "replicaset-controller 建立 Pod grill-5d7c9f8b6-x2k9q"]);
  assert.equal(actorName("kubelet/kitchen-2", "restaurant"), "2 號廚房督導");
  assert.equal(actorName("", "restaurant"), "不明");
  assert.equal(actorName("some-operator", "restaurant"), "some-operator", "an actor without a part in the story keeps its name");
});

test("the chain of causes, oldest first", () => {
  hire();
  assert.deepEqual(record.chain(5).map((r) => r.frame.n), [1, 2, 4, 5]);
});

test("bookkeeping is hidden by default", () => {
  hire();
  take(frame({ type: "audit", actor: "deployment-controller", verb: "update", object: ref("ReplicaSet", "grill-5d7c9f8b6") }));
  take(put(pod("grill-5d7c9f8b6-x2k9q", { status: "Running", ready: 1, labels: { a: "b" } })));
  assert.deepEqual(record.visible(noFilter).map((r) => r.frame.n), [1, 2, 4, 5]);
  assert.equal(record.visible({ ...noFilter, routine: true }).length, 7);
});

test("filters", () => {
  hire();
  take(frame({ type: "event", actor: "kubelet/kitchen-3", verb: "add", reason: "BackOff", message: "Back-off restarting", warning: true, object: ref("Pod", "soup") }));
  const numbers = (f: object) => record.visible({ ...noFilter, ...f }).map((r) => r.frame.n);
  assert.deepEqual(numbers({ actor: "kubelet" }), [5, 6], "all kubelets are one actor");
  assert.deepEqual(numbers({ kind: "Deployment" }), [1]);
  assert.deepEqual(numbers({ warnings: true }), [6]);
  assert.deepEqual(numbers({ text: "SOUP" }), [6]);
});

test("older frames go in front, once, and are understood from each other", () => {
  hire();
  const all = [1, 2, 3, 4, 5].map((n) => record.get(n)!.frame);
  const other = new RecordModel();
  other.add(all[4]!, {});
  assert.equal(other.addOlder(all), 4);
  assert.equal(other.addOlder(all), 0);
  assert.deepEqual(other.rows.map((r) => r.frame.n), [1, 2, 3, 4, 5]);
  assert.equal(other.get(3)!.routine, true);
});

test("a number that comes twice is one row", () => {
  const f = frame({ type: "audit", verb: "create", object: ref("Pod", "a") });
  take(f);
  take(f);
  assert.equal(record.rows.length, 1);
});

test("a name can't become markup or a placeholder", () => {
  take(frame({ type: "audit", actor: "learner", verb: "create", object: ref("Pod", "<b>{0}</b>") }));
  assert.match(sentence(record.get(1)!, "kubernetes"), /<b>\{0\}<\/b>/);
});

/** What a real cluster tells when one of three cooks is sent home; numbers start at 1. */
function replaced(): void {
  const old = (more: object) => pod("grill-6db87b5667-ds4x6", more);
  const fresh = (more: object) => pod("grill-6db87b5667-ncvxz", { node: "kitchen-2", ready: 0, ...more });
  const team = (ready: number) => ({ ref: ref("ReplicaSet", "grill-6db87b5667"), desired: 3, ready, images: ["grill-cook:1.4"] });
  const line = (ready: number) => ({ ref: ref("Deployment", "grill"), desired: 3, ready, images: ["grill-cook:1.4"] });
  world.apply({ n: 0, time: "", type: "snapshot", actor: "", verb: "snapshot", object: { kind: "", name: "" }, cause: null, state: [old({}), team(3), line(3)] });
  take(frame({ type: "audit", actor: "learner", verb: "delete", object: old({}).ref })); // 1
  take(put(old({ status: "Terminating", deleting: true }), { actor: "learner", cause: 1 }));
  take(frame({ type: "event", actor: "kubelet/kitchen-1", verb: "add", reason: "Killing", message: "Stopping container cook", object: old({}).ref, cause: 2 }));
  take(frame({ type: "audit", actor: "replicaset-controller", verb: "create", object: fresh({}).ref, cause: 2 })); // 4
  take(put(fresh({ status: "Pending", node: undefined }), { verb: "add", actor: "replicaset-controller", cause: 4 }));
  take(put(old({ status: "Completed", ready: 0, deleting: true }), { actor: "kubelet/kitchen-1", cause: 2 }));
  take(frame({ type: "audit", actor: "kubelet/kitchen-1", verb: "delete", object: { ...old({}).ref, uid: "" }, cause: 2 })); // entries don't tell uids
  take(frame({ verb: "remove", actor: "kubelet/kitchen-1", object: old({}).ref, cause: 7 })); // 8
  take(frame({ type: "event", actor: "replicaset-controller", verb: "add", reason: "SuccessfulCreate", message: "Created pod: grill-6db87b5667-ncvxz", object: ref("ReplicaSet", "grill-6db87b5667"), cause: 5 }));
  take(put(team(2), { actor: "replicaset-controller", cause: 8 }));
  take(frame({ type: "audit", actor: "kube-scheduler", verb: "bind", object: fresh({}).ref, cause: 5 })); // 11
  take(put(fresh({ status: "Pending" }), { actor: "kube-scheduler", cause: 11 }));
  take(put(fresh({ status: "ContainerCreating" })));
  take(put(line(2), { actor: "deployment-controller", cause: 10 })); // 14
  take(frame({ type: "event", actor: "kubelet/kitchen-2", verb: "add", reason: "Pulled", object: fresh({}).ref, cause: 12 }));
  take(put(fresh({ status: "Running", ready: 1 }), { actor: "kubelet/kitchen-2", cause: 12 })); // 16
  take(put(team(3), { actor: "replicaset-controller", cause: 16 }));
  take(put(line(3), { actor: "deployment-controller", cause: 17 })); // 18
}

test("the relay of a replacement reads as a story, each step with its cause", () => {
  replaced();
  const story = (lang: string) => {
    setLang(lang);
    return record.visible(noFilter).map((r) => {
      const cause = record.because(r);
      return `${r.frame.n} ${actorName(r.frame.actor, "restaurant")} | ${sentence(r, "restaurant", cause)} | ${cause?.frame.n ?? "-"}`;
    });
  };
  assert.deepEqual(story("en"), [
    "1 you | sent cook grill-ds4x6 home | -",
    "4 the team lead | was one short and hired cook grill-ncvxz | 1",
    "8 Kitchen 1's supervisor | cook grill-ds4x6 has packed up and left | 1",
    "11 the dispatcher | sent cook grill-ncvxz to Kitchen 2 | 4",
    "14 the shift manager | whiteboard line grill: ready cooks 3 → 2 | 8",
    "16 Kitchen 2's supervisor | cook grill-ncvxz is at work, ready 1/1 | 11",
    "18 the shift manager | whiteboard line grill: ready cooks 2 → 3 | 16",
  ]);
  assert.deepEqual(story("zh-TW").slice(0, 4), [
    "1 你 | 請廚師 grill-ds4x6 離開 | -",
    "4 組長 | 發現少一位，補上廚師 grill-ncvxz | 1",
    "8 1 號廚房督導 | 廚師 grill-ds4x6 收拾好，離開了 | 1",
    "11 調度員 | 把廚師 grill-ncvxz 派到 2 號廚房 | 4",
  ]);
});

test("after a reload the record tells the same story", () => {
  replaced();
  const before = record.visible(noFilter).map((r) => sentence(r, "restaurant", record.because(r)));
  const frames = record.rows.map((r) => r.frame);
  const other = new RecordModel();
  other.addOlder(frames);
  const after = other.visible(noFilter).map((r) => sentence(r, "restaurant", other.because(r)));
  assert.ok(after.includes("sent cook grill-ncvxz to Kitchen 2"), after.join("; "));
  assert.ok(!after.some((s) => s.startsWith("sent cook grill-ds4x6") && s !== before[0]), after.join("; "));
  assert.equal(after.filter((s) => s.includes("grill-ds4x6 home")).length, 1, "only the learner sent him home");
});

test("a rewritten line is told once, by what changed of it", () => {
  const line = (image: string) => ({ ref: ref("Deployment", "grill"), desired: 3, ready: 3, images: [image] });
  take(put(line("grill-cook:1.4"), { verb: "add" }));
  take(frame({ type: "audit", actor: "learner", verb: "patch", object: ref("Deployment", "grill") }));
  take(put(line("grill-cook:1.5"), { actor: "learner", cause: 2 }));
  take(frame({ type: "audit", actor: "learner", verb: "patch", object: ref("Deployment", "grill") }));
  assert.deepEqual(record.visible(noFilter).map((r) => r.frame.n), [1, 3, 4], "a write that changed nothing to see stays");
  assert.equal(fullSentence(record.get(3)!, "restaurant"), "you: whiteboard line grill: image grill-cook:1.4 → grill-cook:1.5");
});

test("a cook who fell is told from a new one", () => {
  take(put(pod("grill-a", {}), { verb: "add" }));
  take(put(pod("grill-a", { status: "Error", ready: 0 }), { actor: "kubelet/kitchen-1" }));
  take(put(pod("grill-a", { restarts: 1 }), { actor: "kubelet/kitchen-1" }));
  take(put(pod("grill-b", { status: "ErrImagePull", ready: 0 }), { verb: "add" }));
  take(put(pod("grill-b", { status: "ImagePullBackOff", ready: 0 })));
  assert.deepEqual(record.visible(noFilter).map((r) => sentence(r, "restaurant")).slice(1, 3), ["cook grill-a fell (Error)", "cook grill-a fell and was started again on the spot (restart 1)"]);
  assert.equal(record.get(5)!.routine, true, "waiting for the next try is no news");
});

test("what was done from outside, in both vocabularies and languages", () => {
  const act = (verb: string, kind: string, name: string, reason: string) => take(frame({ type: "lab", actor: "learner", verb, object: ref(kind, name), reason, text: { "zh-TW": "", en: "" } }));
  const acts = [act("power", "Node", "kitchen-2", "off"), act("loop", "ControlLoop", "kube-scheduler", "home"), act("clock", "Clock", "", "10"), act("clock", "Clock", "", "1"), act("encryption", "Etcd", "", "on")];
  const text = () => acts.map((r) => [fullSentence(r!, "restaurant"), fullSentence(r!, "kubernetes")]);
  assert.deepEqual(text(), [
    ["you tripped the breaker of Kitchen 2", "you powered node kitchen-2 off"],
    ["you gave the dispatcher a day off", "you stopped kube-scheduler"],
    ["you shortened waiting to 1/10", "you compressed waiting periods to 1/10"],
    ["you set the clock to real time", "you restored the real periods"],
    ["you put a lock on the safe", "you switched encryption at rest on"],
  ]);
  setLang("zh-TW");
  for (const pair of text()) for (const s of pair) assert.ok(!s.includes("{") && !s.includes("outside"), s);
});
