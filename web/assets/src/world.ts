/** The present state of a cluster, folded from the frames of its event stream. */
import type { Endpoint, Frame, ObjectState, Ref } from "./types.ts";

export function keyOf(r: Ref): string {
  return `${r.kind}/${r.namespace ?? ""}/${r.name}`;
}

/** What a frame did to an object. */
export interface Change {
  before?: ObjectState;
  after?: ObjectState;
}

/** How a cook is doing, from the Pod's STATUS and READY columns. */
export type Mood = "ready" | "unready" | "starting" | "waiting" | "crash" | "image" | "leaving" | "done" | "failed";

export function moodOf(p: ObjectState): Mood {
  const s = p.status ?? "";
  if (p.deleting || s === "Terminating") return "leaving";
  if (/ImagePull|ErrImage|InvalidImageName|ErrImageNeverPull/.test(s)) return "image";
  if (/CrashLoopBackOff|OOMKilled|^(Init:)?Error|ContainerError|ContainerConfigError|ContainerCannotRun|Signal:|ExitCode:/.test(s)) return "crash";
  if (/^(Completed|Succeeded)$/.test(s)) return "done";
  if (/^(Failed|Evicted|Unknown|NodeLost|DeadlineExceeded|UnexpectedAdmissionError|OutOf)/.test(s)) return "failed";
  if (s === "Pending" && !p.node) return "waiting";
  if (s === "Running") return (p.ready ?? 0) >= (p.containers ?? 1) ? "ready" : "unready";
  return "starting";
}

export class World {
  private readonly objects = new Map<string, ObjectState>();

  /** Takes a frame in; undefined when it says nothing about an object's state. */
  apply(f: Frame): Change | undefined {
    if (f.type === "snapshot") {
      this.objects.clear();
      for (const s of (f.state as ObjectState[] | null) ?? []) this.objects.set(keyOf(s.ref), s);
      return {};
    }
    if (f.type !== "object") return undefined;
    const key = keyOf(f.object);
    const before = this.objects.get(key);
    if (f.verb === "remove") {
      // A successor of the same name may be there already.
      if (before && f.object.uid && before.ref.uid && before.ref.uid !== f.object.uid) return { before };
      this.objects.delete(key);
      return { before };
    }
    const after = f.state as ObjectState | undefined;
    if (!after) return undefined;
    this.objects.set(key, after);
    return before && before.ref.uid !== after.ref.uid ? { after } : { before, after };
  }

  get(r: Ref): ObjectState | undefined {
    return this.objects.get(keyOf(r));
  }

  /** All objects of a kind, by name, numbers in names counting as numbers. */
  all(kind: string): ObjectState[] {
    const out = [...this.objects.values()].filter((o) => o.ref.kind === kind);
    return out.sort((a, b) => byName(a.ref, b.ref));
  }

  ownedBy(owner: Ref, kind: string): ObjectState[] {
    return this.all(kind).filter((o) => o.owner !== undefined && sameObject(o.owner, owner) && (o.ref.namespace ?? "") === (owner.namespace ?? ""));
  }

  /** The Pods of an owner, directly or through a ReplicaSet. */
  podsOf(owner: Ref): ObjectState[] {
    const direct = this.ownedBy(owner, "Pod");
    if (owner.kind !== "Deployment") return direct;
    return [...direct, ...this.ownedBy(owner, "ReplicaSet").flatMap((r) => this.ownedBy(r.ref, "Pod"))];
  }

  /** A Service's addresses, of all its EndpointSlices. */
  endpointsOf(service: ObjectState): Endpoint[] {
    return this.all("EndpointSlice")
      .filter((s) => s.service === service.ref.name && s.ref.namespace === service.ref.namespace)
      .flatMap((s) => s.endpoints ?? []);
  }
}

function sameObject(a: Ref, b: Ref): boolean {
  if (a.uid && b.uid) return a.uid === b.uid;
  return a.kind === b.kind && a.name === b.name;
}

const collator = new Intl.Collator("en", { numeric: true });

function byName(a: Ref, b: Ref): number {
  return collator.compare(a.namespace ?? "", b.namespace ?? "") || collator.compare(a.name, b.name);
}

/** The last part of a Pod's name, which tells it from its colleagues. */
export function lastPart(name: string): string {
  const parts = name.split("-");
  const last = parts.at(-1) ?? name;
  return parts.length >= 2 && /^[a-z0-9]{4,6}$/.test(last) ? last : name;
}

/** An image without registry and library parts. */
export function shortImage(image: string): string {
  return image.replace(/^(docker\.io\/)?(library\/)?/, "").replace(/@sha256:([0-9a-f]{7})[0-9a-f]*$/, "@$1");
}
