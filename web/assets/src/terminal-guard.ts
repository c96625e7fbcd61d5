/**
 * What a program prints must not act: a Pod's log is written by strangers, and the
 * scrollback is drawn again at every visit. So the terminal answers no questions
 * (answers would be typed into the shell), reports no mouse and no focus, and makes no links.
 */
import type { IFunctionIdentifier, Terminal } from "@xterm/xterm";

/** Device attributes, device status, modes, window and settings reports (xterm's ctlseqs). */
const questions: IFunctionIdentifier[] = [
  { final: "c" },
  { prefix: ">", final: "c" },
  { prefix: "=", final: "c" },
  { final: "n" },
  { prefix: "?", final: "n" },
  { intermediates: "$", final: "p" },
  { prefix: "?", intermediates: "$", final: "p" },
  { prefix: ">", final: "q" },
  { final: "t" },
];

/** Colours: palette, foreground, background, cursor. A question mark asks for one. */
const colours = [4, 5, 10, 11, 12];

/** DEC modes that make the terminal type by itself: mouse and focus reports. */
const reporting = new Set([9, 1000, 1001, 1002, 1003, 1004]);

export function guard(term: Terminal): void {
  for (const id of questions) term.parser.registerCsiHandler(id, () => true);
  term.parser.registerDcsHandler({ intermediates: "$", final: "q" }, () => true);
  for (const n of colours) term.parser.registerOscHandler(n, (data) => data.split(";").includes("?"));
  term.parser.registerOscHandler(8, () => true);
  term.parser.registerCsiHandler({ prefix: "?", final: "h" }, (params) => params.flat().some((p) => reporting.has(p)));
}
