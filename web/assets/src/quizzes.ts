/** The page of quizzes: chooses questions, shows one at a time, judges here and sends answers when it can. */
import { get } from "./api.ts";
import { all, find, h, say } from "./dom.ts";
import { judge, type Key } from "./quiz-judge.ts";
import { Queue, type Memory } from "./quiz-queue.ts";
import { Question } from "./quiz.ts";
import { has, t } from "./texts.ts";

/** How often a page that lies open looks whether something has become due. */
const lookEvery = 60_000;

export class Quizzes {
  private keys: Key[] = [];
  private readonly memories = new Map<string, Memory>();
  private readonly queue: Queue;
  private run: Key[] = [];
  private place = 0;
  private missed = 0;
  private answered = 0;

  constructor(private readonly root: HTMLElement) {
    this.queue = new Queue(
      (list) => this.learn(list),
      (waiting, away) => this.status(waiting, away),
    );
    this.register();
    if (!this.part(".js-form")) return; // there are no questions
    this.part(".js-form")!.addEventListener("submit", (e) => {
      e.preventDefault();
      this.start(shuffled(this.chosen()).slice(0, this.many()));
    });
    this.part(".js-due-go")!.addEventListener("click", () => this.start(shuffled(this.due(""))));
    this.part(".js-next")!.addEventListener("click", () => this.show(this.place + 1));
    this.part(".js-stop")!.addEventListener("click", () => this.end());
    this.part(".js-back")!.addEventListener("click", () => {
      this.view(".js-choose");
      find<HTMLElement>(".js-from", this.root)?.focus();
    });
    addEventListener("hashchange", () => this.fromAddress());
    setInterval(() => this.draw(), lookEvery);
    void this.load();
  }

  private async load(): Promise<void> {
    try {
      const r = await get<{ questions: Key[]; memories: Memory[] }>("/quizzes");
      this.keys = r.questions.filter((k) => this.template(k));
      this.learn(r.memories);
    } catch {
      this.status(this.queue.waiting().length, true);
      setTimeout(() => void this.load(), 5000);
      return;
    }
    // What was answered and not sent yet counts already.
    for (const g of this.queue.waiting()) this.memories.set(name(g), { course: g.course, question: g.question, correct: g.correct, at: g.at });
    this.root.dataset.loaded = "true";
    this.draw();
    this.fromAddress();
    void this.queue.flush();
  }

  private register(): void {
    const worker = this.root.dataset.worker;
    // Without one (plain http, some iframes) an open page goes on without a network, and a new visit needs it.
    if (worker && "serviceWorker" in navigator) navigator.serviceWorker.register(worker, { scope: "/quizzes" }).catch(() => undefined);
  }

  private learn(list: Memory[]): void {
    for (const m of list) this.memories.set(name(m), m);
    this.draw();
  }

  private status(waiting: number, away: boolean): void {
    const e = this.part(".js-offline")!;
    e.hidden = waiting === 0 && !away;
    say(e, waiting ? t("quizzes.waiting", waiting) : away ? t("quizzes.offline") : "");
  }

  /** #due, #due/COURSE/LEVEL, #COURSE and #COURSE/LEVEL, as links on other pages have it. */
  private fromAddress(): void {
    const [first, ...rest] = decodeURIComponent(location.hash.slice(1)).split("/");
    if (first === "due") {
      const list = this.due(rest.join("/"));
      if (list.length) this.start(shuffled(list));
      return;
    }
    const from = find<HTMLSelectElement>(".js-from", this.root)!;
    const wanted = [first, ...rest].join("/");
    if (wanted && [...from.options].some((o) => o.value === wanted)) from.value = wanted;
  }

  private chosen(): Key[] {
    const from = find<HTMLSelectElement>(".js-from", this.root)!.value;
    return this.keys.filter((k) => within(k, from));
  }

  private many(): number {
    return Number(find<HTMLInputElement>("input[name=many]:checked", this.root)?.value) || Infinity;
  }

  private due(from: string): Key[] {
    return this.keys.filter((k) => {
      const due = this.memories.get(name(k))?.due;
      return due !== undefined && Date.parse(due) <= Date.now() && within(k, from);
    });
  }

  private start(list: Key[]): void {
    if (list.length === 0) return;
    this.run = list;
    this.missed = this.answered = 0;
    this.view(".js-run");
    this.show(0);
  }

