/** The days off of control loops: who is at work, and who was sent home. */
import { enable, h, icon, say } from "./dom.ts";
import type { Outside } from "./outside.ts";
import { Keyed } from "./keyed.ts";
import { actorName } from "./record-text.ts";
import { has, t } from "./texts.ts";
import type { ControlLoop } from "./types.ts";

export class LoopsPanel {
  private readonly parts = h("ul.loops");
  private readonly kubelets = h("ul.loops");
  private readonly controllers = h("ul.loops");
  private readonly lists: Record<ControlLoop["part"], Keyed<ControlLoop>>;
  private readonly search = h("input.field", { type: "search", placeholder: t("record.search"), "aria-label": t("record.search"), oninput: () => this.draw() });
  private readonly more = h("details.loops-more", {}, h("summary", {}, t("loops.controllers")), h("p.panel-row", {}, this.search), this.controllers);
  private readonly away = h("p.notice", { hidden: true, role: "status" });

  constructor(
    root: HTMLElement,
    private readonly outside: Outside,
  ) {
    root.append(h("p.panel-lead", {}, t("loops.lead")), this.away, this.parts, h("h4", {}, t("loops.kubelets")), this.kubelets, this.more);
    const keyed = (place: HTMLElement) => new Keyed<ControlLoop>(place, (l) => l.name, (l) => this.make(l), (e, l) => this.update(e, l));
    this.lists = { component: keyed(this.parts), kubelet: keyed(this.kubelets), controller: keyed(this.controllers) };
    outside.on("loops", () => this.draw());
  }

  private draw(): void {
    const text = this.search.value.trim().toLowerCase();
    const all = this.outside.loops;
    for (const part of ["component", "kubelet", "controller"] as const) {
      const list = all.filter((l) => l.part === part && (part !== "controller" || text === "" || `${l.name} ${actorName(l.name, "restaurant")}`.toLowerCase().includes(text)));
      this.lists[part].show(list, false);
    }
    const home = all.filter((l) => l.home);
    this.away.hidden = home.length === 0;
    say(this.away, home.length ? t("loops.away", home.map((l) => l.name).join(t("list.comma"))) : "");
  }

  private make(l: ControlLoop): HTMLElement {
    return h(
      "li.loop",
      {},
      h("span.loop-name", {}, h("b", {}, actorName(l.name, "restaurant")), h("code", {}, l.name)),
      h("span.loop-hint.small.muted", {}, has(`loop.away.${l.name}`) ? t(`loop.away.${l.name}`) : l.part === "kubelet" ? t("loop.away.kubelet") : ""),
      h("span.loop-state.tag"),
      h("button.button.small-button", { type: "button" }),
    );
  }

  private update(e: HTMLElement, l: ControlLoop): void {
    e.dataset.home = String(l.home);
    const state = e.querySelector(".loop-state");
    say(state, t(l.home ? "loop.home" : "loop.working"));
    state?.classList.toggle("good", !l.home);
    const b = e.querySelector<HTMLButtonElement>("button")!;
    b.setAttribute("aria-label", t(l.home ? "loop.call.label" : "loop.send.label", l.name));
    b.replaceChildren(icon(l.home ? "bell" : "moon"), t(l.home ? "loop.call" : "loop.send"));
    b.onclick = async () => {
      enable(b, false);
      await this.outside.setLoop(l.name, !l.home);
      enable(b, true);
    };
  }
}
