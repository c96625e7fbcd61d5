/** The server's clock, as far as the browser can tell, and how times are written. */
import { lang, t } from "./texts.ts";

let offset = 0;

/** Takes the server's time from a session frame. */
export function syncClock(now: string, local = Date.now()): void {
  const n = Date.parse(now);
  if (!Number.isNaN(n)) offset = n - local;
}

export function serverNow(): number {
  return Date.now() + offset;
}

/** 12:03:07 in the reader's own time zone. */
export function clockTime(iso: string): string {
  const d = new Date(iso);
  const two = (n: number) => String(n).padStart(2, "0");
  return `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}

/** 3.4 s, or 2 min 5 s. */
export function duration(ms: number): string {
  if (ms < 60_000) return t("time.seconds", (Math.max(0, ms) / 1000).toFixed(1));
  return t("time.minutes", Math.floor(ms / 60_000), Math.floor((ms % 60_000) / 1000));
}

/** How old something is, roughly: 40 s, 5 min, 2 h. */
export function age(iso: string | undefined): string {
  if (!iso) return "";
  const s = Math.max(0, Math.floor((serverNow() - Date.parse(iso)) / 1000));
  if (s < 60) return t("age.seconds", s);
  if (s < 3600) return t("age.minutes", Math.floor(s / 60));
  return t("age.hours", Math.floor(s / 3600));
}

export function fullTime(iso: string): string {
  return new Date(iso).toLocaleString(lang());
}
