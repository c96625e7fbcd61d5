import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import en from "../../ui/texts/en.json" with { type: "json" };
import zhTW from "../../ui/texts/zh-TW.json" with { type: "json" };
import { lang, setLang, t } from "../src/texts.ts";

test("texts and their placeholders", () => {
  setLang("en-GB");
  assert.equal(lang(), "en");
  assert.equal(t("level.of", 1, 7), "Level 1 of 7");
  assert.equal(t("no.such.key"), "no.such.key");
  setLang("zh-TW");
  assert.equal(t("level.of", 1, 7), "第 1 關，共 7 關");
});

test("every key that the scripts name exists in both languages", () => {
  const dir = path.join(process.cwd(), "src");
  const missing: string[] = [];
  for (const file of readdirSync(dir).filter((n) => n.endsWith(".ts"))) {
    const source = readFileSync(path.join(dir, file), "utf8");
    for (const m of source.matchAll(/\bt\("([^"]+)"/g)) {
      const key = m[1] ?? "";
      if (!(key in en) || !(key in zhTW)) missing.push(`${file}: ${key}`);
    }
  }
  assert.deepEqual(missing, []);
});
