/** Starts the page's controllers: each is hooked to its elements by a js- class. */
import { ClusterChip, Curtain, IdleWatch } from "./chip.ts";
import { ClockChip } from "./cluster-clock.ts";
import { Controls } from "./controls.ts";
import { all, find } from "./dom.ts";
import { ExerciseCard, LevelProgress } from "./exercises.ts";
import { Files } from "./files.ts";
import { Floor } from "./floor.ts";
import { Lab } from "./lab.ts";
import { Place, Splitter, Tools, Views, type Tool } from "./layout.ts";
import { Command, liveValues, Manifest } from "./lesson.ts";
import { KitchenSwitches } from "./kitchen-switches.ts";
import { Outside } from "./outside.ts";
import { followCourses } from "./preview.ts";
import { Quiz } from "./quiz.ts";
import { Quizzes } from "./quizzes.ts";
import { RecordView } from "./record.ts";
import { recall } from "./remember.ts";
import { Terminals } from "./terminals.ts";
import { explainTerms } from "./terms.ts";
import { setLang } from "./texts.ts";
import { ThemeSwitch } from "./theme.ts";

function startLab(root: HTMLElement): void {
  const lab = new Lab(root.dataset.course ?? "", root.dataset.level ?? "");
  const outside = new Outside(lab, root.dataset.panels ?? "");
  const lesson = find(".js-lesson", root)!;
  const place = new Place(lesson, `place.${lab.course}.${lab.level}`);
  for (const e of all(".js-lang")) e.addEventListener("click", () => place.keep());
  for (const e of all(".js-splitter", root)) new Splitter(e, root);

  const toolsRoot = find(".js-tools", root)!;
  const terminals = new Terminals(find(".js-terminals", root)!, lab);
  const record = new RecordView(find(".js-record", root)!, lab);
  const narrow = () => matchMedia("(max-width: 760px)").matches;
  const show = (tool: Tool, focus = false) => {
    if (narrow()) views.show(tool);
    tools.show(tool, focus);
  };
  const controlsRoot = find(".js-controls", root);
  const controls = controlsRoot ? new Controls(controlsRoot, outside) : undefined;
  const files = new Files(find(".js-files", root)!, lab, () => show("files"));
  const tools = new Tools(toolsRoot, (tool, focus) => {
    if (tool === "terminal") terminals.shown(focus);
    else if (tool === "files") void files.shown();
    else if (tool === "controls") controls?.shown();
    else record.shown();
  });
  const views = new Views(find(".js-views")!, root, tools);

  new Floor(find(".js-floor", root)!, lab, new KitchenSwitches(outside));
  new Curtain(find(".js-bench", root)!, lab);
  new ClusterChip(find(".js-chip")!, lab);
  const changeClock = () => {
    show("controls");
    controls?.show("clock");
  };
  new ClockChip(find(".js-clock")!, outside, outside.panels.has("clock") ? changeClock : undefined);
  new IdleWatch(root, lab);
  new LevelProgress(lab, Number(root.dataset.total));
  liveValues(lesson, lab);
  explainTerms(lesson);

  const run = (text: string) => {
    show("terminal", true);
    terminals.run(text);
  };
  for (const e of all(".js-command", root)) new Command(e, run);
  for (const e of all(".js-manifest", root)) new Manifest(e, files);
  for (const e of all(".js-exercise", root)) new ExerciseCard(e, lab);
  for (const e of all(".js-quiz", root)) new Quiz(e, `/courses/${lab.course}/levels/${lab.level}`);

  root.addEventListener("show-record", (e) => {
    show("record");
    record.showObject(String((e as CustomEvent).detail));
  });
  root.addEventListener("type-command", (e) => run(String((e as CustomEvent).detail)));
  root.addEventListener("show-terminal", (e) => {
    show("terminal", true);
    terminals.select(String((e as CustomEvent).detail) || "main");
  });

  const kept = recall("tool");
  if (!narrow()) tools.show(kept === "files" || kept === "record" || (kept === "controls" && controls) ? kept : "terminal");
  if (root.dataset.missing === undefined) void lab.open();
  // For browser tests and curious people: what the terminal shows.
  Object.defineProperty(window, "kubistro", { value: Object.freeze({ terminalText: () => terminals.text(), state: () => lab.state, last: () => lab.stream?.last ?? 0 }) });
}

setLang(document.documentElement.lang);
for (const e of all(".js-theme")) new ThemeSwitch(e);
for (const e of all(".js-lab")) startLab(e);
for (const e of all(".js-quizzes")) new Quizzes(e);
if (document.body.hasAttribute("data-preview")) followCourses();
