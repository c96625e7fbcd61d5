/** A look into etcd: its keys, what a key holds byte by byte, and encryption at rest. */
import { get, send } from "./api.ts";
import { enable, h, icon, say } from "./dom.ts";
import { dump } from "./hex.ts";
import type { Outside } from "./outside.ts";
import { t } from "./texts.ts";
import type { EncryptionState, EtcdKeys, EtcdValue } from "./types.ts";

const places = ["secrets", "configmaps", "pods", "deployments", "services/specs"];
const root = "/registry/";
const page = 100;

export class EtcdPanel {
  private readonly prefix = h("input.field.etcd-prefix", { value: `${root}secrets/`, spellcheck: "false", autocomplete: "off", "aria-label": t("etcd.prefix"), onchange: () => void this.list() });
  private readonly keys = h("ul.etcd-keys", { "aria-label": t("etcd.keys") });
  private readonly value = h("div.etcd-value", { tabindex: "0", role: "region", "aria-label": t("etcd.value") }, h("p.empty", {}, t("etcd.choose")));
  private readonly lock = h("span.etcd-lock");
  private readonly provider = h("select.field", { "aria-label": t("etcd.provider") }, ...["secretbox", "aescbc", "aesgcm"].map((p) => h("option", { value: p }, p)));
  private readonly toggle = h("button.button.small-button", { type: "button", "data-act": "encrypt", onclick: () => void this.encrypt() });
  private encryption: EncryptionState | null = null;
  private chosen = "";
  private asked = 0;

  constructor(
    place: HTMLElement,
    private readonly outside: Outside,
  ) {
    place.append(
      h("div.etcd-bar", {}, this.lock, h("span.etcd-switch", {}, this.provider, this.toggle)),
      h(
        "div.etcd-find",
        {},
        ...places.map((p) => h("button.button.small-button", { type: "button", onclick: () => this.go(`${root}${p}/`) }, p.split("/")[0] ?? p)),
        this.prefix,
        h("button.button.quiet.icon-only", { type: "button", "aria-label": t("etcd.again"), title: t("etcd.again"), onclick: () => void this.shown() }, icon("reset")),
      ),
      h("div.etcd-main", {}, this.keys, this.value),
    );
    outside.on("encryption", () => void this.shown());
  }

  /** The panel has come into sight, or what it shows may have changed. */
  async shown(): Promise<void> {
    if (this.keys.offsetParent === null || this.outside.lab.state !== "ready") return;
    await Promise.all([this.look(), this.list(), this.chosen ? this.show(this.chosen) : undefined]);
  }

  private go(prefix: string): void {
    this.prefix.value = prefix;
    void this.list();
  }

  private async list(after = ""): Promise<void> {
    const ticket = ++this.asked;
    const q = new URLSearchParams({ prefix: this.prefix.value.trim(), after, limit: String(page) });
    const r = await this.outside.lab.act(() => get<EtcdKeys>(this.outside.lab.path(`/etcd?${q}`)));
    if (!r || ticket !== this.asked) return;
    const prefix = this.prefix.value.trim();
    const items = r.keys.map((k) => h("li", {}, h("button.etcd-key", { type: "button", title: k.key, "aria-current": k.key === this.chosen ? "true" : undefined, "data-key": k.key, onclick: () => void this.show(k.key) }, k.key.startsWith(prefix) && k.key !== prefix ? k.key.slice(prefix.length) : k.key)));
    const more = r.more && h("li", {}, h("button.button.quiet.small-button", { type: "button", onclick: () => void this.list(r.keys.at(-1)?.key) }, t("etcd.more")));
    if (after) {
      this.keys.lastElementChild?.remove();
      this.keys.append(...items);
    } else this.keys.replaceChildren(...(items.length ? items : [h("li.empty", {}, t("etcd.none"))]));
    if (more) this.keys.append(more);
  }

  private async show(key: string): Promise<void> {
    this.chosen = key;
    for (const b of this.keys.querySelectorAll<HTMLElement>("[data-key]")) {
      if (b.dataset.key === key) b.setAttribute("aria-current", "true");
      else b.removeAttribute("aria-current");
    }
    let v: EtcdValue;
    try {
      v = await get<EtcdValue>(this.outside.lab.path(`/etcd/value?${new URLSearchParams({ key })}`));
    } catch {
      this.value.replaceChildren(h("p.empty", {}, t("etcd.gone")));
      return;
    }
    const bytes = Uint8Array.from(atob(v.value), (c) => c.charCodeAt(0));
    const sealed = /^k8s:enc:([a-z0-9]+):v\d+:([^:]*):/.exec(String.fromCharCode(...bytes.subarray(0, 80)));
    this.value.replaceChildren(
      h("p.etcd-about", {}, h("code", {}, key), h("span.tag", { "data-sealed": Boolean(sealed) }, icon(sealed ? "lock" : "eye"), sealed ? t("etcd.sealed", sealed[1] ?? "", sealed[2] ?? "") : t("etcd.plain")), h("span.small.muted", {}, t("etcd.about", v.size, v.version, v.modRevision))),
      h("pre.hex", {}, ...dump(bytes).flatMap((l) => [h("span.hex-at", {}, l.at), ` ${l.hex} `, h("span.hex-text", {}, l.text), "\n"])),
      v.size > bytes.length || bytes.length > 4096 ? h("p.small.muted", {}, t("etcd.cut", Math.min(bytes.length, 4096), v.size)) : "",
    );
  }

  private async look(): Promise<void> {
    const e = await this.outside.lab.act(() => get<EncryptionState>(this.outside.lab.path("/encryption")), true);
    if (e) this.draw(e);
  }

  private draw(e: EncryptionState): void {
    this.encryption = e;
    this.lock.dataset.on = String(e.on);
    this.lock.replaceChildren(icon("lock"), e.on ? t("etcd.on", e.resources.join(", "), e.provider ?? "", e.key ?? "") : t("etcd.off"));
    this.provider.hidden = e.on;
    say(this.toggle, t(e.on ? "etcd.switch.off" : "etcd.switch.on"));
  }

  private async encrypt(): Promise<void> {
    enable(this.toggle, false);
    const on = !this.encryption?.on;
    const e = await this.outside.lab.act(() => send<EncryptionState>("PUT", this.outside.lab.path("/encryption"), on ? { on, provider: this.provider.value } : { on }));
    enable(this.toggle, true);
    if (e) this.draw(e);
  }
}
