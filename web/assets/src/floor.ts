/** The restaurant's floor: whiteboard, hotlines, office, kitchens with their cooks, and who waits at the door. */
import { find, h, icon, say } from "./dom.ts";
import { FloorDetails } from "./floor-details.ts";
import { Keyed } from "./keyed.ts";
import type { KitchenSwitches } from "./kitchen-switches.ts";
import type { Lab } from "./lab.ts";
import { nodeName } from "./record-text.ts";
import { t } from "./texts.ts";
import type { ObjectState } from "./types.ts";
import { keyOf, lastPart, moodOf, shortImage, type World } from "./world.ts";

/** A line of the whiteboard with the teams behind it. */
interface Line {
  object: ObjectState;
  teams: ObjectState[];
}

export class Floor {
  private readonly board = h("ul.board-lines");
  private readonly lines: Keyed<Line>;
  private readonly hotlines = h("ul.hotlines");
  private readonly services: Keyed<ObjectState>;
  private readonly rooms = h("ul.rooms");
  private readonly kitchens: Keyed<ObjectState>;
  private readonly door = h("ul.cooks");
  private readonly waiting: Keyed<ObjectState>;
  private readonly doorRoom: HTMLElement;
  private readonly cooks = new Map<string, Keyed<ObjectState>>();
  private readonly emptyBoard = h("p.empty", {}, t("floor.board.empty"));
  private readonly emptyLines = h("p.empty", {}, t("floor.hotlines.empty"));
  private readonly summary = h("p.floor-summary", { role: "status", "aria-live": "polite" });
  private readonly details: FloorDetails;
  private first = true;
  private summaryTimer = 0;

  constructor(
    root: HTMLElement,
    private readonly lab: Lab,
    private readonly switches: KitchenSwitches,
  ) {
    this.details = new FloorDetails(root, lab, switches);
    this.doorRoom = h(
      "section.room.door",
      { hidden: true, "aria-label": t("floor.door") },
      h("header.room-head", {}, icon("door"), h("b.room-name", {}, t("floor.door")), h("span.room-note", {}, t("floor.door.note"))),
      this.door,
    );
    root.append(
      h(
        "div.floor-body",
        {},
        h(
          "div.board",
          {},
          h("h2.board-title", {}, icon("board"), t("floor.board"), h("small", {}, t("floor.board.k8s"))),
          this.emptyBoard,
          this.board,
          h("h2.board-title", {}, icon("phone"), t("floor.hotlines"), h("small", {}, t("floor.hotlines.k8s"))),
          this.emptyLines,
          this.hotlines,
        ),
        h("div.house", {}, this.doorRoom, this.rooms, switches.opener()),
        this.summary,
      ),
    );
    const id = (o: ObjectState) => o.ref.uid ?? keyOf(o.ref);
    this.lines = new Keyed(this.board, (l) => id(l.object), () => this.makeLine(), (e, l) => this.drawLine(e, l));
    this.services = new Keyed(this.hotlines, id, () => this.makeHotline(), (e, s) => this.drawHotline(e, s));
    this.kitchens = new Keyed(this.rooms, id, (n) => this.makeRoom(n), (e, n) => this.drawRoom(e, n));
    this.waiting = this.cookList(this.door);
    lab.on("world", (w) => this.draw(w));
    lab.on("snapshot", () => (this.first = true));
    switches.outside.on("kitchens", () => this.draw(lab.world));
    this.draw(lab.world);
  }

  private draw(w: World): void {
    const calm = this.first;
    this.first = false;
    const lines = [...w.all("Deployment"), ...w.all("StatefulSet"), ...w.all("DaemonSet"), ...w.all("Job")].map((object) => ({ object, teams: teamsOf(w, object) }));
    this.lines.show(lines, !calm);
    this.emptyBoard.hidden = lines.length > 0;
    const services = w.all("Service").filter((s) => !(s.ref.name === "kubernetes" && s.ref.namespace === "default"));
    this.services.show(services, !calm);
    this.emptyLines.hidden = services.length > 0;
    this.kitchens.show(w.all("Node"), !calm);
    const pods = w.all("Pod");
    const names = new Set(w.all("Node").map((n) => n.ref.name));
    const atDoor = pods.filter((p) => !p.node || !names.has(p.node));
    this.waiting.show(atDoor, !calm);
    this.doorRoom.hidden = atDoor.length === 0;
    for (const n of w.all("Node")) this.cooks.get(n.ref.name)?.show(pods.filter((p) => p.node === n.ref.name), !calm);
    this.details.refresh();
    clearTimeout(this.summaryTimer);
    this.summaryTimer = window.setTimeout(() => say(this.summary, summaryOf(w)), 800);
  }

