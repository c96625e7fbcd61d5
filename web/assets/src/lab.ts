/** The page's one view of the learner's session; controllers listen to it. */
import { get, messageOf, send } from "./api.ts";
import { syncClock } from "./clock.ts";
import { toast } from "./dom.ts";
import { Emitter } from "./emitter.ts";
import { RecordModel } from "./record-model.ts";
import type { Row } from "./record-row.ts";
import { type Connection, EventStream } from "./stream.ts";
import { inLang, t } from "./texts.ts";
import type { EditRequest, ExerciseState, Frame, Operation, Session, State } from "./types.ts";
import { type Change, World } from "./world.ts";

type Events = {
  session: Session;
  /** The world has changed; many frames make one. */
  world: World;
  rows: Row[];
  snapshot: undefined;
  frame: { frame: Frame; change: Change };
  exercises: ExerciseState[];
  connection: Connection;
  edit: EditRequest;
  problem: string;
};

export class Lab extends Emitter<Events> {
  readonly world = new World();
  readonly record = new RecordModel();
  session: Session | null = null;
  connection: Connection = "connecting";
  stream: EventStream | null = null;
  exercises = new Map<string, ExerciseState>();
  private fresh: Row[] = [];
  private dirty = false;
  private asking = false;
  private askAgain = false;
  private readonly editsSeen = new Set<string>();

  constructor(
    readonly course: string,
    readonly level: string,
  ) {
    super();
  }

  get state(): State | undefined {
    return this.session?.state;
  }

  path(rest = ""): string {
    return `/sessions/${this.session?.id ?? ""}${rest}`;
  }

  /** Opens the learner's session of the course, the running one or a new one. */
  async open(): Promise<void> {
    try {
      this.take(await send<Session>("POST", "/sessions", { course: this.course }));
    } catch (e) {
      this.emit("problem", messageOf(e));
      return;
    }
    this.follow();
    if (this.state === "asleep") await this.wake();
    await this.refreshExercises();
    await this.refreshEdits();
  }

  async wake(): Promise<void> {
    await this.act(() => send("POST", this.path("/wake")));
  }

  async retry(): Promise<void> {
    await this.act(() => send("POST", this.path("/retry")));
  }

  /** Tells the server that somebody is here, and learns until when the cluster stays awake. */
  async touch(): Promise<void> {
    if (!this.session) return;
    await this.act(() => send("POST", this.path("/touch")), true);
    const s = await this.act(() => get<Session>(this.path("")), true);
    if (s) this.take(s);
  }

  /** Runs a piece of work to its end; false when it failed (the learner has been told). */
  async operate(path: string, body?: unknown): Promise<boolean> {
    try {
      let op = await send<Operation>("POST", this.path(path), body);
      while (!op.done) {
        await new Promise((r) => setTimeout(r, 300));
        op = await get<Operation>(this.path(`/operations/${op.id}`));
      }
      await this.refreshExercises();
      if (op.problem) {
        toast(inLang(op.problem), "bad");
        return false;
      }
      return true;
    } catch (e) {
      toast(messageOf(e), "bad");
      return false;
    }
  }

  /** Does something and tells the learner when it fails. */
  async act<T>(f: () => Promise<T>, quiet = false): Promise<T | undefined> {
    try {
      return await f();
    } catch (e) {
      if (!quiet) toast(messageOf(e), "bad");
      return undefined;
    }
  }

  /** Asks for the exercises' states; calls while one is under way become one more. */
  async refreshExercises(): Promise<void> {
    if (!this.session) return;
    if (this.asking) {
      this.askAgain = true;
      return;
    }
    this.asking = true;
    try {
      const r = await get<{ exercises: ExerciseState[] }>(this.path(`/exercises?level=${encodeURIComponent(this.level)}`));
      this.takeExercises(r.exercises);
    } catch {
      // The next frame asks again.
    }
    this.asking = false;
    if (this.askAgain) {
      this.askAgain = false;
      setTimeout(() => void this.refreshExercises(), 150);
    }
  }

  takeExercises(list: ExerciseState[]): void {
    for (const e of list) this.exercises.set(e.exercise, e);
    this.emit("exercises", list);
  }

  async refreshEdits(): Promise<void> {
    const r = await this.act(() => get<{ edits: EditRequest[] }>(this.path("/edits")), true);
    for (const e of r?.edits ?? []) {
      if (this.editsSeen.has(e.id)) continue;
      this.editsSeen.add(e.id);
      this.emit("edit", e);
    }
  }

  private follow(): void {
    if (!this.session || this.stream) return;
    const s = new EventStream(this.session.id);
    this.stream = s;
    s.on("session", (m) => {
      syncClock(m.now);
      this.take(m.session);
    });
    s.on("frame", (f) => this.takeFrame(f));
    s.on("error", (e) => this.emit("problem", e.error.message));
    s.on("connection", (c) => {
      this.connection = c;
      this.emit("connection", c);
      if (c === "open") void this.refreshExercises();
    });
    window.addEventListener("online", () => s.retryNow());
    s.connect();
  }

  private take(s: Session): void {
    const before = this.session?.state;
    this.session = s;
    this.emit("session", s);
    if (s.state === "ready" && before !== "ready") {
      if (before !== undefined) toast(t("session.ready.toast"), "good");
      void this.refreshExercises();
    }
  }

  private takeFrame(f: Frame): void {
    const change = this.world.apply(f);
    if (f.type === "snapshot") this.emit("snapshot", undefined);
    const row = this.record.add(f, change ?? {});
    if (row) this.fresh.push(row);
    this.emit("frame", { frame: f, change: change ?? {} });
    if (f.type === "lab") {
      if (f.verb === "edit") void this.refreshEdits();
      else void this.refreshExercises();
    }
    if (this.dirty) return;
    this.dirty = true;
    // A hidden tab gets no animation frames.
    const flush = () => {
      if (!this.dirty) return;
      this.dirty = false;
      const rows = this.fresh;
      this.fresh = [];
      this.emit("world", this.world);
      this.emit("rows", rows);
    };
    requestAnimationFrame(flush);
    setTimeout(flush, 250);
  }
}
