/** Which rows of the record are bookkeeping: true, but told better by another row. */
import { differences, type Row } from "./record-row.ts";
import type { Frame } from "./types.ts";
import { moodOf } from "./world.ts";

/** Reports that repeat a write or an object's change. */
const repeats = new Set(["Scheduled", "SuccessfulCreate", "SuccessfulDelete", "ScalingReplicaSet", "Pulling", "Pulled", "Created", "Started"]);

/** Whether a row is hidden unless asked for. Cause is the row that led to it, if it is known. */
export function isRoutine(row: Row, cause: Row | undefined, audited: boolean): boolean {
  const f = row.frame;
  switch (f.type) {
    case "audit":
      return routineWrite(row);
    case "lab":
      return !f.text;
    case "event":
      return routineEvent(row, audited);
    case "object":
      return routineChange(row, cause?.frame);
  }
  return false;
}

function routineWrite({ frame: f, about }: Row): boolean {
  if (f.actor === "learner" || f.actor === "lab") return false;
  // The change that follows says more than the write itself.
  if (f.verb === "update" || f.verb === "patch") return true;
  // A supervisor takes the name off the list when the cook has packed up.
  return f.verb === "delete" && f.object.kind === "Pod" && f.actor.startsWith("kubelet") && Boolean(about.state?.deleting);
}

function routineEvent({ frame: f, about }: Row, audited: boolean): boolean {
  if (f.verb === "update") return true; // once more the same
  if (f.warning) return /^Error: (ErrImagePull|ImagePullBackOff)/.test(f.message ?? "");
  if (f.reason === "Killing") return Boolean(about.state?.deleting);
  // A supervisor who begins his shift reports one by one what the kitchen's state says at a glance.
  if (f.object.kind === "Node") return /^(Starting|RegisteredNode|NodeReady|NodeHas.*|NodeAllocatableEnforced|.*ConfigAdded|Synced)$/.test(f.reason ?? "");
  return audited && repeats.has(f.reason ?? "");
}

function routineChange({ frame: f, change: c }: Row, cause: Frame | undefined): boolean {
  const told = cause?.type === "audit" && cause.object.kind === f.object.kind && cause.object.name === f.object.name;
  if (f.verb === "add") return told;
  if (f.verb === "remove") return told && f.object.kind !== "Pod";
  if (!c.after) return true;
  if (!c.before) return false;
  const d = differences(c.before, c.after);
  if (f.object.kind === "ReplicaSet") return !d.some((x) => x.what === "desired" || x.what === "images");
  if (f.object.kind !== "Pod") return d.length === 0;
  if (c.after.deleting && (c.before.deleting || told)) return true;
  const before = moodOf(c.before);
  const after = moodOf(c.after);
  if (d.some((x) => x.what === "restarts")) return false;
  // On the way to work, and in between two tries to get the training.
  return d.length === 0 || after === "starting" || after === "waiting" || (after === "image" && before === "image");
}
