/** Dialogs that ask before something is done. */
import { h } from "./dom.ts";
import { t } from "./texts.ts";

export interface Question {
  title: string;
  /** What it costs. */
  text: string;
  /** What the button that does it says. */
  yes: string;
  danger?: boolean;
}

/** Asks, and says whether the learner wants it. */
export function ask(q: Question): Promise<boolean> {
  const no = h("button.button", { type: "button", onclick: () => box.close() }, t("cancel"));
  const yes = h(`button.button.${q.danger ? "danger" : "primary"}` as "button", { type: "button", "data-act": "yes", onclick: () => box.close("yes") }, q.yes);
  const box = h("dialog.ask", { "aria-labelledby": "ask-title" }, h("h3", { id: "ask-title" }, q.title), h("p", {}, q.text), h("p.ask-actions", {}, no, yes));
  return shown(box, no).then((answer) => answer === "yes");
}

/** Shows a dialog, waits for its end and takes it away; gives its return value. */
export function shown(box: HTMLDialogElement, first: HTMLElement): Promise<string> {
  const before = document.activeElement;
  document.body.append(box);
  box.showModal();
  first.focus();
  box.addEventListener("click", (e) => {
    if (e.target === box) box.close();
  });
  return new Promise((done) =>
    box.addEventListener("close", () => {
      box.remove();
      if (before instanceof HTMLElement && before.isConnected) before.focus({ preventScroll: true });
      done(box.returnValue);
    }),
  );
}
