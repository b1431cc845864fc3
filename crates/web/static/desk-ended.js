// Sessions in the agent's list: the open ones, and those that ended before their eyes until they are closed.
import { view } from "./desk-kit.js";

/**
 * @typedef {import("./client.js").Client} Client
 * @typedef {import("./client.js").Session} Session
 */

/** So many ended ones come back after a reload. */
const MOST_KEPT = 20;

export class Ended {
  #client;
  #changed;
  /** @type {Set<string>} */
  #kept = new Set(view.get("ended") ?? []);
  /** @type {Set<string>} */
  #opening = new Set();

  /** @param {Client} client @param {() => void} changed */
  constructor(client, changed) {
    this.#client = client;
    this.#changed = changed;
    client.on("change", (session) => this.#ended(session));
    client.on("state", ({ state }) => {
      if (state === "ready") this.#reopen();
    });
  }

  get any() {
    return this.#kept.size > 0;
  }

  /** @param {string} sessionId */
  has(sessionId) {
    return this.#kept.has(sessionId);
  }

  /** What belongs in the list; not what is merely looked at. @returns {Session[]} */
  listed() {
    return [...this.#client.sessions.values()].filter(({ sessionId, readOnly }) => !readOnly || this.#kept.has(sessionId));
  }

  /** @param {string} sessionId */
  opening(sessionId) {
    return this.#opening.has(sessionId);
  }

  /** Reads a session that is not open any more; false when it is not to be read. @param {string} sessionId */
  async open(sessionId) {
    this.#opening.add(sessionId);
    try {
      const { sessions } = await this.#client.listSessions({ scope: "visitor", sessionId });
      const entry = sessions.find((session) => session.sessionId === sessionId);
      // One of very many may not be on the first page; its messages are there all the same.
      await this.#client.open(entry ?? sessionId);
      return true;
    } catch {
      return false;
    } finally {
      this.#opening.delete(sessionId);
    }
  }

  /** @param {string} sessionId */
  dismiss(sessionId) {
    this.#kept.delete(sessionId);
    this.#client.forget(sessionId);
    this.#keep();
  }

  dismissAll() {
    for (const sessionId of [...this.#kept]) this.dismiss(sessionId);
  }

  /** @param {Session} session */
  #ended({ sessionId, status, readOnly }) {
    if (status !== "ended" || readOnly || this.#kept.has(sessionId)) return;
    this.#kept.add(sessionId);
    this.#keep();
  }

  /** After a reload the ended ones are not among those that the gateway tells of. */
  async #reopen() {
    for (const sessionId of this.#kept) {
      if (this.#client.sessions.has(sessionId) || this.#opening.has(sessionId)) continue;
      if (!(await this.open(sessionId))) this.#kept.delete(sessionId);
    }
    this.#keep();
  }

  #keep() {
    view.set("ended", [...this.#kept].slice(-MOST_KEPT));
    this.#changed();
  }
}
