/** Small tools to make elements. Texts are always set as text, never parsed. */

type Child = Node | string | null | undefined | false;
type Props = Record<string, string | number | boolean | undefined | ((e: Event) => void)>;

/** Makes an element: h("button.primary", { type: "button", onclick: f }, "Text"). */
export function h<K extends keyof HTMLElementTagNameMap>(spec: K | `${K}.${string}`, props: Props = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const [tag, ...classes] = spec.split(".") as [K, ...string[]];
  const e = document.createElement(tag);
  if (classes.length) e.className = classes.join(" ");
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === false) continue;
    if (typeof value === "function") e.addEventListener(name.replace(/^on/, ""), value);
    else if (value === true) e.setAttribute(name, "");
    else e.setAttribute(name, String(value));
  }
  append(e, ...children);
  return e;
}

export function append(parent: Element, ...children: Child[]): void {
  for (const c of children) if (c !== null && c !== undefined && c !== false) parent.append(c);
}

/** A symbol of the sprite. */
export function icon(name: string): SVGSVGElement {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
  use.setAttribute("href", `${document.body.dataset.icons ?? ""}#${name}`);
  svg.append(use);
  return svg;
}

export function find<E extends Element = HTMLElement>(selector: string, root: ParentNode = document): E | null {
  return root.querySelector<E>(selector);
}

export function all<E extends Element = HTMLElement>(selector: string, root: ParentNode = document): E[] {
  return [...root.querySelectorAll<E>(selector)];
}

/** Shows a short notice that goes away by itself. */
export function toast(text: string, kind: "info" | "good" | "bad" = "info"): void {
  const place = find(".js-toasts");
  if (!place) return;
  const e = h("p.toast", { "data-kind": kind }, text);
  place.append(e);
  setTimeout(() => e.remove(), kind === "bad" ? 9000 : 5000);
}

/** Sets a text only when it is another one, so that screen readers aren't told twice. */
export function say(e: Element | null, text: string): void {
  if (e && e.textContent !== text) e.textContent = text;
}

/** Enables or disables a control. The one that has the keyboard's focus keeps it: it is only said to be disabled. */
export function enable(b: HTMLButtonElement, on: boolean): void {
  const held = !on && b === document.activeElement;
  b.disabled = !on && !held;
  if (held) b.setAttribute("aria-disabled", "true");
  else b.removeAttribute("aria-disabled");
}

/** Runs a change of the page and gives the focus back to the element that lost it by being moved. */
export function keepFocus(change: () => void): void {
  const e = document.activeElement;
  change();
  if (e instanceof HTMLElement && e !== document.activeElement && e.isConnected) e.focus({ preventScroll: true });
}
