// What a person writes: kept until it is stored, sent one at a time under the same key (M6), and found again after a reload.
import { ChatError } from "./error.js";
import { keeper } from "./keeper.js";
import { Link } from "./link.js";

/** @typedef {import("./session.js").Session} Session */

const REFUSED_MS = 1_000;
const RESTORE_MS = 2_000;
const TYPING_AGAIN_MS = 3_000;
const TYPING_SILENCE_MS = 5_000;

export class Outbox extends Link {
  me = { id: "", role: "user" };
  /** @type {Session | null} */
  current = null;
  /** @type {Map<string, Session>} */
  sessions = new Map();

  /** Unsent messages whose session is not known here (yet). @type {any[]} */
  #loose = [];
  #typedAt = 0;
  /** @type {any} */
  #silence;
  /** @type {string | undefined} */
  #restored;
  #restoring = false;
  #lastKey = 0;

  /** @param {{sessionId?: string, content: string, msgType?: string}} draft @returns {Promise<any>} */
  send({ sessionId = this._open?.sessionId ?? "", content, msgType = "text" }) {
    this.#lastKey = Math.max(Date.now(), this.#lastKey + 1);
    // Not `randomUUID`, which pages on plain http do not have.
    const clientMsgId = this.#lastKey.toString(36) + crypto.getRandomValues(new Uint32Array(3)).join("");
    const message = this.#unsent({ clientMsgId, sessionId, msgType, content, time: this.#lastKey });
    (this.sessions.get(sessionId)?._unsent ?? this.#loose).push(message);
    return this.#dispatch(message);
  }

  /** @param {any} message */
  retry(message) {
    if (message.state !== "failed") return this.check();
    message.state = "sending";
    message.error = undefined;
    this.#dispatch(message);
  }

  /** @param {any} message */
  discard(message) {
    this._kept("delete", message.clientMsgId);
    const session = this.sessions.get(message.sessionId);
    session?._remove(message);
    if (session) this.#pump(session);
  }

  /** @param {string} sessionId */
  typing(sessionId, isTyping = true) {
    clearTimeout(this.#silence);
    if (isTyping) this.#silence = setTimeout(() => this.typing(sessionId, false), TYPING_SILENCE_MS);
    const now = Date.now();
    if (isTyping ? now - this.#typedAt < TYPING_AGAIN_MS : !this.#typedAt) return;
    this.#typedAt = isTyping ? now : 0;
    this.post("chat.typing", { sessionId, isTyping });
  }

  /** The open session of a user. */
  get _open() {
    return this.current?.status === "ended" ? null : this.current;
  }

  get _isUser() {
    return this.me.role === "user";
  }

  /** Reads a token without trusting it: only to know which messages are our own. @param {string} token */
  _identify(token) {
    this._token = token;
    /** @type {any} */
    let claims = {};
    try {
      claims = JSON.parse(atob(token.split(".")[1].replaceAll("-", "+").replaceAll("_", "/")));
    } catch {
      // The server says what is wrong with it.
    }
    const { sub: id = "", role = "user" } = claims;
    this.me = { id, role: this._options.role ?? role };
    if (this.#restored !== id) this.#restore(id);
  }

  /** The user's session; what was not sent in the last one moves along. @param {Session} session */
  _enter(session) {
    if (this.current && this.current !== session) this.#loose.push(...this.current._unsent.splice(0));
    this.current = session;
    this._adopt(session);
  }

  /** @param {any} message @returns {Promise<any>} */
  #dispatch(message) {
    const session = this.sessions.get(message.sessionId);
    const stored = new Promise((resolve, reject) => Object.assign(message, { _stored: resolve, _refused: reject }));
    // Who only watches the session need not handle the refusal a second time.
    stored.catch(() => {});
    // A sent message ends typing by itself (P3).
    clearTimeout(this.#silence);
    this.#typedAt = 0;
    this.#keep(message);
    if (session) this.#pump(session);
    return stored;
  }

  _pumpAll() {
    for (const session of this.sessions.values()) this.#pump(session);
  }

  /** Sends the oldest unsent message, then the next: one at a time, so that a refusal never lets a later one pass (M6). @param {Session} session */
  async #pump(session) {
    session._change();
    const [message] = session._unsent;
    if (!message || session._busy || this.#restoring || message.state === "failed" || this.state !== "ready") return;
    session._busy = true;
    const { sessionId, msgType, content, clientMsgId } = message;
    try {
      await this.request("chat.message.send", { sessionId, msgType, content, clientMsgId });
    } catch (error) {
      await this.#refused(message, /** @type {any} */ (error));
    }
    session._busy = false;
    this.#pump(session);
  }

  /** @param {any} message @param {any} error */
  async #refused(message, error) {
    const { code, retryable, retryAfterMs = REFUSED_MS } = error;
    // A connection that ended is mended by the next one, which also sends again; a token that ran out likewise.
    if (code === "disconnected") return;
    if (!retryable && !/auth|token/.test(code)) return this.#fail(message, error);
    this._emit("error", error);
    await new Promise((resolve) => setTimeout(resolve, retryAfterMs));
  }

  /** @param {any} message @param {any} error */
  #fail(message, error) {
    Object.assign(message, { state: "failed", error: error.code, rev: message.rev + 1 });
    this.#keep(message);
    message._refused?.(error);
    this.sessions.get(message.sessionId)?._change();
  }

  /** Unsent messages find their session; those of a user's ended one come to the present one, not sent. @param {Session} session */
  _adopt(session) {
    const open = this._isUser && session === this._open;
    const mine = this.#loose.filter((message) => open || message.sessionId === session.sessionId);
    this.#loose = this.#loose.filter((message) => !mine.includes(message));
    for (const message of mine) {
      const moved = message.sessionId && message.sessionId !== session.sessionId;
      message.sessionId = session.sessionId;
      if (moved) this.#fail(message, new ChatError("session_closed"));
      else this.#keep(message);
    }
    // Keys grow with time: what a former page wrote comes first.
    if (mine.length) session._unsent = [...session._unsent, ...mine].sort((one, other) => (one.clientMsgId < other.clientMsgId ? -1 : 1));
  }

  /** @param {any} entry */
  #unsent(entry) {
    return { senderType: this._isUser ? "user" : "agent", senderId: this.me.id, rev: 0, ...entry, state: entry.error ? "failed" : "sending" };
  }

  /** @param {string} id */
  async #restore(id) {
    this.#restored = id;
    this.#restoring = true;
    const late = new Promise((resolve) => setTimeout(resolve, RESTORE_MS));
    const kept = (await Promise.race([this._kept("all"), late])) ?? [];
    this.#restoring = false;
    this.#loose.push(...kept.map((/** @type {any} */ entry) => this.#unsent(entry)));
    for (const session of this.sessions.values()) this._adopt(session);
    this._pumpAll();
  }

  /** @param {any} message */
  #keep({ clientMsgId, sessionId, msgType, content, time, error }) {
    this._kept("put", { clientMsgId, sessionId, msgType, content, time, error });
  }

  /** @param {"all" | "put" | "delete" | "clear"} call @param {any} [value] */
  async _kept(call, value) {
    const { storage = keeper } = this._options;
    try {
      return await storage?.[call]?.(this.me.id, value);
    } catch {
      // No, blocked or full storage only means that unsent messages live as long as the page.
    }
  }
}
