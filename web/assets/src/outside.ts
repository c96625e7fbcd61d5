/** What can be done to the cluster from outside of it: kitchens, control loops, clock. Keeps what is so now. */
import { get, send } from "./api.ts";
import { Emitter } from "./emitter.ts";
import type { Lab } from "./lab.ts";
import type { Clock, ControlLoop, Frame, KitchenState } from "./types.ts";

export type Panel = "kitchens" | "loops" | "clock" | "etcd";

type Events = { kitchens: KitchenState[]; loops: ControlLoop[]; clock: Clock; encryption: undefined };

/** Acts of the lab after which everything may be otherwise. */
const everything = new Set(["reset", "setup", "shape", "tidy", "catch-up", "state"]);

export class Outside extends Emitter<Events> {
  kitchens: KitchenState[] = [];
  loops: ControlLoop[] = [];
  clock: Clock | null = null;
  readonly panels: Set<Panel>;
  private readonly waiting = new Set<"kitchens" | "loops" | "clock">();
  private timer = 0;

  constructor(
    readonly lab: Lab,
    panels: string,
  ) {
    super();
    this.panels = new Set(panels.split(" ").filter(Boolean) as Panel[]);
    let was: string | undefined;
    lab.on("session", (s) => {
      if (s.state === "ready" && was !== "ready") this.ask("kitchens", "loops", "clock");
      was = s.state;
    });
    lab.on("frame", ({ frame }) => this.heard(frame));
  }

  /** Whether the driver can do something. */
  can(capability: string): boolean {
    return this.lab.session?.capabilities.includes(capability) ?? false;
  }

  kitchen(name: string): KitchenState | undefined {
    return this.kitchens.find((k) => k.name === name);
  }

  async setKitchen(name: string, change: { power?: boolean; cable?: boolean }): Promise<boolean> {
    return this.takeKitchens(() => send("PUT", this.lab.path(`/kitchens/${encodeURIComponent(name)}`), change));
  }

  async closeKitchen(name: string): Promise<boolean> {
    return this.takeKitchens(() => send("DELETE", this.lab.path(`/kitchens/${encodeURIComponent(name)}`)));
  }

  async openKitchen(kitchen: object): Promise<boolean> {
    return this.takeKitchens(() => send("POST", this.lab.path("/kitchens"), kitchen));
  }

  async setLoop(name: string, home: boolean): Promise<boolean> {
    const r = await this.lab.act(() => send<{ loops: ControlLoop[] }>("PUT", this.lab.path("/loops"), { name, home }));
    if (r) this.emit("loops", (this.loops = r.loops));
    return r !== undefined;
  }

  async setClock(speed: number): Promise<boolean> {
    const c = await this.lab.act(() => send<Clock>("PUT", this.lab.path("/clock"), { speed }));
    if (c) this.emit("clock", (this.clock = c));
    return c !== undefined;
  }

  private async takeKitchens(f: () => Promise<{ kitchens: KitchenState[] }>): Promise<boolean> {
    const r = await this.lab.act(f);
    if (r) this.emit("kitchens", (this.kitchens = r.kitchens));
    return r !== undefined;
  }

  private heard(f: Frame): void {
    if (f.type !== "lab") return;
    if (f.verb === "power" || f.verb === "cable" || f.verb === "kitchen") this.ask("kitchens", "loops");
    else if (f.verb === "loop") this.ask("loops");
    else if (f.verb === "clock") this.ask("clock");
    else if (f.verb === "encryption") this.emit("encryption", undefined);
    else if (everything.has(f.verb)) this.ask("kitchens", "loops", "clock");
  }

  /** Asks the server soon, once for many reasons; never a cluster that sleeps. */
  private ask(...what: ("kitchens" | "loops" | "clock")[]): void {
    for (const w of what) this.waiting.add(w);
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => void this.fetch(), 150);
  }

  private async fetch(): Promise<void> {
    if (this.lab.state !== "ready") return;
    const what = new Set(this.waiting);
    this.waiting.clear();
    const look = async <T>(path: string, capability: string, take: (v: T) => void) => {
      if (!this.can(capability)) return;
      const v = await this.lab.act(() => get<T>(this.lab.path(path)), true);
      if (v) take(v);
    };
    if (what.has("kitchens")) await look<{ kitchens: KitchenState[] }>("/kitchens", "kitchen-power", (v) => this.emit("kitchens", (this.kitchens = v.kitchens)));
    if (what.has("loops") && this.panels.has("loops")) await look<{ loops: ControlLoop[] }>("/loops", "control-loops", (v) => this.emit("loops", (this.loops = v.loops)));
    if (what.has("clock")) await look<Clock>("/clock", "clock", (v) => this.emit("clock", (this.clock = v)));
  }
}