  private makeLine(): HTMLElement {
    const e = h("li.line", {}, h("button.line-main", { type: "button", onclick: () => this.details.open(e) }, h("span.line-name"), h("span.line-figures.figures"), h("span.line-state")), h("ul.teams"));
    return e;
  }

  private drawLine(e: HTMLElement, { object: o, teams }: Line): void {
    this.details.bind(e, o);
    const desired = o.desired ?? 0;
    const ready = o.ref.kind === "Job" ? o.available ?? 0 : o.ready ?? 0;
    const ok = ready === desired && (o.actual ?? 0) <= desired;
    e.dataset.state = ok ? "good" : "busy";
    say(find(".line-name", e), o.ref.name);
    say(find(".line-figures", e), `${ready}/${desired}`);
    say(find(".line-state", e), ok ? t("floor.line.good") : t("floor.line.busy"));
    find(".line-main", e)?.setAttribute("aria-label", t("floor.line.label", o.ref.kind, o.ref.name, desired, ready));
    const list = find(".teams", e);
    if (!list) return;
    // One team that has what it should says nothing that the line doesn't say.
    const shown = teams.length > 1 || !ok ? teams : [];
    list.replaceChildren(
      ...shown.map((r) => h("li.team", { "data-idle": (r.desired ?? 0) === 0 && (r.actual ?? 0) === 0 }, h("span.team-image", {}, (r.images ?? []).map(shortImage).join(", ")), h("span.figures", {}, `${r.ready ?? 0}/${r.desired ?? 0}`))),
    );
  }

  private makeHotline(): HTMLElement {
    const e = h("li.hotline", {}, h("button.line-main", { type: "button", onclick: () => this.details.open(e) }, h("span.line-name"), h("span.hotline-ip.figures"), h("span.dots")));
    return e;
  }

  private drawHotline(e: HTMLElement, s: ObjectState): void {
    this.details.bind(e, s);
    const ends = this.lab.world.endpointsOf(s);
    const ready = ends.filter((x) => x.ready).length;
    e.dataset.state = ready > 0 ? "good" : "bad";
    say(find(".line-name", e), s.ref.name);
    say(find(".hotline-ip", e), s.clusterIP ?? "");
    find(".dots", e)?.replaceChildren(...(ends.length ? ends.map((x) => h("i.dot", { "data-ready": String(x.ready) })) : [h("span.small", {}, t("floor.hotline.nobody"))]));
    find(".line-main", e)?.setAttribute("aria-label", t("floor.hotline.label", s.ref.name, s.clusterIP ?? "", ready, ends.length));
  }

  private makeRoom(n: ObjectState): HTMLElement {
    const list = h("ul.cooks");
    this.cooks.set(n.ref.name, this.cookList(list));
    const e = h(
      "li.room",
      {},
      h("header.room-head", {}, h("button.room-main", { type: "button", onclick: () => this.details.open(e) }, h("b.room-name"), h("span.room-k8s"), h("span.room-note")), n.ref.name !== "office" && this.switches.make(n.ref.name)),
      n.ref.name === "office" && staff(),
      list,
    );
    return e;
  }

  private drawRoom(e: HTMLElement, n: ObjectState): void {
    this.details.bind(e, n);
    const office = n.ref.name === "office";
    e.classList.toggle("office", office);
    const s = n.status ?? "";
    const dark = !s.startsWith("Ready");
    e.dataset.state = dark ? "dark" : n.unschedulable ? "closed" : "good";
    say(find(".room-name", e), nodeName(n.ref.name, "restaurant"));
    say(find(".room-k8s", e), n.ref.name);
    const pods = this.lab.world.all("Pod").filter((p) => p.node === n.ref.name && moodOf(p) !== "done").length;
    const outside = this.switches.note(n);
    e.dataset.outside = String(outside !== undefined);
    const doors = find(".kitchen-switches", e);
    if (doors) this.switches.draw(doors, n.ref.name);
    const note = outside ? outside : dark ? t("floor.room.dark") : n.unschedulable ? t("floor.room.closed") : office ? t("floor.room.office") : t("floor.room.size", n.cpu ?? "?", memory(n.memory));
    say(find(".room-note", e), note);
    find(".room-main", e)?.setAttribute("aria-label", t("floor.room.label", n.ref.name, note, pods));
  }

