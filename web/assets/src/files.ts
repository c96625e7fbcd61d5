/** The files' tab: the learner's home on the left, the editor on the right. */
import { ApiError, filePath, get, messageOf, readText, send, writeText } from "./api.ts";
import { h, icon, say, toast } from "./dom.ts";
import { Editor } from "./editor.ts";
import type { Lab } from "./lab.ts";
import { recall, remember } from "./remember.ts";
import { t } from "./texts.ts";
import type { EditRequest, HomeFile } from "./types.ts";

interface Open {
  path: string;
  etag: string; // "" for a file that the server doesn't have yet
  saved: string;
}

export class Files {
  private files: HomeFile[] = [];
  private current: Open | null = null;
  private edit: EditRequest | null = null;
  private editor: Editor | null = null;
  private readonly list = h("ul.file-list", { "aria-label": t("files.list") });
  private readonly place = h("div.editor");
  private readonly name = h("span.editor-name");
  private readonly mark = h("span.editor-mark", { role: "status" });
  private readonly notice = h("div.notice.editor-notice", { role: "alert", hidden: true });
  private readonly waitBar = h("div.notice.edit-bar", { hidden: true });
  private readonly empty = h("p.empty.editor-empty", {}, t("files.empty"));
  private readonly buttons: HTMLButtonElement[];

  constructor(
    private readonly root: HTMLElement,
    private readonly lab: Lab,
    private readonly show: () => void,
  ) {
    const button = (i: string, key: string, f: () => void) => h("button.button.quiet.small-button", { type: "button", title: t(key), onclick: f, disabled: true }, icon(i), t(key));
    this.buttons = [button("save", "files.save", () => void this.save()), button("rename", "files.rename", () => this.askName("rename")), button("trash", "files.delete", () => void this.remove())];
    root.append(
      h(
        "div.files",
        {},
        h("div.file-side", {}, h("div.file-bar", {}, h("b", {}, t("files.home")), h("button.button.quiet.small-button", { type: "button", onclick: () => this.askName("new") }, icon("plus"), t("files.new"))), this.list),
        h("div.file-main", {}, h("div.editor-bar", {}, this.name, this.mark, h("span.spacer"), ...this.buttons), this.waitBar, this.notice, this.empty, this.place),
      ),
    );
    this.place.hidden = true;
    const stop = lab.on("session", () => {
      stop();
      void this.restore();
    });
    lab.on("edit", (e) => void this.startEdit(e));
    window.addEventListener("beforeunload", () => this.keepDraft());
    window.addEventListener("focus", () => void this.shown());
  }

  /** The tab has come into sight. */
  async shown(): Promise<void> {
    if (this.root.hidden || !this.lab.session) return;
    await this.refresh();
    if (this.current && !this.dirty() && this.current.etag !== "") await this.reread();
  }

  /** Opens a file; with a text, makes it first when the home has none of that name. */
  async open(path: string, text?: string): Promise<void> {
    this.show();
    await this.refresh();
    this.keepDraft();
    const there = this.files.some((f) => f.path === path && !f.folder);
    if (!there && text !== undefined) {
      const etag = await this.lab.act(() => writeText(this.lab.path(`/files/${filePath(path)}`), text, ""));
      if (etag === undefined) return;
      await this.refresh();
      this.set({ path, etag, saved: text }, text);
      toast(t("files.made", path), "good");
      return;
    }
    const r = await this.lab.act(() => readText(this.lab.path(`/files/${filePath(path)}`)));
    if (!r) return;
    const draft = recall(`draft.${path}`);
    this.set({ path, etag: r.etag, saved: r.body }, draft ?? r.body);
    if (text !== undefined && r.body !== text) this.tell(t("files.differs"), [t("files.differs.take"), () => this.editor?.show(text, true)]);
  }

  private async restore(): Promise<void> {
    await this.refresh();
    const path = recall("file");
    if (path && this.files.some((f) => f.path === path) && !this.current) {
      const r = await this.lab.act(() => readText(this.lab.path(`/files/${filePath(path)}`)), true);
      if (r) this.set({ path, etag: r.etag, saved: r.body }, recall(`draft.${path}`) ?? r.body, false);
    }
  }

