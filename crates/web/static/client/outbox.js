// Messages that the server has not acknowledged: kept, in order per session, sent again under the same key.

const DEFAULT_RETRY_MS = 1_000;
const ANSWER_MS = 20_000;

/**
 * @typedef {object} Unsent
 * @property {string} clientMsgId the idempotency key; never changes
 * @property {string | null} sessionId null until the user's session is known
 * @property {string} msgType
 * @property {string} content
 *
 * @typedef {Unsent & {ref: string | null}} Entry `ref` labels the attempt that is under way
 * @typedef {{entries: Entry[], held: any, answer: any, refusals: number}} Lane
 *
 * @typedef {object} OutboxOptions
 * @property {() => string} nextRef
 * @property {(entry: Unsent, ref: string) => boolean} post false when there is no connection
 * @property {(entry: Unsent, error: import("./error.js").ChatError) => void} onFailed
 * @property {(entries: Unsent[]) => void} onChange the unsent messages of all sessions, for keeping
 */

export class Outbox {
  #options;
  #up = false;
  /** @type {Map<string | null, Lane>} */
  #lanes = new Map();

  /** @param {OutboxOptions} options */
  constructor(options) {
    this.#options = options;
  }

  /** @param {Unsent} unsent */
  add(unsent) {
    this.#lane(unsent.sessionId).entries.push({ ...unsent, ref: null });
    this.#changed();
    this.#flush(unsent.sessionId);
  }

  /** Puts what a former page kept before what this one added. @param {Unsent[]} kept */
  restore(kept) {
    for (const unsent of [...kept].reverse()) {
      const lane = this.#lane(unsent.sessionId);
      if (lane.entries.some((entry) => entry.clientMsgId === unsent.clientMsgId)) continue;
      lane.entries.unshift({ ...unsent, ref: null });
    }
    this.#changed();
    for (const sessionId of this.#lanes.keys()) this.#flush(sessionId);
  }

  /** @param {string} clientMsgId */
  has(clientMsgId) {
    return this.#entries().some((entry) => entry.clientMsgId === clientMsgId);
  }

  /** @param {string | null} sessionId @returns {Unsent[]} */
  list(sessionId) {
    return [...(this.#lanes.get(sessionId)?.entries ?? [])];
  }

  /** The user's session is known now: what waited for it follows what it already has. @param {string} sessionId */
  adopt(sessionId) {
    const orphans = this.#lanes.get(null)?.entries ?? [];
    this.#lanes.delete(null);
    if (!orphans.length) return;
    for (const entry of orphans) entry.sessionId = sessionId;
    this.#lane(sessionId).entries.push(...orphans);
    this.#changed();
    this.#flush(sessionId);
  }

  /** A connection is ready: everything unacknowledged goes out again. */
  up() {
    this.#up = true;
    for (const sessionId of this.#lanes.keys()) this.#flush(sessionId);
  }

  /** The connection went: no attempt is under way any more, no refusal holds. */
  down() {
    this.#up = false;
    for (const lane of this.#lanes.values()) this.#rewind(lane, 0);
  }

  /** @param {string} clientMsgId @returns {Unsent | undefined} */
  accept(clientMsgId) {
    for (const lane of this.#lanes.values()) {
      const index = lane.entries.findIndex((entry) => entry.clientMsgId === clientMsgId);
      if (index < 0) continue;
      lane.refusals = 0;
      return this.#remove(lane, index);
    }
    return undefined;
  }

  /**
   * An attempt was refused. For load: this one and all later ones of its session wait, in order (M6).
   * For good: it failed, and the later ones go on.
   * @param {string} ref @param {import("./error.js").ChatError} error
   */
  refuse(ref, error) {
    for (const lane of this.#lanes.values()) {
      const index = lane.entries.findIndex((entry) => entry.ref === ref);
      if (index < 0) continue;
      // A token that ran out is the connection's affair to renew; the message stays.
      const waits = error.retryable || error.code === "token_expired" || error.code === "unauthenticated";
      if (waits) this.#hold(lane, index, error.retryAfterMs);
      else this.#options.onFailed(this.#remove(lane, index), error);
      return;
    }
  }

  /** @param {Lane} lane @param {number} index @param {number | undefined} afterMs */
  #hold(lane, index, afterMs) {
    const sessionId = lane.entries[index].sessionId;
    this.#rewind(lane, index);
    const delay = afterMs ?? DEFAULT_RETRY_MS * 2 ** Math.min(lane.refusals++, 4);
    lane.held = setTimeout(() => {
      lane.held = null;
      this.#flush(sessionId);
    }, delay);
  }

  /** Forgets the attempts from `index` on; a late refusal of one of them then finds nothing to hold. @param {Lane} lane @param {number} index */
  #rewind(lane, index) {
    clearTimeout(lane.held);
    clearTimeout(lane.answer);
    lane.held = lane.answer = null;
    for (const entry of lane.entries.slice(index)) entry.ref = null;
  }

  /** @param {string | null} sessionId */
  #flush(sessionId) {
    const lane = this.#lanes.get(sessionId);
    if (!this.#up || sessionId === null || !lane || lane.held) return;
    for (const entry of lane.entries) {
      if (entry.ref) continue;
      const ref = this.#options.nextRef();
      if (!this.#options.post(entry, ref)) return;
      entry.ref = ref;
    }
    this.#awaitAnswer(lane, sessionId);
  }

  /** No answer at all on a living connection: the same keys again. @param {Lane} lane @param {string} sessionId */
  #awaitAnswer(lane, sessionId) {
    clearTimeout(lane.answer);
    if (!lane.entries.length) return;
    lane.answer = setTimeout(() => {
      this.#rewind(lane, 0);
      this.#flush(sessionId);
    }, ANSWER_MS);
  }

  /** @param {Lane} lane @param {number} index */
  #remove(lane, index) {
    const [entry] = lane.entries.splice(index, 1);
    if (!lane.entries.length) {
      this.#rewind(lane, 0);
      this.#lanes.delete(entry.sessionId);
    }
    this.#changed();
    return entry;
  }

  /** @param {string | null} sessionId */
  #lane(sessionId) {
    let lane = this.#lanes.get(sessionId);
    if (!lane) this.#lanes.set(sessionId, (lane = { entries: [], held: null, answer: null, refusals: 0 }));
    return lane;
  }

  #entries() {
    return [...this.#lanes.values()].flatMap((lane) => lane.entries);
  }

  #changed() {
    this.#options.onChange(this.#entries().map(({ ref, ...unsent }) => unsent));
  }
}
