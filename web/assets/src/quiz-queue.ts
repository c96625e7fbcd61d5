/** Answers on their way to the server: kept in the browser until it has them, however long it is away. */
import { ApiError, send } from "./api.ts";
import { Backoff } from "./backoff.ts";
import { recall, remember } from "./remember.ts";

export interface Given {
  course: string;
  question: string;
  answer: string[];
  correct: boolean; // as the page judged it
  at: string;
}

export interface Memory {
  course: string;
  question: string;
  correct: boolean;
  due?: string;
  at: string;
}

const key = "quiz.queue";
/** More than anybody answers without a network; the oldest go first. */
const most = 1000;
const batch = 100;

export class Queue {
  private sending = false;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readonly backoff = new Backoff();

  constructor(
    private readonly taken: (m: Memory[]) => void,
    private readonly changed: (waiting: number, away: boolean) => void,
  ) {
    addEventListener("online", () => void this.flush());
    addEventListener("storage", () => this.changed(this.waiting().length, false));
  }

  waiting(): Given[] {
    try {
      const list: unknown = JSON.parse(recall(key, "local") ?? "[]");
      return Array.isArray(list) ? (list as Given[]) : [];
    } catch {
      return [];
    }
  }

  add(g: Given): void {
    this.keep([...this.waiting(), g]);
    void this.flush();
  }

  /** Sends what waits; where that fails, again later. */
  async flush(): Promise<void> {
    if (this.sending) return;
    this.sending = true;
    clearTimeout(this.timer);
    try {
      for (let part = this.waiting().slice(0, batch); part.length; part = this.waiting().slice(0, batch)) {
        const r = await send<{ memories: Memory[] }>("POST", "/quizzes/answers", {
          answers: part.map(({ course, question, answer, at }) => ({ course, question, answer, at })),
        });
        // Read anew: another tab, or an answer meanwhile, may have changed it.
        const sent = new Set(part.map(name));
        this.keep(this.waiting().filter((g) => !sent.has(name(g))));
        this.taken(r.memories);
      }
      this.backoff.reset();
      this.changed(0, false);
    } catch (e) {
      // What the server can't read now it never will: it must not hold up the rest.
      if (e instanceof ApiError && e.code === "invalid") this.keep(this.waiting().slice(batch));
      this.changed(this.waiting().length, true);
      if (this.waiting().length) this.timer = setTimeout(() => void this.flush(), this.backoff.next());
    } finally {
      this.sending = false;
    }
  }

  private keep(list: Given[]): void {
    remember(key, list.length ? JSON.stringify(list.slice(-most)) : undefined, "local");
  }
}

function name(g: Given): string {
  return `${g.course}/${g.question}/${g.at}`;
}
