/** Values of the live cluster that stand in a lesson's text and commands. */
import type { ObjectState } from "./types.ts";
import type { World } from "./world.ts";

export interface LiveQuery {
  want: string; // name, ip, node, status, restarts, count
  pick: string; // newest, oldest
  kind: string;
  owner: string; // deployment/grill
  labels: string; // station=grill
}

const kinds: Record<string, string> = {
  deployment: "Deployment",
  replicaset: "ReplicaSet",
  statefulset: "StatefulSet",
  daemonset: "DaemonSet",
  job: "Job",
};

/** The value, or undefined while the cluster has no such object. */
export function liveValue(w: World, q: LiveQuery): string | undefined {
  const found = candidates(w, q);
  if (q.want === "count") return String(found.length);
  // Cooks on their way out are nobody's newest while others are there.
  const staying = found.filter((o) => !o.deleting);
  const pool = staying.length ? staying : found;
  pool.sort((a, b) => (a.created ?? "").localeCompare(b.created ?? "") || a.ref.name.localeCompare(b.ref.name));
  const o = q.pick === "oldest" ? pool[0] : pool.at(-1);
  if (!o) return undefined;
  switch (q.want) {
    case "name":
      return o.ref.name;
    case "ip":
      return (o.ref.kind === "Service" ? o.clusterIP : o.ip) || undefined;
    case "node":
      return o.node || undefined;
    case "status":
      return o.status || undefined;
    case "restarts":
      return String(o.restarts ?? 0);
  }
  return undefined;
}

function candidates(w: World, q: LiveQuery): ObjectState[] {
  let list = w.all(q.kind).filter((o) => (o.ref.namespace ?? "default") === "default");
  if (q.owner) {
    const [kind = "", name = ""] = q.owner.split("/");
    const ref = { kind: kinds[kind.toLowerCase()] ?? kind, namespace: "default", name };
    const owner = w.get(ref)?.ref ?? ref;
    const owned = q.kind === "Pod" ? w.podsOf(owner) : w.ownedBy(owner, q.kind);
    const names = new Set(owned.map((o) => o.ref.name));
    list = list.filter((o) => names.has(o.ref.name));
  }
  if (q.labels) {
    const want = q.labels.split(",").map((l) => l.split("="));
    list = list.filter((o) => want.every(([k = "", v = ""]) => o.labels?.[k] === v));
  }
  return list;
}
