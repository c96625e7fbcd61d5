/** The terminal's tab: several terminals with a small bar above them. */
import { get, send } from "./api.ts";
import { h, icon } from "./dom.ts";
import type { Lab } from "./lab.ts";
import { recall, remember } from "./remember.ts";
import { TerminalTab } from "./terminal-tab.ts";
import { t } from "./texts.ts";

const mostTabs = 6;

export class Terminals {
  private readonly tabs = new Map<string, TerminalTab>();
  private readonly bar = h("div.terminal-tabs", { role: "tablist", "aria-label": t("terminal.tabs") });
  private readonly body = h("div.terminal-body");
  private readonly reader = h("button.button.quiet.small-button", { type: "button", title: t("terminal.reader.title"), onclick: () => this.toggleReader() }, t("terminal.reader"));
  private current = "";
  private waiting: { text: string; run: boolean }[] = [];

  constructor(
    root: HTMLElement,
    private readonly lab: Lab,
  ) {
    const more = h("button.button.quiet.icon-only", { type: "button", "aria-label": t("terminal.new"), title: t("terminal.new"), onclick: () => this.add() }, icon("plus"));
    this.reader.setAttribute("aria-pressed", String(recall("screenreader", "local") === "on"));
    root.append(h("div.terminal-bar", {}, this.bar, more, h("span.spacer"), this.reader), this.body);
    const stop = lab.on("session", () => {
      if (!lab.session) return;
      stop();
      void this.start();
    });
    document.addEventListener("theme", () => this.each((x) => x.recolour()));
  }

  /** The tab has come into sight. */
  shown(focus = false): void {
    this.tabs.get(this.current)?.shown(focus);
  }

  /** Types a command into the current terminal and runs it. */
  run(text: string, enter = true): void {
    const tab = this.tabs.get(this.current);
    if (!tab) {
      this.waiting.push({ text, run: enter });
      return;
    }
    this.shown(true);
    tab.type(text, enter);
  }

  /** Shows a tab by name, for kubectl edit and solutions. */
  select(name: string, focus = true): void {
    if (!this.tabs.has(name)) this.open(name);
    this.current = name;
    for (const [n, x] of this.tabs) x.element.hidden = n !== name;
    this.drawBar();
    this.shown(focus);
  }

  text(): string {
    return this.tabs.get(this.current)?.text() ?? "";
  }

  private async start(): Promise<void> {
    this.select("main", false);
    const r = await this.lab.act(() => get<{ terminals: string[] }>(this.lab.path("/terminals")), true);
    for (const name of r?.terminals ?? []) if (!this.tabs.has(name)) this.open(name);
    this.select("main", false);
    for (const w of this.waiting.splice(0)) this.run(w.text, w.run);
  }

  private open(name: string): void {
    const tab = new TerminalTab(name, `/api/v1${this.lab.path(`/terminal?tab=${name}`)}`, () => this.remove(name));
    tab.element.hidden = true;
    tab.element.id = `terminal-${name}`;
    this.tabs.set(name, tab);
    this.body.append(tab.element);
  }

  private add(): void {
    if (this.tabs.size >= mostTabs) return;
    let n = 2;
    while (this.tabs.has(`t${n}`)) n++;
    this.select(`t${n}`);
  }

  private async drop(name: string): Promise<void> {
    await this.lab.act(() => send("DELETE", this.lab.path(`/terminals/${name}`)));
    this.remove(name);
  }

  private remove(name: string): void {
    this.tabs.get(name)?.close();
    this.tabs.delete(name);
    this.select(this.tabs.keys().next().value ?? "main", false);
  }

  private drawBar(): void {
    const focused = this.bar.contains(document.activeElement);
    this.bar.replaceChildren(
      ...[...this.tabs.keys()].map((name, i) =>
        h(
          "span.terminal-tab",
          { "data-current": String(name === this.current), role: "presentation" },
          h(
            "button.terminal-tab-name",
            { type: "button", role: "tab", "aria-selected": String(name === this.current), "aria-controls": `terminal-${name}`, onclick: () => this.select(name) },
            t("terminal.tab", i + 1),
          ),
          name !== "main" && h("button.terminal-tab-close", { type: "button", "aria-label": t("terminal.close", i + 1), onclick: () => void this.drop(name) }, icon("close")),
        ),
      ),
    );
    if (focused) this.bar.querySelector<HTMLElement>("[aria-selected=true]")?.focus();
  }

  private toggleReader(): void {
    const on = this.reader.getAttribute("aria-pressed") !== "true";
    this.reader.setAttribute("aria-pressed", String(on));
    remember("screenreader", on ? "on" : "off", "local");
    this.each((x) => x.setScreenReader(on));
  }

  private each(f: (x: TerminalTab) => void): void {
    for (const x of this.tabs.values()) f(x);
  }
}
