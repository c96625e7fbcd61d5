/** The quiz: answers are judged and kept by the server, with an explanation for every option. */
import { get, messageOf, send } from "./api.ts";
import { all, find, say } from "./dom.ts";
import { inLang, t } from "./texts.ts";
import type { Verdict } from "./types.ts";

export class Quiz {
  private readonly questions = new Map<string, Question>();

  constructor(
    private readonly root: HTMLElement,
    private readonly path: string,
  ) {
    for (const f of all<HTMLFormElement>(".js-question", root)) {
      const q = new Question(
        f,
        (id, answer) => send<Verdict>("PUT", `${path}/quiz/${encodeURIComponent(id)}`, { answer }),
        () => this.score(),
      );
      this.questions.set(q.id, q);
    }
    find(".js-quiz-clear", root)?.addEventListener("click", () => void this.clear());
    void this.load();
  }

  private async load(): Promise<void> {
    try {
      const r = await get<{ answers: Verdict[] }>(`${this.path}/quiz`);
      for (const v of r.answers) this.questions.get(v.question)?.show(v);
    } catch {
      // The questions can be answered anyway.
    }
    this.score();
  }

  private async clear(): Promise<void> {
    try {
      await send("DELETE", `${this.path}/quiz`);
    } catch (e) {
      say(find(".js-quiz-score", this.root), messageOf(e));
      return;
    }
    for (const q of this.questions.values()) q.again();
    this.score();
    this.root.scrollIntoView({ block: "start" });
  }

  private score(): void {
    const list = [...this.questions.values()];
    const answered = list.filter((q) => q.verdict);
    const right = answered.filter((q) => q.verdict?.correct).length;
    say(find(".js-quiz-score", this.root), answered.length ? t("quiz.score", right, list.length) : "");
    const clear = find(".js-quiz-clear", this.root);
    if (clear) clear.hidden = answered.length === 0;
    document.dispatchEvent(new CustomEvent("quiz"));
  }
}

/** Judges an answer; fails with an error for people. */
export type Judge = (question: string, answer: string[]) => Promise<Verdict>;

export class Question {
  readonly id: string;
  verdict: Verdict | undefined;
  private readonly kind: string;

  constructor(
    private readonly form: HTMLFormElement,
    private readonly judge: Judge,
    private readonly changed: () => void,
  ) {
    this.id = form.dataset.question ?? "";
    this.kind = form.dataset.kind ?? "one";
    form.addEventListener("submit", (e) => {
      e.preventDefault();
      void this.send();
    });
    find(".js-retry", form)?.addEventListener("click", () => {
      this.again();
      find<HTMLElement>("input, select, .js-up", form)?.focus();
    });
    for (const o of this.options()) {
      find(".js-up", o)?.addEventListener("click", () => this.move(o, -1));
      find(".js-down", o)?.addEventListener("click", () => this.move(o, 1));
    }
    this.number();
  }

  /** Shows what the server said of the answer. */
  show(v: Verdict): void {
    this.verdict = v;
    this.form.dataset.correct = String(v.correct);
    this.form.dataset.answered = "true";
    if (this.kind === "order") this.order(v.answer);
    for (const o of this.options()) {
      const id = o.dataset.option ?? "";
      const info = v.options.find((x) => x.id === id);
      const chosen = v.answer.includes(id);
      const input = find<HTMLInputElement>("input", o);
      if (input) {
        input.checked = chosen;
        input.disabled = true;
      }
      const pair = find<HTMLSelectElement>(".js-pair", o);
      if (pair) {
        pair.value = v.answer.find((a) => a.startsWith(`${id}=`))?.slice(id.length + 1) ?? "";
        pair.disabled = true;
      }
      for (const b of all<HTMLButtonElement>("button", o)) b.disabled = true;
      o.dataset.chosen = String((chosen || pair !== null) && this.kind !== "order");
      const rightPlace = this.kind === "order" ? v.options.findIndex((x) => x.id === id) === v.answer.indexOf(id) : Boolean(info?.right);
      o.dataset.right = String(rightPlace);
      const why = find(".js-why", o);
      if (why && info) {
        // Explanations come from the server's lessons as safe HTML; the order's only after it is right.
        why.innerHTML = inLang(info.why);
        why.hidden = this.kind === "order" && !v.correct ? true : inLang(info.why) === "";
      }
    }
    for (const r of all<HTMLInputElement>(".js-truth input", this.form)) {
      r.checked = v.answer[0] === r.value;
      r.disabled = true;
      const label = r.closest("label");
      if (label) label.dataset.right = String(r.value === String(v.truth));
    }
    const typed = find<HTMLInputElement>(".js-typed", this.form);
    if (typed) {
      typed.value = v.answer[0] ?? "";
      typed.disabled = true;
    }
    const said = find(".js-said", this.form);
    if (said && v.why) {
      // From the server's lessons, with values of the cluster escaped.
      said.innerHTML = inLang(v.why);
      said.hidden = false;
    }
    this.buttons(true);
    say(find(".js-verdict", this.form), v.correct ? t("quiz.right") : typed ? t("quiz.wrong.typed") : t("quiz.wrong"));
  }

