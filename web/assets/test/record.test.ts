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
  assert.equal(sentence(record.get(5)!, "restaurant"), "cook grill-x2k9q: Pending → Running, ready 0/1 → 1/1, goes to Kitchen 1");
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
  take(frame({ type: "event", actor: "kubelet/kitchen-3", reason: "BackOff", message: "Back-off restarting", warning: true, object: ref("Pod", "soup") }));
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
