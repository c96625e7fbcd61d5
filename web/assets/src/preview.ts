/** On an author's server: loads the page again when the courses have changed, and shows what is wrong in them. */
import { find, h } from "./dom.ts";

interface Fault {
  file: string;
  line: number;
  message: string;
}

export function followCourses(): void {
  let seen = 0;
  const source = new EventSource("/api/v1/preview");
  source.addEventListener("message", (e) => {
    const now = JSON.parse(String(e.data)) as { version: number; faults: Fault[] };
    if (seen && now.version !== seen && now.faults.length === 0) location.reload();
    seen = now.version;
    show(now.faults);
  });
}

/** The faults in a box over the page, without taking the focus from what is being done. */
function show(faults: Fault[]): void {
  find(".js-faults")?.remove();
  if (faults.length === 0) return;
  const list = faults.map((f) => h("li", {}, h("code", {}, f.line ? `${f.file}:${f.line}` : f.file), " ", f.message));
  document.body.append(h("aside.faults.js-faults", { role: "alert" }, h("b", {}, String(faults.length)), h("ul", {}, ...list)));
}