  again(): void {
    this.verdict = undefined;
    delete this.form.dataset.correct;
    delete this.form.dataset.answered;
    for (const o of this.options()) {
      delete o.dataset.right;
      delete o.dataset.chosen;
      const input = find<HTMLInputElement>("input", o);
      if (input) {
        input.disabled = false;
        input.checked = false;
      }
      for (const b of all<HTMLButtonElement | HTMLSelectElement>("button, select", o)) b.disabled = false;
      const why = find(".js-why", o);
      if (why) why.hidden = true;
    }
    for (const i of all<HTMLInputElement>(".js-truth input, .js-typed", this.form)) {
      i.disabled = false;
      i.checked = false;
      delete i.closest("label")?.dataset.right;
    }
    const said = find(".js-said", this.form);
    if (said) said.hidden = true;
    this.buttons(false);
    say(find(".js-verdict", this.form), "");
    this.number();
  }

  private options(): HTMLElement[] {
    return all(".js-option", this.form);
  }

  private buttons(answered: boolean): void {
    const sendButton = find(".js-send", this.form);
    const retry = find(".js-retry", this.form);
    if (sendButton) sendButton.hidden = answered;
    if (retry) retry.hidden = !answered || Boolean(this.verdict?.correct);
  }

  /** What is chosen or typed, in the form of the kind of question; empty while something is open. */
  private answer(): string[] {
    switch (this.kind) {
      case "order":
        return this.options().map((o) => o.dataset.option ?? "");
      case "match": {
        const pairs = this.options().map((o) => [o.dataset.option ?? "", find<HTMLSelectElement>(".js-pair", o)?.value ?? ""]);
        return pairs.some(([, p]) => p === "") ? [] : pairs.map(([o, p]) => `${o}=${p}`);
      }
      case "truth": {
        const truth = find<HTMLInputElement>(".js-truth input:checked", this.form)?.value;
        const reason = find<HTMLInputElement>(".js-option input:checked", this.form)?.value;
        return truth && reason ? [truth, reason] : [];
      }
      case "type":
      case "cluster": {
        const text = find<HTMLInputElement>(".js-typed", this.form)?.value.trim();
        return text ? [text] : [];
      }
    }
    return all<HTMLInputElement>("input:checked", this.form).map((i) => i.value);
  }

  private async send(): Promise<void> {
    const answer = this.answer();
    if (answer.length === 0) {
      say(find(".js-verdict", this.form), t("quiz.choose"));
      return;
    }
    try {
      this.show(await this.judge(this.id, answer));
      this.changed();
      const next = find<HTMLElement>(".js-retry:not([hidden])", this.form);
      if (next && this.form.contains(document.activeElement)) next.focus();
    } catch (e) {
      say(find(".js-verdict", this.form), messageOf(e));
    }
  }

  private order(ids: string[]): void {
    const list = find(".options", this.form);
    for (const id of ids) {
      const o = this.options().find((x) => x.dataset.option === id);
      if (o) list?.append(o);
    }
    this.number();
  }

  private move(o: HTMLElement, d: number): void {
    const other = d < 0 ? o.previousElementSibling : o.nextElementSibling;
    if (!other) return;
    if (d < 0) other.before(o);
    else other.after(o);
    this.number();
    find<HTMLElement>(d < 0 ? ".js-up" : ".js-down", o)?.focus();
  }

  private number(): void {
    this.options().forEach((o, i) => say(find(".js-place", o), String(i + 1)));
  }
}
