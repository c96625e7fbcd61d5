/** What the page remembers in the browser. Where storage is blocked (some iframes) it remembers until the page goes. */
const inMemory = new Map<string, string>();

function storage(kind: "session" | "local"): Storage | undefined {
  try {
    return kind === "session" ? window.sessionStorage : window.localStorage;
  } catch {
    return undefined;
  }
}

export function recall(key: string, kind: "session" | "local" = "session"): string | undefined {
  try {
    return storage(kind)?.getItem(`kubistro.${key}`) ?? inMemory.get(key);
  } catch {
    return inMemory.get(key);
  }
}

/** Remembers a value; undefined forgets it. */
export function remember(key: string, value: string | undefined, kind: "session" | "local" = "session"): void {
  if (value === undefined) inMemory.delete(key);
  else inMemory.set(key, value);
  try {
    if (value === undefined) storage(kind)?.removeItem(`kubistro.${key}`);
    else storage(kind)?.setItem(`kubistro.${key}`, value);
  } catch {
    // full or blocked: memory has it
  }
}
