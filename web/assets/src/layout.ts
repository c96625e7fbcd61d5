/** The lab's layout: splitters, tabs, the views of a narrow screen, and the reader's place in the lesson. */
import { all, find } from "./dom.ts";
import { recall, remember } from "./remember.ts";

/** A bar between two parts that the pointer or the arrow keys move. The size is a CSS variable of the lab. */
export class Splitter {
  private readonly vertical: boolean;
  private readonly variable: string;
  private readonly min: number;
  private readonly max: number;

  constructor(
    private readonly root: HTMLElement,
    private readonly lab: HTMLElement,
  ) {
    this.vertical = root.getAttribute("aria-orientation") === "vertical";
    this.variable = `--split-${root.dataset.split ?? ""}`;
    this.min = Number(root.getAttribute("aria-valuemin"));
    this.max = Number(root.getAttribute("aria-valuemax"));
    const kept = Number(recall(this.variable, "local"));
    if (kept) this.set(kept);
    root.addEventListener("pointerdown", (e) => this.drag(e));
    root.addEventListener("keydown", (e) => this.key(e));
    root.addEventListener("dblclick", () => this.set(this.vertical ? 42 : 46));
  }

  private set(percent: number): void {
    const p = Math.round(Math.min(this.max, Math.max(this.min, percent)) * 10) / 10;
    this.lab.style.setProperty(this.variable, `${p}%`);
    this.root.setAttribute("aria-valuenow", String(Math.round(p)));
    remember(this.variable, String(p), "local");
  }

  private drag(e: PointerEvent): void {
    e.preventDefault();
    this.root.setPointerCapture(e.pointerId);
    this.root.classList.add("dragging");
    const box = (this.vertical ? this.lab : this.root.parentElement ?? this.lab).getBoundingClientRect();
    const move = (m: PointerEvent) => this.set(this.vertical ? ((m.clientX - box.left) / box.width) * 100 : ((m.clientY - box.top) / box.height) * 100);
    const up = () => {
      this.root.removeEventListener("pointermove", move);
      this.root.classList.remove("dragging");
    };
    this.root.addEventListener("pointermove", move);
    this.root.addEventListener("pointerup", up, { once: true });
    this.root.addEventListener("pointercancel", up, { once: true });
  }

  private key(e: KeyboardEvent): void {
    const now = Number(this.root.getAttribute("aria-valuenow"));
    const less = this.vertical ? "ArrowLeft" : "ArrowUp";
    const more = this.vertical ? "ArrowRight" : "ArrowDown";
    const to: Record<string, number> = { [less]: now - 2, [more]: now + 2, Home: this.min, End: this.max };
    const v = to[e.key];
    if (v === undefined) return;
    e.preventDefault();
    this.set(v);
  }
}

export type Tool = "terminal" | "files" | "record" | "controls";

/** The tabs below the floor. */
export class Tools {
  constructor(
    private readonly root: HTMLElement,
    private readonly onShow: (tool: Tool, focus: boolean) => void,
  ) {
    const list = find(".tablist", root);
    list?.addEventListener("click", (e) => {
      const tab = (e.target as Element).closest<HTMLElement>("[data-tool]");
      if (tab) this.show(tab.dataset.tool as Tool);
    });
    list?.addEventListener("keydown", (e) => this.key(e));
  }

  show(tool: Tool, focus = false): void {
    for (const tab of all(".tab", this.root)) {
      const on = tab.dataset.tool === tool;
      tab.setAttribute("aria-selected", String(on));
      tab.tabIndex = on ? 0 : -1;
      const panel = document.getElementById(tab.getAttribute("aria-controls") ?? "");
      if (panel) panel.hidden = !on;
    }
    remember("tool", tool);
    this.onShow(tool, focus);
  }

  private key(e: KeyboardEvent): void {
    const tabs = all(".tab", this.root);
    const i = tabs.findIndex((x) => x.getAttribute("aria-selected") === "true");
    const d: Record<string, number> = { ArrowRight: 1, ArrowLeft: -1 };
    const step = d[e.key];
    const next = e.key === "Home" ? tabs[0] : e.key === "End" ? tabs.at(-1) : step ? tabs[(i + step + tabs.length) % tabs.length] : undefined;
    if (!next) return;
    e.preventDefault();
    this.show(next.dataset.tool as Tool);
    next.focus();
  }
}

/** On a narrow screen one part of the lab is in sight at a time. */
export class Views {
  constructor(
    private readonly root: HTMLElement,
    private readonly lab: HTMLElement,
    private readonly tools: Tools,
  ) {
    for (const b of all<HTMLButtonElement>("[data-view]", root)) b.addEventListener("click", () => this.show(b.dataset.view ?? "lesson"));
    const kept = recall("view");
    if (kept && find(`[data-view="${CSS.escape(kept)}"]`, root)) this.show(kept);
  }

  show(view: string): void {
    this.lab.dataset.view = view === "lesson" || view === "floor" ? view : "tools";
    for (const b of all("[data-view]", this.root)) b.setAttribute("aria-pressed", String(b.dataset.view === view));
    remember("view", view);
    if (view === "terminal" || view === "files" || view === "record" || view === "controls") this.tools.show(view);
  }
}

/** Keeps the reader's place: the topmost block in sight, which has the same name in both languages. */
export class Place {
  private timer = 0;

  constructor(
    private readonly scroller: HTMLElement,
    private readonly key: string,
  ) {
    const kept = recall(key);
    if (kept && !location.hash) this.restore(kept);
    scroller.addEventListener("scroll", () => {
      clearTimeout(this.timer);
      this.timer = window.setTimeout(() => this.keep(), 150);
    }, { passive: true });
  }

  /** Remembers the block and how far its top is above the edge. */
  keep(): void {
    const top = this.scroller.getBoundingClientRect().top;
    const blocks = all("[data-place]", this.scroller).filter((e) => e.classList.contains("block"));
    const first = blocks.find((e) => e.getBoundingClientRect().bottom > top + 8);
    if (!first) return;
    const box = first.getBoundingClientRect();
    const part = box.height > 0 ? (top - box.top) / box.height : 0;
    remember(this.key, this.scroller.scrollTop < 8 ? undefined : `${part.toFixed(3)} ${first.dataset.place ?? ""}`);
  }

  private restore(kept: string): void {
    const [part = "0", place = ""] = kept.split(" ");
    const e = find(`[data-place="${CSS.escape(place)}"].block`, this.scroller);
    if (!e) return;
    const go = () => {
      const top = this.scroller.getBoundingClientRect().top;
      const box = e.getBoundingClientRect();
      this.scroller.scrollTop += box.top - top + Number(part) * box.height;
    };
    go();
    // Once more when fonts and live values have settled.
    document.fonts?.ready.then(go).catch(() => undefined);
  }
}
