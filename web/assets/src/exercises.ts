/** One exercise's card: checks that tick live, hints, show me, reset. */
import { get, messageOf, send } from "./api.ts";
import { all, enable, find, h, say, toast } from "./dom.ts";
import type { Lab } from "./lab.ts";
import { inLang, t } from "./texts.ts";
import type { CheckResult, ExerciseState } from "./types.ts";

export class ExerciseCard {
  private readonly id: string;
  private state: ExerciseState | undefined;
  private busy = false;
  private hints = -1;
  private readonly answers = new Map<string, string>();
  private inSight = false;
  private triedAlone = false;

  constructor(
    private readonly root: HTMLElement,
    private readonly lab: Lab,
  ) {
    this.id = root.dataset.exercise ?? "";
    this.button(".js-start", () => void this.start());
    this.button(".js-check", () => void this.check());
    this.button(".js-hint", () => void this.hint());
    this.button(".js-reset", () => void this.reset());
    this.button(".js-catch-up", () => void this.catchUp());
    for (const b of all<HTMLButtonElement>(".js-solve", root)) b.addEventListener("click", () => void this.solve(Number(b.dataset.solution)));
    for (const f of all<HTMLFormElement>(".js-answer", root)) f.addEventListener("submit", (e) => this.answer(e, f));
    for (const d of all<HTMLDetailsElement>("details", root)) d.addEventListener("keydown", (e) => this.escape(e, d));
    lab.on("exercises", () => this.draw());
    lab.on("session", () => this.draw());
    new IntersectionObserver(
      ([e]) => {
        this.inSight = e?.isIntersecting ?? false;
        this.startAlone();
      },
      { threshold: 0.25 },
    ).observe(root);
    this.draw();
  }

  /** Starts by itself when the learner has come to it and has done all before it; a jump ahead needs the button. */
  private startAlone(): void {
    const s = this.state;
    if (!this.inSight || this.triedAlone || !s || s.started || s.done || s.waits?.length || this.lab.state !== "ready") return;
    const before = [...this.lab.exercises.values()];
    const mine = before.findIndex((e) => e.exercise === this.id);
    if (!before.slice(0, mine).every((e) => e.done)) return;
    this.triedAlone = true;
    void this.start();
  }

  private async start(): Promise<void> {
    await this.work(t("exercise.starting"), async () => {
      const s = await this.call(() => send<ExerciseState>("POST", this.path("/start")));
      if (s) this.tell("", "");
    });
  }

  private path(rest: string): string {
    return this.lab.path(`/exercises/${encodeURIComponent(this.id)}${rest}`);
  }

  private button(selector: string, f: () => void): void {
    const b = find(selector, this.root);
    b?.addEventListener("click", () => b.ariaDisabled !== "true" && f());
  }

  private escape(e: KeyboardEvent, d: HTMLDetailsElement): void {
    if (e.key !== "Escape" || !d.open) return;
    d.open = false;
    find("summary", d)?.focus();
  }

  private closeMenus(): void {
    for (const d of all<HTMLDetailsElement>("details", this.root)) d.open = false;
  }

  private async work(text: string, f: () => Promise<unknown>): Promise<void> {
    if (this.busy) return;
    this.busy = true;
    this.closeMenus();
    this.tell(text, "busy");
    this.draw();
    await f();
    this.busy = false;
    this.draw();
  }

  private async check(): Promise<void> {
    await this.work(t("exercise.checking"), async () => {
      const s = await this.call(() => send<ExerciseState>("POST", this.path("/check")));
      if (!s) return;
      const open = s.checks.filter((c) => c.status !== "met").length;
      this.tell(open === 0 ? "" : t("exercise.open", open, s.checks.length), "");
    });
  }

  private async hint(): Promise<void> {
    const before = this.state?.hints ?? 0;
    const s = await this.call(() => send<ExerciseState>("POST", this.path("/hint")));
    if (s && s.hints === before) this.tell(t("exercise.hint.none"), "");
  }

  private async reset(): Promise<void> {
    await this.work(t("exercise.resetting"), async () => {
      const ok = await this.lab.operate(`/exercises/${encodeURIComponent(this.id)}/reset`);
      this.tell(ok ? t("exercise.reset.done") : "", "");
    });
  }

