/** The connection of one terminal tab: numbered output, acknowledgements, and coming back after a cut without losing or doubling a line. */
import { Backoff } from "./backoff.ts";
import { Emitter } from "./emitter.ts";

type Message = { n: number; out: string } | { ready: true } | { reset: true } | { closed: true } | { error: { code: string; message: string } };

export type LinkState = "waiting" | "open" | "lost" | "closed";

/** What a link needs of the browser; tests give their own. */
export interface LinkHost {
  socket(path: string): WebSocket;
  later(ms: number, f: () => void): void;
}

/** The most characters that go into one message: a long paste is cut. */
const chunk = 4096;
/** What is kept of key presses while the connection is away. */
const mostHeld = 10_000;

export class TerminalLink extends Emitter<{ out: string; reset: undefined; state: LinkState; error: { code: string; message: string } }> {
  state: LinkState = "waiting";
  private last = 0;
  private acked = 0;
  private held = "";
  private size: [number, number] = [80, 24];
  private socket: WebSocket | null = null;
  private ready = false;
  private ended = false;
  private readonly backoff = new Backoff();

  constructor(
    private readonly path: string,
    private readonly host: LinkHost,
  ) {
    super();
  }

  connect(): void {
    if (this.ended) return;
    this.ready = false;
    const s = this.host.socket(`${this.path}&after=${this.last}`);
    this.socket = s;
    s.onmessage = (e) => this.take(JSON.parse(String(e.data)) as Message);
    s.onclose = () => {
      if (this.ended || this.socket !== s) return;
      this.ready = false;
      this.set("lost");
      this.host.later(this.backoff.next(), () => this.connect());
    };
  }

  /** Types; what is typed while the connection is away is sent when it is back. */
  type(text: string): void {
    if (!this.ready) {
      if (this.held.length < mostHeld) this.held += text;
      return;
    }
    for (const part of pieces(text)) this.write({ in: part });
  }

  resize(cols: number, rows: number): void {
    if (this.size[0] === cols && this.size[1] === rows) return;
    this.size = [cols, rows];
    if (this.ready) this.write({ resize: this.size });
  }

  /** Says that everything received so far has been drawn. */
  drawn(): void {
    if (!this.ready || this.last === this.acked) return;
    this.acked = this.last;
    this.write({ ack: this.last });
  }

  retryNow(): void {
    if (this.state !== "lost") return;
    this.backoff.reset();
    this.connect();
  }

  close(): void {
    this.ended = true;
    this.socket?.close();
  }

  private take(m: Message): void {
    if ("out" in m) {
      if (m.n <= this.last) return;
      this.last = m.n;
      this.emit("out", m.out);
    } else if ("ready" in m) {
      this.ready = true;
      this.backoff.reset();
      this.write({ resize: this.size });
      this.acked = 0;
      this.set("open");
      const held = this.held;
      this.held = "";
      if (held) this.type(held);
    } else if ("reset" in m) {
      this.last = 0;
      this.emit("reset", undefined);
    } else if ("closed" in m) {
      this.ended = true;
      this.set("closed");
    } else this.emit("error", m.error);
  }

  private set(s: LinkState): void {
    this.state = s;
    this.emit("state", s);
  }

  private write(v: unknown): void {
    if (this.socket?.readyState === 1) this.socket.send(JSON.stringify(v));
  }
}

/** Cuts a text without splitting a character of two halves. */
export function pieces(text: string): string[] {
  const out: string[] = [];
  for (let i = 0; i < text.length; ) {
    let end = Math.min(text.length, i + chunk);
    const code = text.charCodeAt(end - 1);
    if (end < text.length && code >= 0xd800 && code < 0xdc00) end--;
    out.push(text.slice(i, end));
    i = end;
  }
  return out;
}
