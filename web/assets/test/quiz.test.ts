import assert from "node:assert/strict";
import test from "node:test";
import { judge, type Key } from "../src/quiz-judge.ts";

const why = { "zh-TW": "", en: "" };

function key(kind: string, options: Partial<Key["options"][number]>[], is = false): Key {
  return { course: "c", level: "1", id: "q", kind, topic: "", is, why: { "zh-TW": "", en: "none" }, options: options.map((o) => ({ id: "", right: false, why, ...o })) };
}

test("one and several: all right ones and no other", () => {
  const q = key("several", [{ id: "a", right: true }, { id: "b", right: true }, { id: "c" }]);
  assert.equal(judge(q, ["b", "a"]).correct, true);
  assert.equal(judge(q, ["a"]).correct, false);
  assert.equal(judge(q, ["a", "b", "c"]).correct, false);
});

test("order: the author's", () => {
  const q = key("order", [{ id: "a", right: true }, { id: "b", right: true }]);
  assert.equal(judge(q, ["a", "b"]).correct, true);
  assert.equal(judge(q, ["b", "a"]).correct, false);
});

test("match: two options may have the same pair", () => {
  const q = key("match", [
    { id: "a", right: true, pair: "a" },
    { id: "b", right: true, pair: "a" },
    { id: "c", right: true, pair: "c" },
  ]);
  assert.equal(judge(q, ["a=a", "b=a", "c=c"]).correct, true);
  const v = judge(q, ["a=a", "b=c", "c=c"]);
  assert.equal(v.correct, false);
  assert.deepEqual(
    v.options.map((o) => o.right),
    [true, false, true],
  );
});

test("truth: the verdict and the reason", () => {
  const q = key("truth", [{ id: "a", right: true }, { id: "b" }], true);
  assert.equal(judge(q, ["true", "a"]).correct, true);
  assert.equal(judge(q, ["false", "a"]).correct, false);
  assert.equal(judge(q, ["true", "b"]).correct, false);
  assert.equal(judge(q, ["true", "b"]).truth, true);
});

test("type: what people type", () => {
  const q = key("type", [{ id: "term", right: true, accept: ["SIGTERM", "15"] }, { id: "kill", accept: ["SIGKILL"], why: { "zh-TW": "", en: "last" } }]);
  for (const a of [" sigterm ", "`SIGTERM`", "「ＳＩＧＴＥＲＭ」", "15.0", "１５"]) assert.equal(judge(q, [a]).correct, true, a);
  for (const a of ["SIG TERM", "0x0f", "", "15 s", "Infinity"]) assert.equal(judge(q, [a]).correct, false, a);
  assert.equal(judge(q, ["SIGKILL"]).why?.en, "last");
  assert.equal(judge(q, ["SIGHUP"]).why?.en, "none");
});
