/** Each kitchen's breaker and cable, and what opens and closes a kitchen. */
import { ask, shown } from "./ask.ts";
import { enable, find, h, icon, toast } from "./dom.ts";
import type { Outside } from "./outside.ts";
import { nodeName } from "./record-text.ts";
import { t } from "./texts.ts";
import type { ObjectState } from "./types.ts";
import { moodOf } from "./world.ts";

export class KitchenSwitches {
  constructor(readonly outside: Outside) {}

  /** Whether the page has switches for a kitchen. */
  has(name: string): boolean {
    return this.outside.panels.has("kitchens") && this.outside.kitchen(name) !== undefined;
  }

  /** The two switches at a kitchen's door. */
  make(name: string): HTMLElement {
    const one = (act: "power" | "cable") => h("button.kitchen-switch", { type: "button", "data-act": act, onclick: () => void this.toggle(name, act) }, icon(act === "power" ? "bolt" : "plug"));
    return h("div.kitchen-switches", { hidden: true }, one("power"), one("cable"));
  }

  draw(e: HTMLElement, name: string): void {
    const k = this.outside.kitchen(name);
    e.hidden = !this.has(name);
    for (const act of ["power", "cable"] as const) {
      const b = find<HTMLButtonElement>(`[data-act="${act}"]`, e);
      if (!b || !k) continue;
      const label = t(`switch.${act}.${k[act] ? "on" : "off"}`, nodeName(name, "restaurant"));
      b.setAttribute("aria-pressed", String(k[act]));
      b.setAttribute("aria-label", label);
      b.title = label;
    }
  }

  /** What the switches say about a kitchen; Kubernetes may not have noticed yet. */
  note(node: ObjectState): string | undefined {
    const k = this.outside.kitchen(node.ref.name);
    if (!k || (k.power && k.cable)) return undefined;
    const noticed = (node.status ?? "").startsWith("Ready") ? "unnoticed" : "noticed";
    return t(`floor.room.${k.power ? "nocable" : "nopower"}.${noticed}`);
  }

  /** The same as buttons with words, and what closes the kitchen. */
  actions(name: string): HTMLElement[] {
    const k = this.outside.kitchen(name);
    if (!k || !this.has(name)) return [];
    const button = (act: "power" | "cable") =>
      h("button.button.small-button", { type: "button", "data-act": act, onclick: () => void this.toggle(name, act) }, icon(act === "power" ? "bolt" : "plug"), t(`act.${act}.${k[act] ? "off" : "on"}`));
    const out = [button("power"), button("cable")];
    if (this.outside.can("kitchens")) out.push(h("button.button.small-button.danger", { type: "button", "data-act": "close-kitchen", onclick: () => void this.close(name) }, icon("trash"), t("act.close")));
    return out;
  }

  private async toggle(name: string, act: "power" | "cable"): Promise<void> {
    const k = this.outside.kitchen(name);
    if (!k) return;
    if (k[act] && !(await ask({ title: t(`ask.${act}.title`, nodeName(name, "restaurant")), text: t(`ask.${act}.text`, this.cooks(name)), yes: t(`act.${act}.off`), danger: true }))) return;
    await this.outside.setKitchen(name, { [act]: !k[act] });
  }

  private async close(name: string): Promise<void> {
    if (await ask({ title: t("ask.close.title", nodeName(name, "restaurant")), text: t("ask.close.text", this.cooks(name)), yes: t("act.close"), danger: true })) await this.outside.closeKitchen(name);
  }

  private cooks(name: string): number {
    return this.outside.lab.world.all("Pod").filter((p) => p.node === name && moodOf(p) !== "done").length;
  }

  /** The button that opens a new kitchen. */
  opener(): HTMLElement {
    const b = h("button.open-kitchen", { type: "button", hidden: true, onclick: () => void this.open() }, icon("plus"), t("act.open"));
    const draw = () => (b.hidden = !(this.outside.panels.has("kitchens") && this.outside.can("kitchens") && this.outside.kitchens.length > 0));
    this.outside.on("kitchens", draw);
    return b;
  }

  private async open(): Promise<void> {
    let n = 1;
    while (this.outside.kitchen(`kitchen-${n}`)) n++;
    const field = (name: string, value: string, more: Record<string, string | boolean> = {}) => h("input.field", { name, value, autocomplete: "off", spellcheck: "false", ...more });
    const name = field("name", `kitchen-${n}`, { required: true, maxlength: "63", pattern: "[a-z0-9]([a-z0-9\\-]*[a-z0-9])?" });
    const cpu = field("cpu", "2", { required: true });
    const memory = field("memory", "2Gi", { required: true });
    const labels = field("labels", "", { placeholder: "disk=ssd, zone=b" });
    const taints = field("taints", "", { placeholder: "event=wedding:NoSchedule" });
    const row = (label: string, e: HTMLElement, code: string) => h("label.form-row", {}, h("span", {}, t(label), " ", h("code", {}, code)), e);
    const go = h("button.button.primary", { type: "submit", "data-act": "yes" }, t("act.open"));
    const form = h(
      "form",
      {},
      h("h3", {}, t("open.title")),
      row("open.name", name, "name"),
      h("div.form-pair", {}, row("open.cpu", cpu, "cpu"), row("open.memory", memory, "memory")),
      row("fact.labels", labels, "labels"),
      row("fact.taints", taints, "taints"),
      h("p.ask-actions", {}, h("button.button", { type: "button", onclick: () => box.close() }, t("cancel")), go),
    );
    const box = h("dialog.ask", { "aria-label": t("open.title") }, form);
    form.addEventListener("submit", (e) => {
      e.preventDefault();
      const kitchen = { name: name.value.trim(), cpu: cpu.value.trim(), memory: memory.value.trim(), labels: pairs(labels.value), taints: words(taints.value) };
      enable(go, false);
      void this.outside.openKitchen(kitchen).then((ok) => {
        enable(go, true);
        if (!ok) return;
        toast(t("open.done", kitchen.name), "good");
        box.close();
      });
    });
    await shown(box, name);
  }
}

function words(text: string): string[] {
  return text.split(/[,\s]+/).filter(Boolean);
}

function pairs(text: string): Record<string, string> {
  return Object.fromEntries(words(text).map((w) => [w.split("=")[0] ?? "", w.split("=").slice(1).join("=")]));
}