  private async refresh(): Promise<void> {
    const r = await this.lab.act(() => get<{ files: HomeFile[] }>(this.lab.path("/files")), true);
    if (!r) return;
    this.files = r.files;
    this.drawList();
  }

  private async reread(): Promise<void> {
    const c = this.current;
    if (!c) return;
    const r = await readText(this.lab.path(`/files/${filePath(c.path)}`)).catch((e: unknown) => e);
    if (this.current !== c) return;
    if (r instanceof ApiError && r.code === "not_found") this.tell(t("files.gone"));
    else if (!(r instanceof Error) && (r as { etag: string }).etag !== c.etag) {
      const { body, etag } = r as { body: string; etag: string };
      this.set({ path: c.path, etag, saved: body }, body, false);
    }
  }

  private drawList(): void {
    const shown = this.files.filter((f) => !f.folder && !f.path.split("/").some((p) => p.startsWith(".")));
    this.list.replaceChildren(
      ...shown.map((f) =>
        h("li", {}, h("button.file", { type: "button", "aria-current": f.path === this.current?.path ? "true" : undefined, onclick: () => void this.open(f.path) }, icon("files"), h("span", {}, f.path), recall(`draft.${f.path}`) !== undefined && h("i.dot", { title: t("files.unsaved") }))),
      ),
    );
    if (shown.length === 0) this.list.append(h("li.muted.small", {}, t("files.none")));
  }

  private set(o: Open, text: string, focus = true): void {
    this.current = o;
    remember("file", o.path);
    this.notice.hidden = true;
    this.place.hidden = false;
    this.empty.hidden = true;
    this.editor ??= new Editor(this.place, () => this.changed(), () => void this.save());
    this.editor.show(text, !/\.(txt|md|sh|json|log)$/.test(o.path));
    for (const b of this.buttons) b.disabled = false;
    say(this.name, o.path);
    this.changed();
    if (focus) this.editor.focus();
  }

  private dirty(): boolean {
    return this.current !== null && this.editor !== null && this.editor.text() !== this.current.saved;
  }

  private changed(): void {
    const dirty = this.dirty();
    const was = this.mark.dataset.dirty === "true";
    this.mark.dataset.dirty = String(dirty);
    say(this.mark, this.current ? t(dirty ? "files.unsaved" : "files.saved") : "");
    this.keepDraft();
    if (was !== dirty) this.drawList();
  }

  /** Keeps an unsaved text over a reload, for instance into the other language. */
  private keepDraft(): void {
    if (this.current && this.editor) remember(`draft.${this.current.path}`, this.dirty() ? this.editor.text() : undefined);
  }

  private async save(over = false): Promise<boolean> {
    const c = this.current;
    if (!c || !this.editor) return false;
    const text = this.editor.text();
    try {
      const etag = await writeText(this.lab.path(`/files/${filePath(c.path)}`), text, over ? null : c.etag);
      this.current = { path: c.path, etag, saved: text };
      this.notice.hidden = true;
      this.changed();
      void this.lab.touch();
      await this.refresh();
      return true;
    } catch (e) {
      if (e instanceof ApiError && e.code === "conflict") this.tell(e.message, [t("files.keep.mine"), () => void this.save(true)], [t("files.keep.theirs"), () => void this.takeTheirs()]);
      else this.tell(messageOf(e));
      return false;
    }
  }

  private async takeTheirs(): Promise<void> {
    const c = this.current;
    if (!c) return;
    remember(`draft.${c.path}`, undefined);
    const r = await this.lab.act(() => readText(this.lab.path(`/files/${filePath(c.path)}`)));
    if (r) this.set({ path: c.path, etag: r.etag, saved: r.body }, r.body);
  }

