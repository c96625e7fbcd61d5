/** What a thing on the floor is, in both vocabularies, with ways on from there. */
import { age } from "./clock.ts";
import { h, icon } from "./dom.ts";
import type { KitchenSwitches } from "./kitchen-switches.ts";
import type { Lab } from "./lab.ts";
import { kindName, nodeName, objectName } from "./record-text.ts";
import { t } from "./texts.ts";
import type { ObjectState } from "./types.ts";
import { moodOf } from "./world.ts";

export class FloorDetails {
  private readonly box = h("div.details", { role: "dialog", hidden: true, tabindex: "-1" });
  private readonly objects = new WeakMap<HTMLElement, ObjectState>();
  private element: HTMLElement | null = null;

  constructor(
    private readonly root: HTMLElement,
    private readonly lab: Lab,
    private readonly switches: KitchenSwitches,
  ) {
    root.append(this.box);
    this.box.addEventListener("keydown", (e) => {
      if (e.key === "Escape") this.close();
    });
    document.addEventListener("pointerdown", (e) => {
      const on = e.target as Node;
      if (!this.box.hidden && !this.box.contains(on) && !this.element?.contains(on)) this.close(false);
    });
  }

  /** Says which object an element shows. */
  bind(e: HTMLElement, o: ObjectState): void {
    this.objects.set(e, o);
  }

  open(e: HTMLElement): void {
    if (this.element === e && !this.box.hidden) {
      this.close();
      return;
    }
    this.element = e;
    this.box.hidden = false;
    this.fill();
    this.box.focus({ preventScroll: true });
  }

  close(back = true): void {
    this.box.hidden = true;
    if (back) this.element?.querySelector<HTMLElement>("button")?.focus();
    this.element = null;
  }

  /** Shows the newest state. */
  refresh(): void {
    if (!this.box.hidden) this.fill();
  }

  private fill(): void {
    const known = this.element && this.objects.get(this.element);
    if (!known) return;
    const o = this.lab.world.get(known.ref);
    const gone = !o || (o.ref.uid !== known.ref.uid && known.ref.uid !== undefined);
    const v = gone ? known : o;
    // Filling it anew must not take the focus away from one of its buttons.
    const focused = this.box.contains(document.activeElement) ? (document.activeElement as HTMLElement).dataset.act : undefined;
    const title = `${kindName(v.ref.kind, "restaurant")} = ${v.ref.kind} ${v.ref.name}`;
    this.box.setAttribute("aria-label", title);
    this.box.replaceChildren(
      h("button.button.quiet.icon-only.details-close", { type: "button", "data-act": "close", "aria-label": t("close"), onclick: () => this.close() }, icon("close")),
      h("h3", {}, h("span", {}, objectName(v.ref, "restaurant")), h("code", {}, `${v.ref.kind} ${v.ref.name}`)),
      ...(gone ? [h("p.notice", {}, t("details.gone"))] : []),
      h("dl.facts", {}, ...factsOf(v, this.lab).map(([k, x]) => h("div", {}, h("dt", {}, k), h("dd", {}, x)))),
      h(
        "p.details-actions",
        {},
        h("button.button.small-button", { type: "button", "data-act": "record", onclick: () => this.toRecord(v) }, icon("record"), t("details.record")),
        h("button.button.small-button", { type: "button", "data-act": "describe", onclick: () => this.describe(v) }, icon("terminal"), "kubectl describe"),
        ...(v.ref.kind === "Node" && !gone ? this.switches.actions(v.ref.name) : []),
      ),
    );
    if (focused) this.box.querySelector<HTMLElement>(`[data-act="${focused}"]`)?.focus();
  }

  private toRecord(o: ObjectState): void {
    this.close(false);
    this.root.dispatchEvent(new CustomEvent("show-record", { bubbles: true, detail: o.ref.name }));
  }

  private describe(o: ObjectState): void {
    this.close(false);
    const ns = o.ref.namespace && o.ref.namespace !== "default" ? ` -n ${o.ref.namespace}` : "";
    this.root.dispatchEvent(new CustomEvent("type-command", { bubbles: true, detail: `kubectl describe ${o.ref.kind.toLowerCase()} ${o.ref.name}${ns}` }));
  }
}

function factsOf(o: ObjectState, lab: Lab): [string, string][] {
  const out: [string, string | undefined][] = [];
  switch (o.ref.kind) {
    case "Pod":
      out.push(
        [t("fact.mood"), `${t(`mood.${moodOf(o)}`)} · STATUS ${o.status ?? "?"} · READY ${o.ready ?? 0}/${o.containers ?? 0}`],
        [t("fact.restarts"), String(o.restarts ?? 0)],
        [t("fact.ip"), o.ip || t("fact.none")],
        [t("fact.node"), o.node ? `${nodeName(o.node, "restaurant")} = ${o.node}` : t("fact.none")],
        [t("fact.image"), o.images?.join(", ")],
        [t("fact.owner"), o.owner ? `${o.owner.kind} ${o.owner.name}` : t("fact.owner.none")],
      );
      break;
    case "Node":
      out.push(
        [t("fact.status"), o.status],
        [t("fact.room"), `${o.cpu ?? "?"} CPU · ${o.memory ?? "?"}`],
        [t("fact.taints"), o.taints?.join(", ")],
        [t("fact.ip"), o.ip],
      );
      break;
    case "Service":
      out.push(
        [t("fact.clusterip"), o.clusterIP],
        [t("fact.ports"), o.ports?.join(", ")],
        [t("fact.type"), o.type],
        [t("fact.selector"), labels(o.selector)],
        [t("fact.endpoints"), lab.world.endpointsOf(o).map((e) => `${e.ip}${e.ready ? "" : ` (${t("fact.notready")})`}`).join(", ") || t("floor.hotline.nobody")],
      );
      break;
    default:
      out.push(
        [t("fact.desired"), String(o.desired ?? 0)],
        [t("fact.actual"), String(o.actual ?? 0)],
        [t("fact.ready"), String(o.ready ?? 0)],
        [t("fact.updated"), o.updated === undefined ? undefined : String(o.updated)],
        [t("fact.image"), o.images?.join(", ")],
        [t("fact.revision"), o.revision],
        [t("fact.selector"), labels(o.selector)],
        [t("fact.teams"), lab.world.ownedBy(o.ref, "ReplicaSet").map((r) => `${r.ref.name} (${r.ready ?? 0}/${r.desired ?? 0})`).join(", ")],
      );
  }
  out.push([t("fact.labels"), labels(o.labels)], [t("fact.age"), age(o.created)]);
  if (o.ref.namespace && o.ref.namespace !== "default") out.push([t("fact.namespace"), o.ref.namespace]);
  return out.filter((x): x is [string, string] => Boolean(x[1]));
}

function labels(l: Record<string, string> | undefined): string {
  return Object.entries(l ?? {}).map(([k, v]) => `${k}=${v}`).join(", ");
}

