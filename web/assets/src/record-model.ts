/** The record: every frame that the page has, in order, with what the frame changed. */
import { isRoutine } from "./record-routine.ts";
import type { About, Row } from "./record-row.ts";
import type { Frame, Ref } from "./types.ts";
import { type Change, World } from "./world.ts";

export interface Filter {
  actor: string; // "" for everybody
  kind: string; // "" for all
  warnings: boolean; // only warnings
  routine: boolean; // bookkeeping too
  text: string;
}

export const noFilter: Filter = { actor: "", kind: "", warnings: false, routine: false, text: "" };

/** The newest rows that a page keeps; older ones are asked for again when somebody scrolls back. */
const most = 20_000;

export class RecordModel {
  rows: Row[] = [];
  private readonly byNumber = new Map<number, Row>();
  private readonly abouts = new Map<string, About>();
  /** Whether writes are told: then what only repeats them is bookkeeping. */
  private audited = false;
  private said: string | undefined;

  /** Adds the newest frame. */
  add(frame: Frame, change: Change): Row | undefined {
    if (frame.type === "snapshot" || this.byNumber.has(frame.n)) return undefined;
    const row = { frame, change, about: this.about(frame, change), routine: false };
    this.byNumber.set(frame.n, row);
    this.judge(row);
    const last = this.rows.at(-1);
    if (last && last.frame.n > frame.n) {
      this.rows.push(row);
      this.rows.sort((a, b) => a.frame.n - b.frame.n);
    } else this.rows.push(row);
    if (this.rows.length > most) for (const r of this.rows.splice(0, this.rows.length - most)) this.byNumber.delete(r.frame.n);
    return row;
  }

  /** Adds older frames, oldest first, as they come from the API; what they changed is seen from each other. */
  addOlder(frames: Frame[]): number {
    const world = new World();
    const fresh: Row[] = [];
    for (const frame of frames) {
      const change = world.apply(frame) ?? {};
      if (frame.type === "snapshot" || this.byNumber.has(frame.n)) continue;
      const row = { frame, change, about: this.about(frame, change), routine: false };
      this.byNumber.set(frame.n, row);
      fresh.push(row);
    }
    this.rows = [...fresh, ...this.rows].sort((a, b) => a.frame.n - b.frame.n);
    for (const row of fresh) this.judge(row);
    return fresh.length;
  }

  private about(f: Frame, c: Change): About {
    const key = `${f.object?.kind}/${f.object?.namespace ?? ""}/${f.object?.name}`;
    let a = this.abouts.get(key);
    if (!a) this.abouts.set(key, (a = { n: -1 }));
    if (f.n > a.n && (c.after ?? c.before)) {
      a.state = c.after ?? c.before;
      a.n = f.n;
    }
    return a;
  }

  private judge(row: Row): void {
    this.audited ||= row.frame.type === "audit";
    row.routine = isRoutine(row, this.causeOf(row), this.audited);
    // A rewritten object says more by what has changed of it than by the write.
    const write = this.causeOf(row);
    const said = row.frame.type === "lab" ? row.frame.text?.en : undefined;
    if (said && said === this.said) row.routine = true; // each stage of a start says so again
    if (row.frame.type === "lab" && row.frame.verb === "state") this.said = said;
    if (write && !row.routine && isRewrite(write.frame) && sameRef(write.frame.object, row.frame.object)) write.routine = true;
  }

  private causeOf(row: Row): Row | undefined {
    return row.frame.cause === null || row.frame.cause === undefined ? undefined : this.byNumber.get(row.frame.cause);
  }

  /** What led to a row, past bookkeeping. */
  because(row: Row): Row | undefined {
    let r = this.causeOf(row);
    for (let i = 0; r?.routine && i < 50; i++) r = this.causeOf(r);
    return r?.routine ? undefined : r;
  }

  get(n: number): Row | undefined {
    return this.byNumber.get(n);
  }

  /** The number of the oldest row. */
  oldest(): number {
    return this.rows[0]?.frame.n ?? 0;
  }

  /** A row, what led to it, what led to that ..., oldest first. */
  chain(n: number): Row[] {
    const out: Row[] = [];
    for (let row = this.byNumber.get(n); row && out.length < 50; row = row.frame.cause === null ? undefined : this.byNumber.get(row.frame.cause)) out.unshift(row);
    return out;
  }

  visible(f: Filter): Row[] {
    const text = f.text.trim().toLowerCase();
    return this.rows.filter(
      (r) =>
        (f.routine || !r.routine) &&
        (!f.warnings || isWarning(r)) &&
        (f.actor === "" || actorGroup(r.frame.actor) === f.actor) &&
        (f.kind === "" || r.frame.object?.kind === f.kind) &&
        (text === "" || haystack(r).includes(text)),
    );
  }

  actors(): string[] {
    return [...new Set(this.rows.map((r) => actorGroup(r.frame.actor)))].filter((a) => a !== "").sort();
  }

  kinds(): string[] {
    return [...new Set(this.rows.map((r) => r.frame.object?.kind ?? ""))].filter((k) => k !== "").sort();
  }
}

function isRewrite(f: Frame): boolean {
  return f.type === "audit" && (f.verb === "update" || f.verb === "patch");
}

function sameRef(a: Ref, b: Ref): boolean {
  return a.kind === b.kind && a.name === b.name && (a.namespace ?? "") === (b.namespace ?? "");
}

/** Kubelets of all kitchens are one kind of actor in filters. */
export function actorGroup(actor: string): string {
  return actor.startsWith("kubelet/") ? "kubelet" : actor;
}

export function isWarning(r: Row): boolean {
  if (r.frame.warning) return true;
  const s = r.frame.type === "object" ? r.change.after?.status ?? "" : "";
  return /Err|BackOff|OOM|NotReady|Failed|Evicted/.test(s);
}

function haystack(r: Row): string {
  const f = r.frame;
  return [f.n, f.actor, f.verb, f.object?.kind, f.object?.name, f.reason, f.message, f.text?.["zh-TW"], f.text?.en].join(" ").toLowerCase();
}
