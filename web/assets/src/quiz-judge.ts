/** Judges answers in the page, as the server does, so that quizzes go on without a network. */
import type { Text, Verdict } from "./types.ts";

/** A question with all that judges it. */
export interface Key {
  course: string;
  level: string;
  id: string;
  kind: string;
  topic: string;
  options: KeyOption[];
  is: boolean;
  why: Text;
}

export interface KeyOption {
  id: string;
  right: boolean;
  why: Text;
  pair?: string;
  accept?: string[];
}

/** The server's verdict on an answer in the form of the question's kind. */
export function judge(q: Key, answer: string[]): Verdict {
  const v: Verdict = { question: q.id, answer, correct: right(q, answer), attempts: 1, options: [] };
  if (q.kind === "type") {
    v.why = typed(q, answer)?.why ?? q.why;
    return v;
  }
  if (q.kind === "truth") v.truth = q.is;
  v.options = q.options.map((o) => ({ id: o.id, why: o.why, right: q.kind === "match" ? answer.some((a) => a.startsWith(`${o.id}=`) && pairs(q, a)) : o.right }));
  return v;
}

function right(q: Key, answer: string[]): boolean {
  switch (q.kind) {
    case "order":
      return q.options.length === answer.length && q.options.every((o, i) => o.id === answer[i]);
    case "match":
      return answer.length === q.options.length && answer.every((a) => pairs(q, a));
    case "truth":
      return answer[0] === String(q.is) && Boolean(option(q, answer[1])?.right);
    case "type":
      return Boolean(typed(q, answer)?.right);
  }
  const chosen = new Set(answer);
  return q.options.every((o) => o.right === chosen.has(o.id));
}

function option(q: Key, id: string | undefined): KeyOption | undefined {
  return q.options.find((o) => o.id === id);
}

/** Judges one ID=ID: two options may have the same pair. */
function pairs(q: Key, answer: string): boolean {
  const [a, b] = answer.split("=");
  const pair = option(q, a)?.pair;
  return pair !== undefined && pair === option(q, b)?.pair;
}

function typed(q: Key, answer: string[]): KeyOption | undefined {
  return q.options.find((o) => o.accept?.some((a) => same(a, answer[0] ?? "")));
}

/** Spaces around, capitals, wide characters and quotation marks don't matter; numbers are compared as numbers. */
function same(a: string, b: string): boolean {
  const x = plain(a);
  const y = plain(b);
  return x === y || (isNumber(x) && isNumber(y) && Number(x) === Number(y));
}

function isNumber(text: string): boolean {
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/.test(text);
}

function plain(text: string): string {
  const narrow = text.replace(/[\uFF01-\uFF5E]/g, (c) => String.fromCharCode(c.charCodeAt(0) - 0xfee0)).replace(/\u3000/g, " ");
  return narrow
    .toLowerCase()
    .trim()
    .replace(/^[`'"「」]+|[`'"「」]+$/g, "")
    .trim()
    .replace(/\s+/g, " ");
}
