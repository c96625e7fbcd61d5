/** What a row of the record says, in the restaurant's words and in those of Kubernetes. */
import { has, inLang, t } from "./texts.ts";
import { differences, readyOf, type Difference, type Row } from "./record-row.ts";
import type { Frame, ObjectState, Ref } from "./types.ts";
import { lastPart, moodOf, shortImage } from "./world.ts";

export type Vocabulary = "restaurant" | "kubernetes";

/** The name of an actor. */
export function actorName(actor: string, v: Vocabulary): string {
  if (actor === "") return t("actor.unknown");
  if (v === "kubernetes") return actor === "learner" || actor === "lab" ? t(`actor.${actor}`) : actor;
  if (actor.startsWith("kubelet")) {
    const node = actor.split("/")[1];
    return node ? t("actor.kubelet.of", nodeName(node, v)) : t("actor.kubelet");
  }
  return has(`actor.${actor}`) ? t(`actor.${actor}`) : actor;
}

/** The word for a kind of object. */
export function kindName(kind: string, v: Vocabulary): string {
  return v === "restaurant" && has(`kind.${kind}`) ? t(`kind.${kind}`) : kind;
}

/** A node's name: kitchen-2 is kitchen 2 in the restaurant. */
export function nodeName(name: string, v: Vocabulary): string {
  if (v === "kubernetes") return name;
  if (name === "office") return t("floor.office");
  const m = /^kitchen-(.+)$/.exec(name);
  return m ? t("floor.kitchen", m[1] ?? "") : name;
}

/** An object by kind and name; teams are told apart by their training. */
export function objectName(r: Ref, v: Vocabulary, state?: ObjectState): string {
  if (v === "kubernetes") return `${r.kind} ${r.namespace && r.namespace !== "default" ? `${r.namespace}/` : ""}${r.name}`;
  if (r.kind === "Node") return nodeName(r.name, v);
  const name = r.kind === "Pod" ? shortPod(r.name) : r.kind === "EndpointSlice" || r.kind === "ReplicaSet" ? r.name.replace(/-[a-z0-9]{5,10}$/, "") : r.name;
  const named = t("object.named", kindName(r.kind, v), name);
  const tag = r.kind === "ReplicaSet" ? /:([^:/]+)$/.exec(state?.images?.[0] ?? "")?.[1] : undefined;
  return tag ? t("object.version", named, tag) : named;
}

/** A Pod's name without its ReplicaSet's hash. */
function shortPod(name: string): string {
  return name.replace(/-[a-z0-9]{6,10}-([a-z0-9]{5})$/, "-$1");
}

/** The sentence of a row with who did it in front. */
export function fullSentence(row: Row, v: Vocabulary, cause?: Row): string {
  const s = sentence(row, v, cause);
  const f = row.frame;
  if (f.type === "lab" && f.actor === "learner") return t(v === "restaurant" ? "rec.full" : "rec.full.k8s", actorName(f.actor, v), s);
  if (f.type === "object" && (f.actor === "learner" || f.actor === "lab")) return t("rec.full.object", actorName(f.actor, v), s);
  return row.frame.type === "audit" ? t(v === "restaurant" ? "rec.full" : "rec.full.k8s", actorName(row.frame.actor, v), s) : s;
}

/** The sentence of a row, without who did it. The cause, if it is known, tells why a cook was hired. */
export function sentence(row: Row, v: Vocabulary, cause?: Row): string {
  const f = row.frame;
  switch (f.type) {
    case "lab":
      if (has(outsideKey(f, v))) return t(outsideKey(f, v), f.object?.kind === "Node" ? nodeName(f.object.name, v) : actorName(f.object?.name ?? "", v), f.reason ?? "");
      return inLang(f.text) || f.message || (has(`rec.lab.${f.verb}`) ? t(`rec.lab.${f.verb}`) : t("rec.lab", f.verb));
    case "event":
      return v === "restaurant" && has(`reason.${f.reason}`)
        ? t(`reason.${f.reason}`, objectName(f.object, v), lastPart(f.object.name))
        : `${f.reason ?? ""} · ${objectName(f.object, v)}${f.message ? `: ${f.message}` : ""}`;
    case "audit":
      return auditSentence(row, v, cause);
  }
  return changeSentence(row, v);
}

/** The text for something that was done to the cluster from outside; its own where the reason is a figure. */
function outsideKey(f: Frame, v: Vocabulary): string {
  const reason = f.verb === "clock" && f.reason !== "1" ? "fast" : (f.reason ?? "");
  return `${v === "restaurant" ? "rest" : "k8s"}.outside.${f.verb}.${reason}`;
}

