/** A session's event stream: WebSocket, with server-sent events where a network blocks those. */
import { Backoff } from "./backoff.ts";
import { Emitter } from "./emitter.ts";
import type { ErrorBody, Frame, SessionFrame } from "./types.ts";

type Message = Frame | SessionFrame | ErrorBody;

/** What EventStream needs of the browser; tests give their own. */
export interface StreamHost {
  socket(path: string): WebSocket;
  source(path: string): EventSource;
  later(ms: number, f: () => void): void;
}

export const browserHost: StreamHost = {
  socket: (path) => new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}${path}`),
  source: (path) => new EventSource(path),
  later: (ms, f) => void setTimeout(f, ms),
};

export type Connection = "connecting" | "open" | "lost";

export class EventStream extends Emitter<{ frame: Frame; session: SessionFrame; error: ErrorBody; connection: Connection }> {
  /** The number of the newest frame that was taken in. */
  last = 0;
  private socket: WebSocket | null = null;
  private source: EventSource | null = null;
  private readonly backoff = new Backoff();
  private neverOpened = 0;
  private closed = false;

  constructor(
    private readonly id: string,
    private readonly host: StreamHost = browserHost,
  ) {
    super();
  }

  connect(): void {
    if (this.closed) return;
    this.emit("connection", "connecting");
    if (this.neverOpened >= 3) this.openSource();
    else this.openSocket();
  }

  close(): void {
    this.closed = true;
    this.socket?.close();
    this.source?.close();
  }

  /** Tries at once, for instance when the network is back. */
  retryNow(): void {
    if (this.socket?.readyState === WebSocket.OPEN || this.source) return;
    this.backoff.reset();
    this.socket?.close();
  }

  private path(): string {
    return `/api/v1/sessions/${this.id}/events?after=${this.last}`;
  }

  private openSocket(): void {
    const s = this.host.socket(this.path());
    this.socket = s;
    let opened = false;
    s.onopen = () => {
      opened = true;
      this.neverOpened = 0;
      this.emit("connection", "open");
    };
    s.onmessage = (e) => this.take(String(e.data));
    s.onclose = () => {
      if (this.closed) return;
      if (!opened) this.neverOpened++;
      this.emit("connection", "lost");
      this.host.later(this.backoff.next(), () => this.connect());
    };
  }

  private openSource(): void {
    const s = this.host.source(this.path());
    this.source = s;
    s.onopen = () => this.emit("connection", "open");
    s.onmessage = (e) => this.take(String(e.data));
    s.onerror = () => {
      if (this.closed) return;
      s.close();
      this.source = null;
      this.neverOpened = 0;
      this.emit("connection", "lost");
      this.host.later(this.backoff.next(), () => this.connect());
    };
  }

  private take(data: string): void {
    const m = JSON.parse(data) as Message;
    if ("error" in m) {
      this.emit("error", m);
      return;
    }
    this.backoff.reset();
    if (m.type === "session") {
      this.emit("session", m);
      return;
    }
    if (m.type === "snapshot") this.last = m.n;
    else if (m.n <= this.last) return;
    else this.last = m.n;
    this.emit("frame", m);
  }
}