  private show(place: number): void {
    const key = this.run[place];
    if (!key) {
      this.end();
      return;
    }
    this.place = place;
    const slot = this.part(".js-slot")!;
    slot.replaceChildren(this.template(key)!.content.cloneNode(true));
    const head = this.part(".js-place")!;
    say(head, t("quizzes.place", place + 1, this.run.length));
    const next = this.part(".js-next")!;
    next.hidden = true;
    say(next, place + 1 < this.run.length ? t("quizzes.next") : t("quizzes.finish"));
    const form = find<HTMLFormElement>(".js-question", slot)!;
    say(find(".eyebrow", form), t(`quiz.kind.${key.kind}`));
    let first = true;
    new Question(
      form,
      (_, answer) => {
        const v = judge(key, answer);
        this.given(key, answer, v.correct, first);
        first = false;
        return Promise.resolve(v);
      },
      () => {
        next.hidden = false;
        if (find(".js-retry", form)?.hidden) next.focus();
      },
    );
    head.focus();
  }

  /** Only the first answer counts: the others were read from the explanation. */
  private given(key: Key, answer: string[], correct: boolean, counts: boolean): void {
    if (!counts) return;
    this.answered++;
    if (!correct) this.missed++;
    const at = new Date().toISOString();
    const before = this.memories.get(name(key));
    // When it comes back the server says; until it has said so, it isn't due.
    this.memories.set(name(key), { course: key.course, question: key.id, correct, at, due: before?.due && Date.parse(before.due) > Date.now() ? before.due : undefined });
    this.queue.add({ course: key.course, question: key.id, answer, correct, at });
    this.draw();
  }

  private end(): void {
    this.part(".js-slot")!.replaceChildren();
    if (this.answered === 0) {
      this.view(".js-choose");
      find<HTMLElement>(".js-from", this.root)?.focus();
      return;
    }
    say(this.part(".js-result"), t("quizzes.result", this.answered - this.missed, this.answered));
    say(this.part(".js-missed"), this.missed ? t("quizzes.again", this.missed) : t("quizzes.clean"));
    this.view(".js-end");
    this.part(".js-end")!.focus();
  }

  private view(shown: string): void {
    for (const v of [".js-choose", ".js-run", ".js-end"]) this.part(v)!.hidden = v !== shown;
    this.root.dataset.view = shown.slice(4);
  }

  private draw(): void {
    const due = this.due("").length;
    const box = this.part(".js-due");
    if (!box) return;
    box.hidden = due === 0;
    say(this.part(".js-due-title"), due ? t("home.due", due) : "");
    const topics = new Map<string, { name: string; slug: boolean; all: number; answered: number; right: number }>();
    for (const k of this.keys) {
      const slug = k.topic || "other";
      const label = `quizzes.topic.${slug}`;
      const row = topics.get(slug) ?? { name: has(label) ? t(label) : slug, slug: !has(label), all: 0, answered: 0, right: 0 };
      const m = this.memories.get(name(k));
      row.all++;
      if (m) row.answered++;
      if (m?.correct) row.right++;
      topics.set(slug, row);
    }
    const rows = [...topics.values()].map((r) =>
      h(
        "tr",
        {},
        h("th", { scope: "row" }, r.slug ? h("code", {}, r.name) : r.name),
        h("td.figures", {}, t("quizzes.of", r.answered, r.all)),
        h("td.figures", {}, r.answered ? `${Math.round((100 * r.right) / r.answered)}%` : "–"),
      ),
    );
    this.part(".js-scores")!.replaceChildren(...rows);
  }

  private part(selector: string): HTMLElement | null {
    return find(selector, this.root);
  }

  private template(k: Key): HTMLTemplateElement | undefined {
    return all<HTMLTemplateElement>(".js-question-of", this.root).find((e) => e.dataset.course === k.course && e.dataset.question === k.id);
  }
}

function name(x: { course: string; question?: string; id?: string }): string {
  return `${x.course}/${x.question ?? x.id ?? ""}`;
}

function within(k: Key, from: string): boolean {
  return from === "" || from === k.course || from === `${k.course}/${k.level}`;
}

function shuffled<T>(list: T[]): T[] {
  const out = [...list];
  for (let i = out.length - 1; i > 0; i--) {
    const j = Math.floor(Math.random() * (i + 1));
    [out[i], out[j]] = [out[j]!, out[i]!];
  }
  return out;
}
