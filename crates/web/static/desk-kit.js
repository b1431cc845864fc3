// What the console's parts share: keyed rows, drawing once a frame, the view that a reload keeps.
import { ChatError } from "./client.js";
import { w } from "./console-strings.js";
import { errorText } from "./shared/i18n.js";
import { storage } from "./storage.js";

/** What one can call a visitor by; nothing for one whose name is only their id. @param {{name?: string, userId?: string} | null | undefined} userInfo */
export function givenName(userInfo) {
  return userInfo?.name && userInfo.name !== userInfo.userId ? userInfo.name : undefined;
}

/** @param {{name?: string, userId?: string} | null | undefined} userInfo @param {string} sessionId */
export function visitorName(userInfo, sessionId) {
  return givenName(userInfo) ?? w("unnamed", { tail: (userInfo?.userId ?? sessionId).slice(-4) });
}

/** Writes a text only where it differs: an equal one would still cost a layout. @param {HTMLElement} element @param {string} text */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** The longest that a page in the background waits with drawing: its title still counts. */
const HIDDEN_MS = 200;

/** Runs `render` once for all changes up to the next frame. @param {() => void} render */
export function framed(render) {
  let frame = 0;
  /** @type {any} */
  let timer = null;
  const run = () => {
    cancelAnimationFrame(frame);
    clearTimeout(timer);
    timer = null;
    render();
  };
  return () => {
    if (timer !== null) return;
    frame = requestAnimationFrame(run);
    // Frames stop in a tab that is not in front.
    timer = setTimeout(run, HIDDEN_MS);
  };
}

/** Rows are kept by key, so that a focused button stays focused while the list changes around it. */
export class Rows {
  #make;
  #list;
  /** @type {Map<string, any>} */
  #rows = new Map();

  /** @param {HTMLElement} list @param {(key: string) => any} make gives an object with `element` */
  constructor(list, make) {
    this.#list = list;
    this.#make = make;
  }

  /** @param {string[]} keys @returns {any[]} a row for each key, in order */
  show(keys) {
    const wanted = new Set(keys);
    for (const [key, row] of this.#rows) {
      if (wanted.has(key)) continue;
      row.element.remove();
      this.#rows.delete(key);
    }
    return keys.map((key, index) => {
      const row = this.#rows.get(key) ?? this.#make(key);
      this.#rows.set(key, row);
      if (this.#list.children[index] !== row.element) this.#list.insertBefore(row.element, this.#list.children[index] ?? null);
      return row;
    });
  }
}

const VIEW = "kefu.console.view";

/** @returns {Record<string, any>} */
function kept() {
  try {
    return JSON.parse(storage.getItem(VIEW) ?? "{}");
  } catch {
    return {};
  }
}

let signedOut = false;

/** What is looked at and how, so that the console is the same after a reload. */
export const view = {
  /** @param {string} key */
  get: (key) => kept()[key],
  /** @param {string} key @param {unknown} value `null` forgets it */
  set(key, value) {
    if (!signedOut) storage.setItem(VIEW, JSON.stringify({ ...kept(), [key]: value ?? undefined }));
  },
  /** Forgets everything, also what the page would say while it goes. */
  forget() {
    signedOut = true;
    storage.clear();
  },
};

/** Refusals after which the same may work in a moment; commands are not repeated by themselves. */
const FOR_NOW = new Set(["rate_limited", "overloaded", "unavailable", "internal"]);

/**
 * A refused command, in the person's words.
 * @param {unknown} error @param {Record<string, string>} [own] words for codes that mean something special here
 * @param {Record<string, unknown>} [values]
 */
export function refusal(error, own = {}, values = {}) {
  const code = error instanceof ChatError ? error.code : "disconnected";
  if (own[code]) return own[code];
  if (code === "agent_unavailable") return w("agentUnavailable");
  return FOR_NOW.has(code) ? w("forNow") : errorText(code, values);
}
