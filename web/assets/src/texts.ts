/** The interface's texts: the same tables that the server draws pages with. */
import en from "../../ui/texts/en.json" with { type: "json" };
import zhTW from "../../ui/texts/zh-TW.json" with { type: "json" };
import type { Text } from "./types.ts";

export type Lang = "zh-TW" | "en";

const tables: Record<Lang, Record<string, string>> = { "zh-TW": zhTW, en };
let current: Lang = "zh-TW";

/** Sets the language of t and inLang; called once with the page's language. */
export function setLang(lang: string): void {
  current = lang.toLowerCase().startsWith("en") ? "en" : "zh-TW";
}

export function lang(): Lang {
  return current;
}

/** The text of a key with {0}, {1} ... replaced; the key itself when there is none. */
export function t(key: string, ...args: (string | number)[]): string {
  const text = tables[current][key] ?? key;
  if (args.length === 0) return text;
  const filled = text.replace(/\{(\d+)\}/g, (whole, i: string) => String(args[Number(i)] ?? whole));
  return current === "zh-TW" ? spaced(filled) : filled;
}

/** Puts a space between Chinese characters and Latin letters or figures that came in. */
function spaced(text: string): string {
  return text.replace(/([\p{Script=Han}])([A-Za-z0-9])/gu, "$1 $2").replace(/([A-Za-z0-9])([\p{Script=Han}])/gu, "$1 $2");
}

/** Whether there is a text for a key. */
export function has(key: string): boolean {
  return key in tables[current];
}

/** A text of the server in the page's language. */
export function inLang(text: Text | undefined): string {
  return text?.[current] ?? "";
}
