import assert from "node:assert/strict";
import { test } from "node:test";
import { period } from "../src/cluster-clock.ts";
import { dump } from "../src/hex.ts";
import { setLang } from "../src/texts.ts";

test("bytes as hexadecimal and text", () => {
  const lines = dump(new TextEncoder().encode("k8s\0grandmother's sauce"));
  assert.deepEqual(lines, [
    { at: "0000", hex: "6b 38 73 00 67 72 61 6e  64 6d 6f 74 68 65 72 27", text: "k8s·grandmother'" },
    { at: "0010", hex: "73 20 73 61 75 63 65                            ".slice(0, 48), text: "s sauce" },
  ]);
  assert.equal(dump(new Uint8Array(5000)).length, 256, "no more than 4096 bytes");
});

test("periods as people say them", () => {
  setLang("en");
  assert.deepEqual([500, 1000, 90_000, 150_000, 300_000].map(period), ["500 ms", "1 s", "90 s", "2 min 30 s", "5 min"]);
});
