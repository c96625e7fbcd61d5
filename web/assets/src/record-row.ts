/** One row of the record: a frame and what it changed. */
import type { Frame, ObjectState } from "./types.ts";
import type { Change } from "./world.ts";

/** What is known of an object by all its frames, the later ones too. */
export interface About {
  state?: ObjectState;
  /** The frame that state is of. */
  n: number;
}

export interface Row {
  frame: Frame;
  change: Change;
  about: About;
  /** Bookkeeping that is hidden unless asked for. */
  routine: boolean;
}

/** A difference between two states of an object that is worth a sentence. */
export interface Difference {
  what: "status" | "ready" | "restarts" | "node" | "ip" | "desired" | "available" | "images" | "endpoints" | "deleting" | "schedulable";
  from: string;
  to: string;
}

export function differences(a: ObjectState, b: ObjectState): Difference[] {
  const out: Difference[] = [];
  const add = (what: Difference["what"], from: unknown, to: unknown) => {
    if (String(from ?? "") !== String(to ?? "")) out.push({ what, from: String(from ?? ""), to: String(to ?? "") });
  };
  const kind = b.ref.kind;
  if (b.deleting && !a.deleting) add("deleting", "", "true");
  if (kind === "Pod") {
    add("restarts", a.restarts ?? 0, b.restarts ?? 0);
    add("status", a.status, b.status);
    add("ready", `${a.ready ?? 0}/${a.containers ?? 0}`, `${b.ready ?? 0}/${b.containers ?? 0}`);
    add("node", a.node, b.node);
  } else if (kind === "Node") {
    add("status", a.status, b.status);
  } else if (b.desired !== undefined || a.desired !== undefined) {
    add("desired", a.desired ?? 0, b.desired ?? 0);
    add("images", a.images?.join(", "), b.images?.join(", "));
    add("available", a.ready ?? 0, b.ready ?? 0);
  } else if (kind === "EndpointSlice") {
    add("endpoints", readyOf(a), readyOf(b));
  } else if (b.status !== a.status) {
    add("status", a.status, b.status);
  }
  return out;
}

export function readyOf(s: ObjectState): string {
  const all = s.endpoints ?? [];
  return `${all.filter((e) => e.ready).length}/${all.length}`;
}
