/** The cluster's state: a chip in the header, and a curtain over the floor while there is no kitchen to see. */
import { clockTime, duration, serverNow } from "./clock.ts";
import { find, h, icon, say } from "./dom.ts";
import type { Lab } from "./lab.ts";
import { inLang, t } from "./texts.ts";
import type { Session } from "./types.ts";

/** The stages of a start, by driver; one that wakes a kind cluster only has some of them. */
function knownStages(s: Session | null): string[] {
  if (s?.driver !== "kind") return ["etcd", "apiserver", "controllers", "scheduler", "kitchens", "ready"];
  if (s.status.why === "wake" || s.status.why === "restart") return ["nodes", "ready"];
  return ["image", "nodes", "config", "controlplane", "cni", "storage", "kitchens", "pantry", "ready"];
}

export class ClusterChip {
  private readonly text = h("span.chip-text");
  private readonly summary = h("summary.chip", {}, h("i.chip-dot"), this.text);
  private readonly menu = h("div.popover.chip-menu");
  private readonly details = h("details.menu-button", {}, this.summary, this.menu);
  private timer = 0;
  private shape = "";

  constructor(
    root: HTMLElement,
    private readonly lab: Lab,
  ) {
    root.append(this.details);
    this.details.addEventListener("keydown", (e) => {
      if (e.key === "Escape") {
        this.details.open = false;
        this.summary.focus();
      }
    });
    document.addEventListener("pointerdown", (e) => {
      if (!this.details.contains(e.target as Node)) this.details.open = false;
    });
    lab.on("session", () => this.draw());
    lab.on("connection", () => this.draw());
    this.draw();
  }

  private draw(): void {
    const s = this.lab.session;
    const offline = this.lab.connection === "lost" && s !== null;
    this.details.dataset.state = offline ? "offline" : (s?.state ?? "opening");
    say(this.text, offline ? t("chip.offline") : s ? chipText(s) : t("chip.opening"));
    const shape = `${s?.state}/${s?.status.stages?.map((x) => x.done).join()}`;
    if (shape !== this.shape) {
      this.shape = shape;
      this.fill(s);
    }
    clearTimeout(this.timer);
    if (s?.state === "provisioning") this.timer = window.setTimeout(() => this.draw(), 250);
  }

  private fill(s: Session | null): void {
    if (!s) return;
    this.menu.replaceChildren(
      h("p.small", {}, t(`state.${s.state}.long`)),
      h("dl.facts", {}, h("div", {}, h("dt", {}, t("chip.driver")), h("dd", {}, s.driver)), h("div", {}, h("dt", {}, t("chip.since")), h("dd", {}, clockTime(s.status.since)))),
      stageList(s),
      h("p.chip-actions", {}, ...this.actions(s)),
    );
  }

  private actions(s: Session): (HTMLElement | false)[] {
    return [
      s.state === "ready" && h("a.button.small-button", { href: `/api/v1${this.lab.path("/kubeconfig")}`, download: "kubistro.kubeconfig" }, icon("download"), t("chip.kubeconfig")),
      s.state === "failed" && h("button.button.primary.small-button", { type: "button", onclick: () => void this.lab.retry() }, t("session.retry")),
      s.state !== "ended" && resetMenu(this.lab),
    ];
  }
}

/** Reset of the whole cluster, with a confirmation. */
function resetMenu(lab: Lab): HTMLElement {
  return h(
    "details.inline-confirm",
    {},
    h("summary.button.quiet.small-button", {}, icon("reset"), t("session.reset")),
    h("p.small", {}, t("session.reset.warning")),
    h("button.button.danger.small-button", { type: "button", onclick: () => void lab.operate("/reset") }, t("session.reset.confirm")),
  );
}

function chipText(s: Session): string {
  if (s.state === "queued" && s.status.queue) return t("chip.queued", s.status.queue);
  if (s.state !== "provisioning") return t(`state.${s.state}`);
  const why = s.status.why ? t(`why.${s.status.why}`) : t("state.provisioning");
  return `${why} ${duration(serverNow() - Date.parse(s.status.since))}`;
}

/** The stages of a start: those that are done with their times, the running one, and those to come. */
function stageList(session: Session | null): HTMLElement {
  const stages = session?.status.stages ?? [];
  const names = [...new Set([...stages.map((x) => x.name), ...knownStages(session)])];
  return h(
    "ol.stages",
    {},
    ...names.map((name) => {
      const s = stages.find((x) => x.name === name);
      const state = !s ? "later" : s.done ? "done" : "now";
      return h("li.stage", { "data-state": state, "data-name": name }, h("i.stage-mark"), h("span", {}, t(`stage.${name}`)), h("span.stage-time.figures", { "data-started": s && !s.done ? s.started : undefined }, s?.done ? duration(s.millis) : ""));
    }),
  );
}

