import { keepFocus } from "./dom.ts";

/** Keeps a list of elements equal to a list of things: same key, same element; the others enter, move and leave visibly. */
export class Keyed<T> {
  private readonly elements = new Map<string, HTMLElement>();

  constructor(
    private readonly place: HTMLElement,
    private readonly key: (v: T) => string,
    private readonly make: (v: T) => HTMLElement,
    private readonly update: (e: HTMLElement, v: T) => void,
  ) {}

  show(list: T[], animate = true): void {
    keepFocus(() => this.arrange(list, animate));
  }

  private arrange(list: T[], animate: boolean): void {
    const calm = !animate || matchMedia("(prefers-reduced-motion: reduce)").matches;
    const before = new Map<HTMLElement, DOMRect>();
    if (!calm) for (const e of this.elements.values()) before.set(e, e.getBoundingClientRect());
    const wanted = new Set(list.map(this.key));
    for (const [k, e] of this.elements) {
      if (wanted.has(k)) continue;
      this.elements.delete(k);
      leave(e, calm);
    }
    let previous: Element | null = null;
    for (const v of list) {
      const k = this.key(v);
      let e = this.elements.get(k);
      if (!e) {
        e = this.make(v);
        e.dataset.key = k;
        this.elements.set(k, e);
        if (!calm) enter(e);
      }
      this.update(e, v);
      const next: Element | null = previous ? previous.nextElementSibling : this.place.firstElementChild;
      if (next !== e) this.place.insertBefore(e, next);
      previous = e;
    }
    if (!calm) for (const [e, from] of before) if (e.isConnected) glide(e, from);
  }

  get(key: string): HTMLElement | undefined {
    return this.elements.get(key);
  }
}

function enter(e: HTMLElement): void {
  e.animate([{ opacity: 0, transform: "translateY(-8px) scale(.9)" }, { opacity: 1, transform: "none" }], { duration: 260, easing: "ease-out" });
}

function leave(e: HTMLElement, calm: boolean): void {
  e.inert = true;
  e.setAttribute("aria-hidden", "true");
  if (calm || !e.isConnected) {
    e.remove();
    return;
  }
  const a = e.animate([{ opacity: 1, transform: "none" }, { opacity: 0, transform: "translateY(10px) scale(.85)" }], { duration: 320, easing: "ease-in", fill: "forwards" });
  a.onfinish = () => e.remove();
  // A hidden tab may never finish an animation.
  setTimeout(() => e.remove(), 1000);
}

function glide(e: HTMLElement, from: DOMRect): void {
  if (e.inert) return;
  const to = e.getBoundingClientRect();
  const dx = from.left - to.left;
  const dy = from.top - to.top;
  if (Math.abs(dx) + Math.abs(dy) < 2) return;
  e.animate([{ transform: `translate(${dx}px, ${dy}px)` }, { transform: "none" }], { duration: 260, easing: "ease-out" });
}
