/** One terminal: xterm with the page's colours, copy and paste, and its connection. */
import { FitAddon } from "@xterm/addon-fit";
import { Unicode11Addon } from "@xterm/addon-unicode11";
import { Terminal, type ITheme } from "@xterm/xterm";
import { h, say, toast } from "./dom.ts";
import { recall } from "./remember.ts";
import { browserHost } from "./stream.ts";
import { guard } from "./terminal-guard.ts";
import { TerminalLink, type LinkState } from "./terminal-link.ts";
import { t } from "./texts.ts";

/** The most characters of one paste. */
const mostPaste = 200_000;

export class TerminalTab {
  readonly element: HTMLElement;
  readonly link: TerminalLink;
  private readonly term: Terminal;
  private readonly fit = new FitAddon();
  private readonly screen = h("div.terminal-screen");
  private readonly notice = h("p.terminal-notice", { role: "status", hidden: true });
  private opened = false;

  constructor(
    readonly name: string,
    path: string,
    onClosed: () => void,
  ) {
    this.element = h("div.terminal", { "data-tab": name }, this.screen, this.notice);
    this.term = new Terminal({
      allowProposedApi: true,
      cursorBlink: !matchMedia("(prefers-reduced-motion: reduce)").matches,
      fontFamily: 'ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "DejaVu Sans Mono", "Noto Sans Mono CJK TC", monospace',
      fontSize: 13,
      lineHeight: 1.2,
      scrollback: 5000,
      minimumContrastRatio: 4.5,
      screenReaderMode: recall("screenreader", "local") === "on",
      theme: colours(),
    });
    this.term.loadAddon(this.fit);
    this.term.loadAddon(new Unicode11Addon());
    this.term.unicode.activeVersion = "11";
    guard(this.term);
    this.link = new TerminalLink(path, browserHost);
    this.link.on("out", (out) => this.term.write(out, () => this.link.drawn()));
    this.link.on("reset", () => this.term.reset());
    this.link.on("state", (s) => {
      this.show(s);
      if (s === "closed") onClosed();
    });
    this.link.on("error", (e) => this.tell(e.message));
    this.term.onData((d) => this.link.type(d));
    this.term.onResize(({ cols, rows }) => this.link.resize(cols, rows));
    this.term.attachCustomKeyEventHandler((e) => this.key(e));
    this.screen.addEventListener("paste", (e) => this.paste(e), { capture: true });
    window.addEventListener("online", () => this.link.retryNow());
    this.show("waiting");
  }

  /** Opens the terminal once its element is in sight, and fits it. */
  shown(focus: boolean): void {
    if (this.element.offsetParent === null) return;
    if (!this.opened) {
      this.opened = true;
      this.term.open(this.screen);
      this.term.textarea?.setAttribute("aria-label", t("terminal.input"));
      new ResizeObserver(() => this.refit()).observe(this.screen);
      this.refit();
      this.link.connect();
    } else this.refit();
    if (focus) this.term.focus();
  }

  focus(): void {
    this.term.focus();
  }

  /** Types a command line; enter runs it. */
  type(text: string, run: boolean): void {
    this.link.type(run ? `${text}\r` : text);
  }

  recolour(): void {
    this.term.options.theme = colours();
  }

  setScreenReader(on: boolean): void {
    this.term.options.screenReaderMode = on;
  }

  close(): void {
    this.link.close();
    this.term.dispose();
    this.element.remove();
  }

  /** The text on the screen, for tests and copies. */
  text(): string {
    const b = this.term.buffer.active;
    const out: string[] = [];
    for (let i = 0; i < b.length; i++) {
      const line = b.getLine(i);
      const s = line?.translateToString(true) ?? "";
      if (line?.isWrapped && out.length) out[out.length - 1] += s;
      else out.push(s);
    }
    return out.join("\n").trimEnd();
  }

  private refit(): void {
    if (this.screen.clientWidth > 40 && this.screen.clientHeight > 20) this.fit.fit();
  }

  private key(e: KeyboardEvent): boolean {
    if (e.type !== "keydown") return true;
    const copy = (e.ctrlKey && e.shiftKey && e.code === "KeyC") || (e.metaKey && e.code === "KeyC");
    if (copy || (e.ctrlKey && !e.shiftKey && e.code === "KeyC" && this.term.hasSelection())) {
      e.preventDefault();
      this.copy();
      return false;
    }
    // The browser's own paste brings the text as a paste event.
    if ((e.ctrlKey && (e.code === "KeyV" || e.key === "v")) || (e.metaKey && e.code === "KeyV")) return false;
    // A way out for those who use the keyboard only.
    if (e.key === "F6" || (e.ctrlKey && e.key === "F6")) return false;
    return true;
  }

  private copy(): void {
    const s = this.term.getSelection();
    if (!s) return;
    navigator.clipboard?.writeText(s).then(
      () => this.term.clearSelection(),
      () => document.execCommand("copy"),
    );
  }

  private paste(e: ClipboardEvent): void {
    const text = e.clipboardData?.getData("text/plain") ?? "";
    if (text.length <= mostPaste) return;
    e.preventDefault();
    e.stopPropagation();
    toast(t("terminal.paste.toolong", Math.round(mostPaste / 1000)), "bad");
  }

  private show(s: LinkState): void {
    this.element.dataset.state = s;
    if (s === "open") this.notice.hidden = true;
    else this.tell(t(`terminal.${s}`));
  }

  private tell(text: string): void {
    this.notice.hidden = false;
    say(this.notice, text);
  }
}

/** The terminal's colours from the page's variables. */
function colours(): ITheme {
  const s = getComputedStyle(document.documentElement);
  const v = (name: string) => s.getPropertyValue(`--term-${name}`).trim();
  const names = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"] as const;
  const theme: Record<string, string> = { background: v("bg"), foreground: v("fg"), cursor: v("cursor"), cursorAccent: v("bg"), selectionBackground: v("selection") };
  for (const n of names) {
    theme[n] = v(n);
    theme[`bright${n[0]!.toUpperCase()}${n.slice(1)}`] = v(`bright-${n}`) || v(n);
  }
  return theme;
}