/** Covers the floor while the cluster isn't ready and says what happens. */
export class Curtain {
  private readonly box = h("div.curtain", { role: "status", hidden: true });
  private shape = "";
  private timer = 0;
  private seenReady = false;

  constructor(
    root: HTMLElement,
    private readonly lab: Lab,
  ) {
    root.append(this.box);
    lab.on("session", () => this.draw());
    lab.on("problem", (m) => this.problem(m));
    this.draw();
  }

  private problem(message: string): void {
    if (this.lab.session?.state === "ready") return;
    this.shape = "problem";
    this.box.hidden = false;
    this.box.dataset.state = "failed";
    this.box.replaceChildren(
      h("div.curtain-card", {}, icon("warn"), h("h2", {}, t("curtain.problem")), h("p", {}, message), h("button.button.primary", { type: "button", onclick: () => location.reload() }, t("session.retry"))),
    );
  }

  private draw(): void {
    const s = this.lab.session;
    const state = s?.state ?? "opening";
    if (state === "ready") {
      this.box.hidden = true;
      this.shape = "";
      this.seenReady = true;
      return;
    }
    const shape = `${state}/${s?.status.why}/${s?.status.queue}/${s?.status.stages?.map((x) => x.name + x.done).join()}`;
    if (shape !== this.shape) {
      this.shape = shape;
      this.box.hidden = false;
      this.box.dataset.state = state;
      this.box.replaceChildren(this.card(s));
    }
    this.tick();
  }

  private tick(): void {
    clearTimeout(this.timer);
    const running = find<HTMLElement>("[data-started]", this.box);
    if (!running) return;
    say(running, duration(serverNow() - Date.parse(running.dataset.started ?? "")));
    this.timer = window.setTimeout(() => this.tick(), 200);
  }

  private card(s: Session | null): HTMLElement {
    const state = s?.state ?? "opening";
    const why = s?.status.why ?? "create";
    const title = state === "provisioning" ? t(`curtain.${why}`) : t(`curtain.${state}`);
    const children: (HTMLElement | SVGSVGElement | false)[] = [icon(state === "failed" ? "warn" : state === "asleep" ? "moon" : "cloche"), h("h2", {}, title)];
    if (state === "failed") children.push(h("p", {}, inLang(s?.status.problem) || t("curtain.failed.unknown")), h("button.button.primary", { type: "button", onclick: () => void this.lab.retry() }, icon("reset"), t("session.retry")));
    else if (state === "asleep") children.push(h("p", {}, t("curtain.asleep.text")), h("button.button.primary", { type: "button", onclick: () => void this.lab.wake() }, t("session.wake")));
    else if (state === "ended") children.push(h("p", {}, t("curtain.ended.text")), h("button.button.primary", { type: "button", onclick: () => location.reload() }, t("session.again")));
    else if (state === "queued") children.push(h("p", {}, t("curtain.queued.text", s?.status.queue ?? 1)));
    else {
      children.push(h("p", {}, t(this.seenReady || why !== "create" ? "curtain.text.again" : "curtain.text")));
      children.push(stageList(s));
    }
    return h("div.curtain-card", {}, ...children);
  }
}

/** Warns before an idle cluster is put to sleep, and tells the server that somebody is reading. */
export class IdleWatch {
  private readonly bar = h("div.idle-bar", { role: "alert", hidden: true });
  private lastSign = Date.now();
  private lastTouch = 0;
  private readonly text = h("span");

  constructor(
    root: HTMLElement,
    private readonly lab: Lab,
  ) {
    this.bar.append(
      icon("moon"),
      this.text,
      h("button.button.primary.small-button", { type: "button", onclick: () => this.here() }, t("idle.here")),
    );
    root.append(this.bar);
    for (const name of ["pointerdown", "pointermove", "keydown", "wheel", "scroll"]) document.addEventListener(name, () => (this.lastSign = Date.now()), { passive: true, capture: true });
    setInterval(() => this.look(), 1000);
  }

  private here(): void {
    this.bar.hidden = true;
    this.lastTouch = Date.now();
    void this.lab.touch();
  }

  private look(): void {
    const now = Date.now();
    const present = document.visibilityState === "visible" && now - this.lastSign < 60_000;
    const at = this.lab.session?.status.sleepsAt;
    const left = at && this.lab.state === "ready" ? Date.parse(at) - serverNow() : Infinity;
    const warn = left < 120_000;
    // A sign of life takes a warning back at once; else one now and then is enough.
    const often = warn && now - this.lastSign < 5_000 ? 5_000 : 45_000;
    if (present && this.lab.state === "ready" && now - this.lastTouch > often) {
      this.lastTouch = now;
      void this.lab.touch();
    }
    if (warn) say(this.text, t("idle.warning", Math.max(0, Math.ceil(left / 1000))));
    this.bar.hidden = !warn;
  }
}
