/** Explanations of the glossary's terms: on the side where there is room, and gone by the Escape key. */
import { all } from "./dom.ts";

export function explainTerms(lesson: HTMLElement): void {
  const terms = all(".term", lesson);
  for (const term of terms) {
    const show = () => {
      const pane = lesson.getBoundingClientRect();
      term.dataset.side = term.getBoundingClientRect().left > pane.left + pane.width / 2 ? "left" : "right";
    };
    const calm = () => delete term.dataset.quiet;
    term.addEventListener("mouseenter", show);
    term.addEventListener("focusin", show);
    term.addEventListener("mouseleave", calm);
    term.addEventListener("focusout", calm);
  }
  document.addEventListener("keydown", (e) => {
    if (e.key === "Escape") for (const term of terms) if (term.matches(":hover, :focus-within")) term.dataset.quiet = "true";
  });
}