  private cookList(place: HTMLElement): Keyed<ObjectState> {
    return new Keyed(
      place,
      (p: ObjectState) => p.ref.uid ?? keyOf(p.ref),
      () => this.makeCook(),
      (e, p) => this.drawCook(e, p),
    );
  }

  private makeCook(): HTMLElement {
    const e = h("li.cook", {}, h("button.cook-main", { type: "button", onclick: () => this.details.open(e) }, h("span.cook-face", {}, icon("cook")), h("span.cook-name"), h("span.cook-mood"), h("span.cook-restarts.figures", { hidden: true })));
    return e;
  }

  private drawCook(e: HTMLElement, p: ObjectState): void {
    this.details.bind(e, p);
    const mood = moodOf(p);
    e.dataset.mood = mood;
    e.dataset.tint = tint(p);
    say(find(".cook-name", e), cookName(p));
    say(find(".cook-mood", e), t(`mood.${mood}`));
    const restarts = find(".cook-restarts", e);
    if (restarts) {
      restarts.hidden = !p.restarts;
      say(restarts, `↻${p.restarts ?? 0}`);
    }
    const b = find(".cook-main", e);
    b?.setAttribute("aria-label", t("floor.cook.label", p.ref.name, t(`mood.${mood}`), p.status ?? "", p.restarts ?? 0));
    b?.setAttribute("title", [p.ref.name, p.ip, p.status].filter(Boolean).join(" · "));
  }
}

/** Who works in the office. */
function staff(): HTMLElement {
  const people = [
    ["kube-apiserver", "kube-apiserver"],
    ["etcd", "etcd"],
    ["controllers", "kube-controller-manager"],
    ["kube-scheduler", "kube-scheduler"],
  ] as const;
  return h("ul.staff", { "aria-label": t("floor.staff") }, ...people.map(([who, name]) => h("li", {}, t(`staff.${who}`), " ", h("code", {}, name))));
}

/** A cook's short name: with colleagues the last part of the name, alone the whole. */
function cookName(p: ObjectState): string {
  if (!p.owner) return p.ref.name;
  const station = p.owner.name.replace(/-[a-z0-9]{5,10}$/, "");
  const last = lastPart(p.ref.name);
  return last === p.ref.name ? last : `${station.length > 9 ? `${station.slice(0, 8)}…` : station}-${last}`;
}

/** One of six colours, the same for all cooks of a station. */
function tint(p: ObjectState): string {
  const station = p.labels?.station ?? p.labels?.app ?? p.labels?.run ?? p.owner?.name ?? p.ref.name;
  let sum = 7;
  for (const c of station) sum = (sum * 31 + (c.codePointAt(0) ?? 0)) >>> 0;
  return String(sum % 6);
}

/** A Deployment's ReplicaSets that matter now, newest first: those with cooks, and the newest. */
function teamsOf(w: World, o: ObjectState): ObjectState[] {
  if (o.ref.kind !== "Deployment") return [];
  const all = w.ownedBy(o.ref, "ReplicaSet").sort((a, b) => Number(b.revision ?? 0) - Number(a.revision ?? 0));
  return all.filter((r, i) => i < 2 || (r.desired ?? 0) + (r.actual ?? 0) > 0).slice(0, 4);
}

/** 2Gi and 2097152Ki are both 2 GiB. */
function memory(q: string | undefined): string {
  const m = /^(\d+(?:\.\d+)?)(Ki|Mi|Gi)?$/.exec(q ?? "");
  if (!m) return q ?? "?";
  const bytes = Number(m[1]) * { Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, "": 1 }[m[2] ?? ""]!;
  return `${Math.round((bytes / 2 ** 30) * 10) / 10} GiB`;
}

function summaryOf(w: World): string {
  const pods = w.all("Pod");
  const ready = pods.filter((p) => moodOf(p) === "ready").length;
  const trouble = pods.filter((p) => ["crash", "image", "failed"].includes(moodOf(p))).length;
  return t("floor.summary", pods.length, ready, trouble);
}
