/** The cluster's clock: a chip that is always in sight, and the list of periods with their real figures. */
import { h, icon, say } from "./dom.ts";
import type { Outside } from "./outside.ts";
import { has, t } from "./texts.ts";
import type { Clock, Figure } from "./types.ts";

const speeds = [1, 5, 10, 30, 60];

/** 300000 is 5 min. */
export function period(millis: number): string {
  const s = Math.round(millis / 1000);
  if (millis < 1000) return t("period.millis", millis);
  if (s < 60 || s % 60 !== 0) return s > 120 ? t("period.both", Math.floor(s / 60), s % 60) : t("period.seconds", s);
  return t("period.minutes", s / 60);
}

/** The periods that are compressed, each with the real figure beside it. */
export function figures(c: Clock): HTMLElement {
  return h(
    "table.figures-table",
    {},
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, t("clock.period")), h("th", { scope: "col" }, t("clock.here")), h("th", { scope: "col" }, t("clock.real")))),
    h("tbody", {}, ...c.figures.map((f) => h("tr", { "data-same": f.nowMillis === f.realMillis }, h("th", { scope: "row" }, figureName(f), " ", h("code", {}, f.name)), h("td.figures", {}, period(f.nowMillis)), h("td.figures", {}, period(f.realMillis))))),
  );
}

function figureName(f: Figure): string {
  return has(`figure.${f.name}`) ? t(`figure.${f.name}`) : f.component;
}

export class ClockChip {
  private readonly text = h("span.clock-text");
  private readonly short = h("span.clock-short");
  private readonly summary = h("summary.chip.clock-chip", {}, icon("clock"), this.text, this.short);
  private readonly menu = h("div.popover.clock-menu");
  private readonly details = h("details.menu-button", { hidden: true }, this.summary, this.menu);

  constructor(
    root: HTMLElement,
    outside: Outside,
    /** Shows the panel that changes the clock; undefined where the level has none. */
    private readonly change: (() => void) | undefined,
  ) {
    root.append(this.details);
    this.details.addEventListener("keydown", (e) => {
      if (e.key !== "Escape") return;
      this.details.open = false;
      this.summary.focus();
    });
    document.addEventListener("pointerdown", (e) => {
      if (!this.details.contains(e.target as Node)) this.details.open = false;
    });
    outside.on("clock", (c) => this.draw(c));
  }

  private draw(c: Clock): void {
    const fast = c.speed > 1;
    this.details.hidden = !fast && !this.change;
    this.details.dataset.fast = String(fast);
    const f = c.figures.find((x) => x.name === "default-unreachable-toleration-seconds") ?? c.figures[0];
    say(this.text, fast && f ? t("clock.chip", period(f.nowMillis), period(f.realMillis)) : t("clock.realtime"));
    say(this.short, fast ? t("clock.speed.short", c.speed) : "");
    this.summary.setAttribute("aria-label", fast ? `${this.text.textContent}. ${t("clock.fast", c.speed)}` : t("clock.realtime.long"));
    this.menu.replaceChildren(
      h("p.small", {}, fast ? t("clock.fast", c.speed) : t("clock.realtime.long")),
      fast ? h("div.clock-scroll", { tabindex: "0", role: "region", "aria-label": t("clock.period") }, figures({ ...c, figures: c.figures.filter((x) => x.nowMillis !== x.realMillis) })) : "",
      this.change
        ? h(
            "button.button.small-button",
            {
              type: "button",
              onclick: () => {
                this.details.open = false;
                this.change?.();
              },
            },
            t("clock.change"),
          )
        : "",
    );
  }
}

/** Sets the clock and lists every period. */
export class ClockPanel {
  private readonly buttons = h("div.segments", { role: "group", "aria-label": t("clock.speed") });
  private readonly note = h("p.small.muted");
  private readonly table = h("div.figures-place");

  constructor(
    root: HTMLElement,
    private readonly outside: Outside,
  ) {
    root.append(h("p.panel-lead", {}, t("clock.lead")), h("p.panel-row", {}, this.buttons, this.note), this.table);
    outside.on("clock", (c) => this.draw(c));
  }

  private draw(c: Clock): void {
    const list = speeds.includes(c.speed) ? speeds : [...speeds, c.speed].sort((a, b) => a - b);
    const focused = this.buttons.contains(document.activeElement);
    this.buttons.replaceChildren(
      ...list.map((n) => h("button.segment", { type: "button", "data-speed": n, "aria-pressed": String(n === c.speed), onclick: () => void this.outside.setClock(n) }, n === 1 ? t("clock.realtime") : `${n}×`)),
    );
    if (focused) this.buttons.querySelector<HTMLElement>(`[data-speed="${c.speed}"]`)?.focus();
    say(this.note, c.speed === 1 ? t("clock.realtime.long") : t("clock.fast", c.speed));
    this.table.replaceChildren(figures(c));
  }
}
