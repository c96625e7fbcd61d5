/** The record's tab: a list of every event that draws only the rows in sight, filters, and a row's details with its chain of causes. */
import { get } from "./api.ts";
import { clockTime, fullTime } from "./clock.ts";
import { find, h, icon, say } from "./dom.ts";
import type { Lab } from "./lab.ts";
import { isWarning, noFilter, type Filter } from "./record-model.ts";
import type { Row } from "./record-row.ts";
import { actorName, details, fullSentence, kindName, sentence, type Vocabulary } from "./record-text.ts";
import { recall, remember } from "./remember.ts";
import { t } from "./texts.ts";
import type { Frame } from "./types.ts";

export class RecordView {
  private filter: Filter = { ...noFilter };
  private vocabulary: Vocabulary = recall("vocabulary") === "kubernetes" ? "kubernetes" : "restaurant";
  private rows: Row[] = [];
  private selected = 0;
  private chain = new Set<number>();
  private following = true;
  private loading = false;
  private reachedStart = false;
  private drawn = "";
  private readonly list = h("div.rows", { role: "listbox", tabindex: "0", "aria-label": t("record.label") });
  private readonly scroller = h("div.rows-scroll", {}, this.list);
  private readonly side = h("div.record-side", { hidden: true });
  private readonly count = h("span.record-count.small.muted", { role: "status" });
  private readonly follow = h("button.button.small-button.record-follow", { type: "button", hidden: true, onclick: () => this.toEnd() }, icon("down"), t("record.follow"));
  private readonly actors = h("select.field", { "aria-label": t("record.actor"), onchange: () => this.setFilter({ actor: this.actors.value }) });
  private readonly kinds = h("select.field", { "aria-label": t("record.kind"), onchange: () => this.setFilter({ kind: this.kinds.value }) });
  private readonly search = h("input.field", { type: "search", placeholder: t("record.search"), "aria-label": t("record.search"), oninput: () => this.setFilter({ text: this.search.value }) });

  constructor(
    private readonly root: HTMLElement,
    private readonly lab: Lab,
  ) {
    root.append(
      h(
        "div.record-bar",
        {},
        this.vocabularySwitch(),
        this.search,
        this.actors,
        this.kinds,
        this.toggle("record.warnings", (on) => this.setFilter({ warnings: on })),
        this.toggle("record.routine", (on) => this.setFilter({ routine: on })),
        this.count,
      ),
      h("div.record-main", {}, this.scroller, this.follow, this.side),
    );
    this.fillSelects();
    this.scroller.addEventListener("scroll", () => this.scrolled(), { passive: true });
    this.list.addEventListener("keydown", (e) => this.key(e));
    this.list.addEventListener("click", (e) => this.clicked(e));
    new ResizeObserver(() => this.draw(true)).observe(this.scroller);
    lab.on("rows", () => this.refresh());
    lab.on("snapshot", () => void this.loadOlder());
    this.refresh();
  }

  /** Shows what happened to the object of a name. */
  showObject(name: string): void {
    this.search.value = name;
    this.setFilter({ ...noFilter, text: name });
    this.toEnd();
  }

  /** Jumps to a row and marks what led to it. */
  jump(n: number): void {
    const row = this.lab.record.get(n);
    if (!row) return;
    if (!this.rows.includes(row)) {
      this.filter = { ...noFilter, routine: row.routine };
      this.search.value = "";
      this.refresh();
    }
    this.select(n);
    const i = this.rows.indexOf(row);
    this.following = false;
    this.scroller.scrollTop = Math.max(0, i * this.rowHeight() - this.scroller.clientHeight / 2);
    this.draw(true);
  }

  private vocabularySwitch(): HTMLElement {
    const button = (v: Vocabulary) =>
      h("button.segment", { type: "button", "aria-pressed": String(this.vocabulary === v), onclick: () => this.setVocabulary(v), "data-v": v }, t(`record.${v}`));
    return h("div.segments", { role: "group", "aria-label": t("record.vocabulary") }, button("restaurant"), button("kubernetes"));
  }

  private setVocabulary(v: Vocabulary): void {
    this.vocabulary = v;
    remember("vocabulary", v);
    for (const b of this.root.querySelectorAll<HTMLElement>(".segment")) b.setAttribute("aria-pressed", String(b.dataset.v === v));
    this.fillSelects();
    this.draw(true);
  }