function auditSentence(row: Row, v: Vocabulary, cause?: Row): string {
  const f = row.frame;
  const name = objectName(f.object, v, row.about.state);
  const prefix = v === "restaurant" ? "rest" : "k8s";
  if (f.verb === "bind" && row.about.state?.node) return t(`${prefix}.bind.to`, name, nodeName(row.about.state.node, v));
  if (v === "restaurant" && f.actor === "replicaset-controller" && f.object.kind === "Pod") {
    if (f.verb === "create" && cause && cause.frame.object.kind === "Pod") return t("rest.refill", name);
    if (f.verb === "delete") return t("rest.toomany", name);
  }
  const special = `${prefix}.${f.verb}.${f.object.kind}`;
  const key = has(special) ? special : has(`${prefix}.${f.verb}`) ? `${prefix}.${f.verb}` : "k8s.other";
  const sub = v === "kubernetes" && f.reason ? `/${f.reason}` : "";
  return t(key, name + sub, f.verb);
}

function changeSentence(row: Row, v: Vocabulary): string {
  const { frame, change } = row;
  const name = objectName(frame.object, v, change.after ?? row.about.state);
  if (frame.verb === "add") return t(v === "restaurant" ? "change.add.rest" : "change.add.k8s", name);
  if (frame.verb === "remove") {
    const key = `change.remove.${frame.object.kind}`;
    return v === "restaurant" && has(key) ? t(key, name) : t("change.remove", name);
  }
  const told = v === "restaurant" && frame.object.kind === "Pod" && podSentence(name, change.before, change.after);
  if (told) return told;
  const d = change.before && change.after ? differences(change.before, change.after) : [];
  if (d.length === 0) {
    const s = change.after;
    if (s?.status) return t("change.is", name, s.status);
    return t("change.update", name);
  }
  return t("change.line", name, d.map((x) => difference(x, v)).join(t("list.comma")));
}

/** What a cook went through, where the story has a word for it. */
function podSentence(name: string, a: ObjectState | undefined, b: ObjectState | undefined): string {
  if (!a || !b || b.deleting) return "";
  const ready = `${b.ready ?? 0}/${b.containers ?? 0}`;
  if ((b.restarts ?? 0) > (a.restarts ?? 0)) return t("pod.restarted", name, b.restarts ?? 0);
  const was = moodOf(a);
  const is = moodOf(b);
  if (was === is) return "";
  switch (is) {
    case "ready":
      return was === "unready" ? t("pod.ready", name, ready) : t("pod.started", name, ready);
    case "unready":
      return was === "ready" ? t("pod.unready", name, ready) : t("pod.started.unready", name, ready);
    case "crash":
      return t(b.status === "CrashLoopBackOff" ? "pod.waits" : "pod.fell", name, b.status ?? "");
    case "image":
      return t("pod.image", name, b.status ?? "");
  }
  return "";
}

function difference(d: Difference, v: Vocabulary): string {
  switch (d.what) {
    case "node":
      return t("diff.node", nodeName(d.to, v));
    case "images":
      return t("diff.images", shortImage(d.from), shortImage(d.to));
    case "status":
      return d.from ? t("diff.status", d.from, d.to) : t("diff.status.first", d.to);
    case "deleting":
      return t(`diff.deleting.${v === "restaurant" ? "rest" : "k8s"}`);
  }
  const key = `diff.${d.what}.${v === "restaurant" ? "rest" : "k8s"}`;
  return t(has(key) ? key : `diff.${d.what}`, d.from, d.to);
}

/** Lines of a row's details. */
export function details(row: Row, cause?: Row): [string, string][] {
  const f = row.frame;
  const out: [string, string][] = [
    [t("detail.restaurant"), fullSentence(row, "restaurant", cause)],
    [t("detail.kubernetes"), fullSentence(row, "kubernetes", cause)],
    [t("detail.actor"), `${actorName(f.actor, "restaurant")} = ${f.actor || t("actor.unknown")}`],
  ];
  if (f.object?.kind) out.push([t("detail.object"), `${objectName(f.object, "restaurant")} = ${objectName(f.object, "kubernetes")}`]);
  if (f.reason) out.push([t("detail.reason"), f.reason]);
  if (f.message) out.push([t("detail.message"), f.message]);
  const s = row.change.after;
  if (s?.ref.kind === "EndpointSlice") out.push([t("detail.endpoints"), readyOf(s)]);
  out.push([t("detail.number"), `#${f.n}`]);
  return out;
}