  private async catchUp(): Promise<void> {
    await this.work(t("exercise.catchingup"), async () => {
      const ok = await this.lab.operate(`/exercises/${encodeURIComponent(this.id)}/reset`);
      this.tell(ok ? t("exercise.catchup.done") : "", "");
    });
  }

  private async solve(n: number): Promise<void> {
    this.root.dispatchEvent(new CustomEvent("show-terminal", { bubbles: true, detail: "main" }));
    await this.work(t("exercise.solving"), async () => {
      const ok = await this.lab.operate(`/exercises/${encodeURIComponent(this.id)}/solve`, { solution: n });
      this.tell(ok ? t("exercise.solved") : "", "");
    });
  }

  private answer(e: Event, form: HTMLFormElement): void {
    e.preventDefault();
    const item = form.closest<HTMLElement>("[data-check]");
    const field = find<HTMLInputElement>("input[type=text]", form) ?? find<HTMLInputElement>("input:checked", form);
    const text = field?.value.trim() ?? "";
    if (!text) {
      this.tell(t("answer.empty"), "");
      return;
    }
    const check = item?.dataset.check ?? "";
    void this.call(() => send<ExerciseState>("PUT", this.path(`/answers/${encodeURIComponent(check)}`), { text }));
  }

  /** Shows what the server keeps of a check's answer when that has changed: what is being typed stays. */
  private drawAnswers(s: ExerciseState): void {
    for (const form of all<HTMLFormElement>(".js-answer", this.root)) {
      const check = form.closest<HTMLElement>("[data-check]")?.dataset.check ?? "";
      const text = s.answers?.[check] ?? "";
      if (text === (this.answers.get(check) ?? "")) continue;
      this.answers.set(check, text);
      const field = find<HTMLInputElement>("input[type=text]", form);
      if (field) field.value = text;
      for (const choice of all<HTMLInputElement>("input[type=radio]", form)) choice.checked = choice.value === text;
    }
  }

  private async call(f: () => Promise<ExerciseState>): Promise<ExerciseState | undefined> {
    try {
      const s = await f();
      this.lab.takeExercises([s]);
      return s;
    } catch (e) {
      this.tell(messageOf(e), "bad");
      return undefined;
    }
  }

  private tell(text: string, kind: string): void {
    const e = find(".js-exercise-message", this.root);
    if (!e) return;
    e.dataset.kind = kind;
    say(e, text);
  }

  private draw(): void {
    const before = this.state;
    const s = this.lab.exercises.get(this.id);
    this.state = s;
    const ready = this.lab.state === "ready" && !this.busy;
    const spent = s !== undefined && s.hints >= s.hintsTotal;
    for (const b of all<HTMLButtonElement>(".js-start, .js-catch-up, .js-check, .js-hint, .js-solve, .js-reset, .js-answer button", this.root)) enable(b, ready && !(spent && b.matches(".js-hint")));
    if (!s) return;
    for (const c of s.checks) this.drawCheck(c);
    this.root.dataset.done = String(s.done);
    const start = find<HTMLButtonElement>(".js-start", this.root);
    const check = find<HTMLButtonElement>(".js-check", this.root);
    const focused = document.activeElement;
    const waits = (s.waits?.length ?? 0) > 0;
    const needs = find(".js-needs", this.root);
    if (needs) needs.hidden = !waits;
    if (start) start.hidden = s.started || s.done || waits;
    if (check) check.hidden = !s.started && (!s.done || waits);
    if (start?.hidden && start === focused) handOver(check, ready);
    if (check?.hidden && check === focused) handOver(start, ready);
    this.startAlone();
    const label = find(".js-exercise-state", this.root);
    if (label) {
      const met = s.checks.filter((c) => c.status === "met").length;
      label.classList.toggle("good", s.done);
      say(label, s.done ? t("exercise.done") : s.started ? t("exercise.count", met, s.checks.length) : t("exercise.notstarted"));
    }
    this.drawHints(s);
    this.drawAnswers(s);
    if (s.done && before && !before.done) {
      this.tell(t("exercise.congratulations"), "good");
      this.root.animate?.([{ outlineColor: "var(--good)" }, { outlineColor: "transparent" }], { duration: 1200 });
      toast(t("exercise.congratulations.short", find("h3", this.root)?.textContent ?? ""), "good");
    }
  }