  private toggle(key: string, f: (on: boolean) => void): HTMLElement {
    const box = h("input", { type: "checkbox", onchange: () => f(box.checked) });
    return h("label.check-label", {}, box, t(key));
  }

  private setFilter(f: Partial<Filter>): void {
    this.filter = { ...this.filter, ...f };
    this.refresh();
  }

  private fillSelects(): void {
    const fill = (s: HTMLSelectElement, all: string, list: string[], name: (v: string) => string) => {
      const now = s.value;
      if (s.options.length === list.length + 1 && s.dataset.v === this.vocabulary) return;
      s.dataset.v = this.vocabulary;
      s.replaceChildren(h("option", { value: "" }, t(all)), ...list.map((v) => h("option", { value: v }, name(v))));
      s.value = list.includes(now) ? now : "";
    };
    fill(this.actors, "record.actor.all", this.lab.record.actors(), (a) => actorName(a, this.vocabulary));
    fill(this.kinds, "record.kind.all", this.lab.record.kinds(), (k) => kindName(k, this.vocabulary));
  }

  private refresh(): void {
    this.rows = this.lab.record.visible(this.filter);
    this.fillSelects();
    say(this.count, t("record.count", this.rows.length));
    this.draw(true);
    if (this.following) this.scroller.scrollTop = this.scroller.scrollHeight;
  }

  private toEnd(): void {
    this.following = true;
    this.follow.hidden = true;
    this.scroller.scrollTop = this.scroller.scrollHeight;
    this.draw(true);
  }

  private scrolled(): void {
    const s = this.scroller;
    this.following = s.scrollTop + s.clientHeight >= s.scrollHeight - 4;
    this.follow.hidden = this.following;
    if (s.scrollTop < 200) void this.loadOlder();
    this.draw(false);
  }

  /** Asks for the events before the oldest one and keeps the place. */
  private async loadOlder(): Promise<void> {
    if (this.loading || !this.lab.session) return;
    const oldest = this.lab.record.oldest() || (this.lab.stream?.last ?? 0) + 1;
    if (oldest <= 1 || (this.reachedStart && this.lab.record.rows.length > 0)) return;
    this.loading = true;
    try {
      const r = await get<{ events: Frame[] }>(this.lab.path(`/record?before=${oldest}&limit=500`));
      const before = this.rows.length;
      const added = this.lab.record.addOlder(r.events);
      this.reachedStart = r.events.length === 0;
      const top = this.scroller.scrollTop;
      this.refresh();
      if (!this.following) this.scroller.scrollTop = top + (this.rows.length - before) * this.rowHeight();
      if (added > 0 && this.rows.length < 50) setTimeout(() => void this.loadOlder());
    } catch {
      // Scrolling asks again.
    }
    this.loading = false;
  }

  private rowHeight(): number {
    return matchMedia("(max-width: 760px)").matches ? 74 : 46;
  }

  /** Draws the rows in sight. */
  private draw(force: boolean): void {
    if (this.root.hidden) return;
    const height = this.rowHeight();
    const s = this.scroller;
    const from = Math.max(0, Math.floor(s.scrollTop / height) - 8);
    const to = Math.min(this.rows.length, Math.ceil((s.scrollTop + s.clientHeight) / height) + 8);
    const now = `${from}-${to}`;
    if (!force && now === this.drawn) return;
    this.drawn = now;
    this.list.style.height = `${this.rows.length * height}px`;
    if (this.rows.length === 0) {
      this.list.replaceChildren(h("p.empty", {}, t(this.lab.record.rows.length ? "record.nothing" : "record.empty")));
      return;
    }
    this.list.replaceChildren(...this.rows.slice(from, to).map((r, i) => this.row(r, (from + i) * height, from + i)));
    if (this.selected) this.list.setAttribute("aria-activedescendant", `row-${this.selected}`);
  }

