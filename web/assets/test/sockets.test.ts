import assert from "node:assert/strict";
import { test } from "node:test";
import { Backoff } from "../src/backoff.ts";
import { EventStream } from "../src/stream.ts";
import { pieces, TerminalLink } from "../src/terminal-link.ts";
import { frame, restart } from "./frames.ts";

/** A WebSocket or EventSource that the test drives. */
class FakeSocket {
  readyState = 0;
  sent: unknown[] = [];
  onopen: (() => void) | null = null;
  onmessage: ((e: { data: string }) => void) | null = null;
  onclose: (() => void) | null = null;
  onerror: (() => void) | null = null;
  constructor(readonly path: string) {}
  open(): void {
    this.readyState = 1;
    this.onopen?.();
  }
  get(v: unknown): void {
    this.onmessage?.({ data: JSON.stringify(v) });
  }
  send(text: string): void {
    this.sent.push(JSON.parse(text));
  }
  close(): void {
    this.cut();
  }
  cut(): void {
    if (this.readyState === 3) return;
    this.readyState = 3;
    this.onclose?.();
  }
}

class FakeHost {
  sockets: FakeSocket[] = [];
  sources: FakeSocket[] = [];
  timers: (() => void)[] = [];
  socket(path: string): WebSocket {
    this.sockets.push(new FakeSocket(path));
    return this.sockets.at(-1) as unknown as WebSocket;
  }
  source(path: string): EventSource {
    this.sources.push(new FakeSocket(path));
    return this.sources.at(-1) as unknown as EventSource;
  }
  later(_ms: number, f: () => void): void {
    this.timers.push(f);
  }
  tick(): void {
    for (const f of this.timers.splice(0)) f();
  }
  get last(): FakeSocket {
    return this.sockets.at(-1)!;
  }
}

function terminal() {
  const host = new FakeHost();
  const link = new TerminalLink("/t?tab=main", host);
  let screen = "";
  link.on("out", (o) => (screen += o));
  link.on("reset", () => (screen = ""));
  link.connect();
  host.last.open();
  return { host, link, screen: () => screen };
}

test("after three cuts every line is there once", () => {
  const { host, screen } = terminal();
  host.last.get({ ready: true });
  host.last.get({ n: 1, out: "one\n" });
  host.last.get({ n: 2, out: "two\n" });
  for (let i = 3; i < 6; i++) {
    host.last.cut();
    host.tick();
    assert.equal(host.last.path, `/t?tab=main&after=${i - 1}`);
    host.last.open();
    host.last.get({ ready: true });
    host.last.get({ n: i - 1, out: "doubled" });
    host.last.get({ n: i, out: `${i}\n` });
  }
  assert.equal(screen(), "one\ntwo\n3\n4\n5\n");
});

test("a reset clears the screen and counts anew", () => {
  const { host, screen } = terminal();
  host.last.get({ ready: true });
  host.last.get({ n: 70, out: "before the server's restart" });
  host.last.get({ reset: true });
  host.last.get({ n: 1, out: "$ " });
  assert.equal(screen(), "$ ");
});

test("what is typed while the connection is away is sent once when it is back", () => {
  const { host, link } = terminal();
  link.type("early");
  host.last.get({ ready: true });
  assert.deepEqual(host.last.sent, [{ resize: [80, 24] }, { in: "early" }]);
  host.last.cut();
  link.type("kubectl ");
  link.type("get");
  host.tick();
  host.last.open();
  host.last.get({ ready: true });
  assert.deepEqual(host.last.sent, [{ resize: [80, 24] }, { in: "kubectl get" }]);
});

test("what was drawn is acknowledged once", () => {
  const { host, link } = terminal();
  host.last.get({ ready: true });
  host.last.get({ n: 4, out: "x" });
  link.drawn();
  link.drawn();
  assert.deepEqual(host.last.sent.slice(1), [{ ack: 4 }]);
});

test("a closed terminal doesn't come back", () => {
  const { host, link } = terminal();
  host.last.get({ closed: true });
  host.last.cut();
  host.tick();
  assert.equal(link.state, "closed");
  assert.equal(host.sockets.length, 1);
});

test("a long paste is cut without splitting a character", () => {
  const text = `${"a".repeat(4095)}🍳${"字".repeat(5000)}`;
  const parts = pieces(text);
  assert.equal(parts.join(""), text);
  assert.ok(parts.every((p) => p.length <= 4096 && !/^[\udc00-\udfff]/.test(p)));
});

function events() {
  restart();
  const host = new FakeHost();
  const stream = new EventStream("s1", host);
  const got: number[] = [];
  stream.on("frame", (f) => got.push(f.n));
  stream.connect();
  return { host, stream, got };
}

test("events go on after the last number, without doubles", () => {
  const { host, got } = events();
  host.last.open();
  host.last.get(frame({ n: 5, type: "snapshot", state: [] }));
  host.last.get(frame({ n: 6 }));
  host.last.cut();
  host.tick();
  assert.equal(host.last.path, "/api/v1/sessions/s1/events?after=6");
  host.last.open();
  host.last.get(frame({ n: 6 }));
  host.last.get(frame({ n: 7 }));
  assert.deepEqual(got, [5, 6, 7]);
});

test("a snapshot may go back in number", () => {
  const { host, stream } = events();
  host.last.open();
  host.last.get(frame({ n: 50 }));
  host.last.get(frame({ n: 20, type: "snapshot", state: [] }));
  host.last.get(frame({ n: 21 }));
  assert.equal(stream.last, 21);
});

test("a network that blocks WebSockets gets server-sent events", () => {
  const { host, got } = events();
  for (let i = 0; i < 3; i++) {
    host.last.cut();
    host.tick();
  }
  assert.equal(host.sources.length, 1);
  host.sources[0]!.get(frame({ n: 1 }));
  assert.deepEqual(got, [1]);
  host.sources[0]!.onerror?.();
  host.tick();
  assert.equal(host.sockets.length, 4, "after a break WebSockets are tried again");
});

test("waiting times double up to 15 s and are spread", () => {
  const b = new Backoff(() => 1);
  assert.deepEqual(Array.from({ length: 7 }, () => b.next()), [500, 1000, 2000, 4000, 8000, 15000, 15000]);
  b.reset();
  assert.equal(b.next(), 500);
  assert.equal(new Backoff(() => 0).next(), 250);
});
