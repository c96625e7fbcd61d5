/** What in a lesson's text acts: commands to run, manifests to open, values of the live cluster. */
import { all, find, say } from "./dom.ts";
import type { Files } from "./files.ts";
import type { Lab } from "./lab.ts";
import { liveValue, type LiveQuery } from "./live.ts";

/** A value in the text that follows the live cluster. */
export class LiveValue {
  constructor(
    private readonly root: HTMLElement,
    private readonly lab: Lab,
  ) {
    lab.on("world", () => this.draw());
    this.draw();
  }

  private draw(): void {
    const d = this.root.dataset;
    const q: LiveQuery = { want: d.liveWant ?? "", pick: d.livePick ?? "", kind: d.liveKind ?? "", owner: d.liveOwner ?? "", labels: d.liveLabels ?? "" };
    const v = liveValue(this.lab.world, q);
    const text = q.want === "count" && v === "0" && d.liveFallback ? d.liveFallback : (v ?? d.liveFallback ?? this.root.textContent ?? "");
    this.root.dataset.known = String(v !== undefined);
    say(this.root, text);
  }
}

/** A command with a button that types it into the terminal. */
export class Command {
  constructor(
    private readonly root: HTMLElement,
    run: (text: string) => void,
  ) {
    find(".js-run", root)?.addEventListener("click", () => run(this.text()));
  }

  private text(): string {
    return (find(".js-command-text", this.root)?.textContent ?? "").trim();
  }
}

/** A manifest that can be opened in the editor. */
export class Manifest {
  constructor(root: HTMLElement, files: Files) {
    const path = root.dataset.path ?? "";
    find(".js-open", root)?.addEventListener("click", () => {
      void files.open(path.split("/").at(-1) ?? path, find(".js-manifest-text", root)?.textContent ?? "");
    });
  }
}

export function liveValues(root: ParentNode, lab: Lab): void {
  for (const e of all(".js-live", root)) new LiveValue(e, lab);
}
