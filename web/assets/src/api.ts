/** Calls of the JSON API. */
import { t } from "./texts.ts";
import type { ErrorBody } from "./types.ts";

/** An answer of the API that isn't good; message is for people. */
export class ApiError extends Error {
  constructor(
    readonly code: string,
    message: string,
    readonly status: number,
  ) {
    super(message);
  }
}

export interface Reply<T> {
  body: T;
  etag: string;
}

async function request(method: string, path: string, body?: BodyInit, headers: Record<string, string> = {}): Promise<Response> {
  let r: Response;
  try {
    r = await fetch(`/api/v1${path}`, { method, body, headers, credentials: "same-origin", cache: "no-store" });
  } catch {
    throw new ApiError("offline", t("error.offline"), 0);
  }
  if (r.ok) return r;
  let e: Partial<ErrorBody> = {};
  try {
    e = (await r.json()) as ErrorBody;
  } catch {
    // not ours: a proxy in between
  }
  throw new ApiError(e.error?.code ?? "internal", e.error?.message ?? t("error.strange", r.status), r.status);
}

export async function get<T>(path: string): Promise<T> {
  return (await request("GET", path)).json() as Promise<T>;
}

/** Sends JSON; answers without a body give undefined. */
export async function send<T>(method: "POST" | "PUT" | "DELETE", path: string, body?: unknown): Promise<T> {
  const r = await request(method, path, body === undefined ? undefined : JSON.stringify(body), body === undefined ? {} : { "Content-Type": "application/json" });
  return (r.status === 204 ? undefined : await r.json()) as T;
}

export async function readText(path: string): Promise<Reply<string>> {
  const r = await request("GET", path);
  return { body: await r.text(), etag: r.headers.get("ETag") ?? "" };
}

/** Writes a file; with an etag only over that version, with "" only when it is new, with null always. */
export async function writeText(path: string, body: string, etag: string | null): Promise<string> {
  const headers: Record<string, string> = { "Content-Type": "text/plain; charset=utf-8" };
  if (etag === "") headers["If-None-Match"] = "*";
  else if (etag !== null) headers["If-Match"] = etag;
  return (await request("PUT", path, body, headers)).headers.get("ETag") ?? "";
}

/** The text of an error for people. */
export function messageOf(e: unknown): string {
  return e instanceof ApiError ? e.message : t("error.script", String(e));
}

/** The path of a file in the API, each part escaped. */
export function filePath(path: string): string {
  return path.split("/").map(encodeURIComponent).join("/");
}