  private drawCheck(c: CheckResult): void {
    const item = find(`[data-check="${CSS.escape(c.check)}"]`, this.root);
    if (!item) return;
    const before = item.dataset.status;
    // What later exercises change isn't a fault of one that is done.
    if (this.state?.done && c.regressed) c = { ...c, status: "met", regressed: false, message: { "zh-TW": "", en: "" } };
    item.dataset.status = c.status;
    item.dataset.regressed = String(Boolean(c.regressed));
    say(find(".js-check-status", item), t(`check.${c.status}`));
    const message = find(".js-check-message", item);
    if (!message) return;
    const started = this.state?.started ?? false;
    const parts: (HTMLElement | string)[] = [];
    if (c.regressed) parts.push(h("b", {}, t("check.regressed"), " "));
    if (c.status !== "met" && started && inLang(c.message)) parts.push(inLang(c.message));
    if (c.status === "met" && inLang(c.message)) parts.push(inLang(c.message));
    // A count or an answer that isn't there yet says no more than the sentence above.
    if (c.status === "not_met" && started && c.object && c.field !== "count" && c.object !== "answer") {
      parts.push(
        h(
          "span.check-found",
          {},
          h("code", {}, c.object),
          c.field ? h("code", {}, c.field) : "",
          c.expected !== undefined && c.expected !== "" ? h("span", {}, t("check.expected"), " ", h("code", {}, c.expected)) : "",
          c.found !== undefined && c.found !== "" ? h("span", {}, t("check.found"), " ", h("code", {}, c.found)) : "",
        ),
      );
    }
    const probe = h("p", {}, ...parts);
    if (message.innerHTML !== probe.innerHTML) message.replaceChildren(...parts);
    if (before && before !== c.status && c.status === "met") find(".check-mark", item)?.animate?.([{ transform: "scale(.4)" }, { transform: "scale(1.25)" }, { transform: "none" }], { duration: 350 });
  }

  private drawHints(s: ExerciseState): void {
    say(find(".js-hint-label", this.root), t("exercise.hint", s.hints, s.hintsTotal));
    if (s.hints === this.hints) return;
    const fresh = this.hints >= 0;
    this.hints = s.hints;
    const place = find(".js-hints", this.root);
    place?.replaceChildren(
      ...s.hintTexts.map((text, i) => {
        const body = h("div.prose");
        // Hints come from the server's lessons as safe HTML.
        body.innerHTML = inLang(text);
        return h("div.hint", {}, h("b", {}, t("exercise.hint.number", i + 1)), body);
      }),
    );
    if (fresh) place?.lastElementChild?.scrollIntoView({ block: "nearest", behavior: "smooth" });
  }
}

/** Gives the focus to the button that took another's place. */
function handOver(b: HTMLButtonElement | null, ready: boolean): void {
  if (!b) return;
  b.disabled = false;
  if (!ready) b.setAttribute("aria-disabled", "true");
  b.focus({ preventScroll: true });
}

/** The level's figures in the header: exercises done and questions right. */
export class LevelProgress {
  constructor(
    private readonly lab: Lab,
    private readonly total: number,
  ) {
    lab.on("exercises", () => void this.later());
    document.addEventListener("quiz", () => void this.later());
  }

  private timer = 0;
  private done = "";

  private later(): void {
    // Exercise states come often; the figure only changes when one is done.
    const now = [...this.lab.exercises.values()].filter((e) => e.done).map((e) => e.exercise).join() + String(document.querySelectorAll(".js-question[data-correct=true]").length);
    if (now === this.done) return;
    this.done = now;
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => void this.ask(), 100);
  }

  private async ask(): Promise<void> {
    if (this.total === 0) return;
    const r = await this.lab.act(() => get<{ levels: Record<string, { percent: number }> }>(`/courses/${this.lab.course}/progress`), true);
    const percent = r?.levels[this.lab.level]?.percent;
    if (percent === undefined) return;
    say(find(".js-level-percent"), `${percent}%`);
    const finish = find(".js-finish");
    if (finish) finish.hidden = percent < 100;
    const bar = find(".js-level-bar");
    bar?.setAttribute("aria-label", t("progress.label", percent));
    const fill = bar?.firstElementChild;
    if (fill) fill.className = `bar-fill w-${Math.floor((percent + 2) / 5) * 5}`;
  }
}
