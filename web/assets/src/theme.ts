/** Light, dark, or what the system says. */
import { send } from "./api.ts";

export class ThemeSwitch {
  constructor(root: HTMLElement) {
    root.addEventListener("click", () => this.next());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => changed());
  }

  private next(): void {
    const html = document.documentElement;
    const dark = html.dataset.theme ? html.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    html.dataset.theme = dark ? "light" : "dark";
    changed();
    send("PUT", "/preferences", { theme: html.dataset.theme }).catch(() => undefined);
  }
}

function changed(): void {
  document.dispatchEvent(new CustomEvent("theme"));
}
