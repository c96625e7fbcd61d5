/** The tab from which the restaurant itself is run: days off, the clock, a look into etcd. */
import { ClockPanel } from "./cluster-clock.ts";
import { h } from "./dom.ts";
import { EtcdPanel } from "./etcd.ts";
import { LoopsPanel } from "./loops.ts";
import type { Outside, Panel } from "./outside.ts";
import { recall, remember } from "./remember.ts";
import { t } from "./texts.ts";

type Part = Exclude<Panel, "kitchens">;

export class Controls {
  private readonly parts: Part[];
  private readonly places = new Map<Part, HTMLElement>();
  private readonly bar = h("div.segments", { role: "group", "aria-label": t("controls.label") });
  private etcd: EtcdPanel | undefined;

  constructor(
    root: HTMLElement,
    outside: Outside,
  ) {
    this.parts = (["loops", "clock", "etcd"] as const).filter((p) => outside.panels.has(p));
    for (const p of this.parts) {
      const place = h("section.controls-part", { "data-part": p, hidden: true, "aria-label": t(`controls.${p}`) });
      this.places.set(p, place);
      if (p === "loops") new LoopsPanel(place, outside);
      else if (p === "clock") new ClockPanel(place, outside);
      else this.etcd = new EtcdPanel(place, outside);
    }
    this.bar.append(...this.parts.map((p) => h("button.segment", { type: "button", "data-part": p, onclick: () => this.show(p) }, t(`controls.${p}`))));
    root.append(h("div.controls-bar", {}, this.bar), h("div.controls-body", {}, ...this.places.values()));
    const kept = recall("controls") as Part;
    this.show(this.parts.includes(kept) ? kept : (this.parts[0] ?? "loops"));
  }

  show(part: Part): void {
    remember("controls", part);
    for (const [p, place] of this.places) place.hidden = p !== part;
    for (const b of this.bar.querySelectorAll<HTMLElement>(".segment")) b.setAttribute("aria-pressed", String(b.dataset.part === part));
    this.shown();
  }

  /** The tab has come into sight. */
  shown(): void {
    void this.etcd?.shown();
  }
}
