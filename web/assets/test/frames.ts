/** Frames for tests, made the way the server makes them. */
import type { Frame, ObjectState, Ref } from "../src/types.ts";

let n = 0;

export function restart(): void {
  n = 0;
}

export function ref(kind: string, name: string, uid = `${kind}-${name}`): Ref {
  return { kind, namespace: kind === "Node" ? "" : "default", name, uid };
}

export function frame(f: Partial<Frame>): Frame {
  n++;
  return { n, time: "2026-03-06T12:03:00Z", type: "object", actor: "", verb: "update", object: { kind: "", name: "" }, cause: null, ...f };
}

export function put(state: ObjectState, f: Partial<Frame> = {}): Frame {
  return frame({ object: state.ref, state, ...f });
}

export function pod(name: string, more: Partial<ObjectState> = {}): ObjectState {
  return { ref: ref("Pod", name), status: "Running", ready: 1, containers: 1, node: "kitchen-1", ...more };
}