  private async remove(): Promise<void> {
    const c = this.current;
    if (!c) return;
    this.tell(t("files.delete.sure", c.path), [
      t("files.delete"),
      async () => {
        if (c.etag !== "" && (await this.lab.act(async () => (await send("DELETE", this.lab.path(`/files/${filePath(c.path)}`)), true))) === undefined) return;
        this.forget(c.path);
        await this.refresh();
      },
    ]);
  }

  private forget(path: string): void {
    remember(`draft.${path}`, undefined);
    remember("file", undefined);
    this.current = null;
    this.place.hidden = true;
    this.empty.hidden = false;
    this.notice.hidden = true;
    for (const b of this.buttons) b.disabled = true;
    say(this.name, "");
    say(this.mark, "");
  }

  /** Asks for a name in the bar above the editor. */
  private askName(what: "new" | "rename"): void {
    const input = h("input.field", { type: "text", value: what === "rename" ? (this.current?.path ?? "") : "", placeholder: "grill.yaml", "aria-label": t(`files.${what}.name`), maxlength: 200, spellcheck: "false", autocapitalize: "off" });
    const form = h(
      "form.name-form",
      {
        onsubmit: (e) => {
          e.preventDefault();
          const name = input.value.trim();
          if (name) void (what === "new" ? this.create(name) : this.rename(name));
        },
      },
      h("label", {}, t(`files.${what}.name`), " ", input),
      h("button.button.small-button", { type: "submit" }, t("ok")),
      h("button.button.quiet.small-button", { type: "button", onclick: () => (this.notice.hidden = true) }, t("cancel")),
    );
    this.notice.replaceChildren(form);
    this.notice.hidden = false;
    input.focus();
    input.select();
  }

  private async create(path: string): Promise<void> {
    const etag = await this.lab.act(() => writeText(this.lab.path(`/files/${filePath(path)}`), "", ""));
    if (etag === undefined) return;
    this.keepDraft();
    this.set({ path, etag, saved: "" }, "");
    await this.refresh();
  }

  private async rename(path: string): Promise<void> {
    const c = this.current;
    if (!c || !this.editor || path === c.path) {
      this.notice.hidden = true;
      return;
    }
    const text = this.editor.text();
    const etag = await this.lab.act(() => writeText(this.lab.path(`/files/${filePath(path)}`), text, ""));
    if (etag === undefined) return;
    await this.lab.act(() => send("DELETE", this.lab.path(`/files/${filePath(c.path)}`)), true);
    remember(`draft.${c.path}`, undefined);
    this.set({ path, etag, saved: text }, text);
    await this.refresh();
  }

  private tell(text: string, ...choices: [string, () => void][]): void {
    this.notice.replaceChildren(
      h("p", {}, text),
      h(
        "p",
        {},
        ...choices.map(([label, f]) =>
          h("button.button.small-button", { type: "button", onclick: () => ((this.notice.hidden = true), f()) }, label),
        ),
        h("button.button.quiet.small-button", { type: "button", onclick: () => (this.notice.hidden = true) }, t("close")),
      ),
    );
    this.notice.hidden = false;
  }

  /** kubectl edit waits in the terminal for this file. */
  private async startEdit(e: EditRequest): Promise<void> {
    this.edit = e;
    await this.open(e.path);
    this.waitBar.replaceChildren(
      h("p", {}, t("files.edit.waiting")),
      h("button.button.primary.small-button", { type: "button", onclick: () => void this.finishEdit(true) }, t("files.edit.done")),
      h("button.button.small-button", { type: "button", onclick: () => void this.finishEdit(false) }, t("cancel")),
    );
    this.waitBar.hidden = false;
  }

  private async finishEdit(saved: boolean): Promise<void> {
    const e = this.edit;
    if (!e || (saved && this.dirty() && !(await this.save(true)))) return;
    this.edit = null;
    this.waitBar.hidden = true;
    await this.lab.act(() => send("POST", this.lab.path(`/edits/${e.id}`), { saved }));
    this.forget(e.path);
    this.root.dispatchEvent(new CustomEvent("show-terminal", { bubbles: true, detail: e.tab }));
    await this.refresh();
  }
}