  private row(r: Row, top: number, index: number): HTMLElement {
    const f = r.frame;
    const cause = this.lab.record.because(r);
    const other: Vocabulary = this.vocabulary === "restaurant" ? "kubernetes" : "restaurant";
    const e = h(
      "div.row",
      {
        role: "option",
        id: `row-${f.n}`,
        "data-n": f.n,
        "data-type": f.type,
        "data-warning": isWarning(r),
        "data-routine": r.routine,
        "data-chain": this.chain.has(f.n),
        "aria-selected": String(f.n === this.selected),
        "aria-posinset": index + 1,
        "aria-setsize": this.rows.length,
      },
      h("time.row-time.figures", { datetime: f.time, title: fullTime(f.time) }, clockTime(f.time)),
      h("span.row-actor", { "data-actor": f.actor.split("/")[0] ?? "" }, actorName(f.actor, this.vocabulary)),
      h("span.row-text", {}, sentence(r, this.vocabulary, cause)),
      h("span.row-who", { "aria-hidden": "true" }, f.actor && f.actor !== "learner" && f.actor !== "lab" ? actorName(f.actor, other) : ""),
      h("span.row-other", {}, f.type === "lab" && f.actor !== "learner" ? "" : sentence(r, other, cause)),
      cause ? this.causeLink(cause) : "",
    );
    e.style.transform = `translateY(${top}px)`;
    return e;
  }

  private causeLink(cause: Row): HTMLElement {
    const text = fullSentence(cause, this.vocabulary, this.lab.record.because(cause));
    return h("button.row-cause", { type: "button", tabindex: "-1", "data-cause": cause.frame.n, title: t("record.cause.title", text) }, t("record.cause", text));
  }

  private clicked(e: Event): void {
    const cause = (e.target as Element).closest<HTMLElement>("[data-cause]");
    if (cause) {
      this.jump(Number(cause.dataset.cause));
      return;
    }
    const row = (e.target as Element).closest<HTMLElement>("[data-n]");
    if (row) this.select(Number(row.dataset.n));
  }

  private key(e: KeyboardEvent): void {
    const i = this.rows.findIndex((r) => r.frame.n === this.selected);
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / this.rowHeight()) - 1);
    const step: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -this.rows.length, End: this.rows.length };
    const d = step[e.key];
    if (d !== undefined) {
      e.preventDefault();
      const next = Math.min(this.rows.length - 1, Math.max(0, (i < 0 ? this.rows.length : i) + d));
      const row = this.rows[next];
      if (!row) return;
      const top = next * this.rowHeight();
      if (top < this.scroller.scrollTop) this.scroller.scrollTop = top;
      else if (top + this.rowHeight() > this.scroller.scrollTop + this.scroller.clientHeight) this.scroller.scrollTop = top + this.rowHeight() - this.scroller.clientHeight;
      this.select(row.frame.n);
    } else if (e.key === "Escape") this.select(0);
    else if (e.key === "Enter" && i >= 0) find<HTMLElement>("button", this.side)?.focus();
  }

  private select(n: number): void {
    this.selected = n;
    const row = n ? this.lab.record.get(n) : undefined;
    this.chain = new Set(row ? this.lab.record.chain(n).map((r) => r.frame.n) : []);
    this.side.hidden = !row;
    if (row) this.fillSide(row);
    this.draw(true);
  }

  private fillSide(row: Row): void {
    const whole = this.lab.record.chain(row.frame.n);
    const chain = whole.filter((r) => !r.routine || r === row);
    const missing = whole[0]?.frame.cause ?? null;
    this.side.replaceChildren(
      h("button.button.quiet.icon-only.details-close", { type: "button", "aria-label": t("close"), onclick: () => this.closeSide() }, icon("close")),
      h("h4", {}, t("record.chain")),
      h(
        "ol.chain",
        {},
        missing !== null && h("li.muted", {}, t("record.chain.older", missing)),
        missing === null && h("li.muted", {}, t("record.chain.start")),
        ...chain.map((r) =>
          h("li", {}, h("button.chain-step", { type: "button", "aria-current": r === row ? "true" : undefined, onclick: () => this.jump(r.frame.n) }, h("time.figures.muted.small", {}, clockTime(r.frame.time)), h("span", {}, fullSentence(r, this.vocabulary, this.lab.record.because(r))))),
        ),
      ),
      h("dl.facts", {}, ...details(row, this.lab.record.because(row)).map(([k, v]) => h("div", {}, h("dt", {}, k), h("dd", {}, v)))),
    );
  }

  private closeSide(): void {
    this.select(0);
    this.list.focus();
  }

  /** The tab has come into sight. */
  shown(): void {
    this.draw(true);
    if (this.following) this.scroller.scrollTop = this.scroller.scrollHeight;
    if (this.lab.record.rows.length < 50) void this.loadOlder();
  }
}
