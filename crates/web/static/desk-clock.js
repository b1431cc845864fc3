// Times and durations in the reader's words, and the one tick that keeps them true.
import { w } from "./console-strings.js";
import { language } from "./shared/i18n.js";

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/** @type {Map<string, Intl.DateTimeFormat>} Making one costs more than all that is written with it. */
const formats = new Map();

/** @param {number} time @param {Intl.DateTimeFormatOptions} options */
function written(time, options) {
  const key = language() + JSON.stringify(options);
  let format = formats.get(key);
  if (!format) formats.set(key, (format = new Intl.DateTimeFormat(language(), options)));
  return format.format(time);
}

/** @param {number} time Unix milliseconds */
export function clockOf(time) {
  return written(time, { hour: "2-digit", minute: "2-digit" });
}

/** @param {number} time Unix milliseconds */
export function dateOf(time) {
  return written(time, { day: "numeric", month: "short", year: "numeric" });
}

/** @param {number} time Unix milliseconds */
export function dateAndTime(time) {
  return written(time, { dateStyle: "medium", timeStyle: "short" });
}

/** How far the server's clock is ahead of this machine's. */
let skewMs = 0;

/** Waiting times are told from the server's clock: a wrong one here must not make them wrong. @param {number | undefined} serverTime */
export function setClock(serverTime) {
  if (serverTime) skewMs = serverTime - Date.now();
}

/** The server's time, in Unix milliseconds. */
export function serverNow() {
  return Date.now() + skewMs;
}

/** Days since the epoch on the reader's calendar. @param {number} time Unix milliseconds */
export function dayOf(time) {
  return Math.floor((time - new Date(time).getTimezoneOffset() * MINUTE_MS) / DAY_MS);
}

/** @param {number} time Unix milliseconds @param {number} [now] */
export function dayName(time, now = serverNow()) {
  const ago = dayOf(now) - dayOf(time);
  if (ago === 0) return w("today");
  return ago === 1 ? w("yesterday") : written(time, { weekday: "long", day: "numeric", month: "long", year: "numeric" });
}

/** A duration with one unit, or two from an hour on. @param {number} ms */
export function duration(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  if (seconds < 60) return w("seconds", { count: seconds });
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return w("minutes", { count: minutes });
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? w("hours", { count: hours, minutes: minutes % 60 }) : w("days", { count: Math.floor(hours / 24) });
}

/** @type {Set<() => void>} */
const tickers = new Set();
/** @type {any} */
let ticking = null;

/** Calls `listener` once a second while the page is in front. @param {() => void} listener @returns {() => void} ends it */
export function everySecond(listener) {
  tickers.add(listener);
  ticking ??= setInterval(() => {
    if (document.visibilityState !== "visible") return;
    for (const each of tickers) each();
  }, 1_000);
  return () => {
    tickers.delete(listener);
    if (tickers.size > 0) return;
    clearInterval(ticking);
    ticking = null;
  };
}

/**
 * Since when the visitor waits for an answer: the first of their messages that none of ours follows.
 * @param {import("./client.js").Session} store @param {import("./client.js").Message[]} messages its own
 * @param {number} [known] what was known before a reload, which loads the last message only
 * @returns {number | null} Unix milliseconds
 */
export function waitingSince({ status, hasOlder }, messages, known = Infinity) {
  if (status !== "active") return null;
  let since = null;
  for (let index = messages.length - 1; index >= 0; index--) {
    const { senderType, time } = messages[index];
    if (senderType === "agent" || senderType === "bot") return since;
    if (senderType === "user") since = time ?? null;
  }
  return since !== null && hasOlder ? Math.min(since, known) : since;
}
