// The client library of kefu: what pages, widgets, bots and tests build on. Browsers and Node 22+
// (Node 20 with `connect({WebSocket})`). Types and their meaning: client.d.ts. Events and payloads: docs/protocol.md.
import { CALLS, CHANGES } from "./client/calls.js";
import { ChatError } from "./client/error.js";
import { Outbox } from "./client/outbox.js";
import { Session } from "./client/session.js";
import { upload } from "./client/upload.js";

export { ChatError };

const PAGE = 50;
/** Above every real `seq`, and small enough for every integer type. */
const LAST_SEQ = 2_000_000_000;
const RETRY_MS = 1_000;

/** @param {import("./client.js").ConnectOptions} options */
export function connect(options) {
  const client = new Client(options);
  client.reconnect();
  return client;
}

class Client extends Outbox {
  limits = { maxChars: 500, maxUploadBytes: 2_097_152, page: PAGE };
  /** @type {any} */
  agent = null;
  line = { sessions: [], total: 0, version: -1 };

  #base;
  #gone = new AbortController();
  /** @type {((error: unknown) => void)[]} */
  #consults = [];
  /** What the server forgets with the connection, said again on the next. @type {Map<string, [string, object]>} */
  #standing = new Map();
  /** Receipts have no answer: those of the last heartbeats are said again after a cut. @type {object[]} */
  #receipts = [];
  #proven = 0;

  /** @param {import("./client.js").ConnectOptions} options */
  constructor(options) {
    const url = new URL(options.url ?? import.meta.url);
    if (!options.url || url.pathname === "/") url.pathname = "/ws";
    url.protocol = url.protocol.replace("http", "ws");
    super(options, url.href);
    this.#base = url.href.replace("ws", "http");
    // Sleeping tabs and changing networks kill sockets without a word (B73).
    const { signal } = this.#gone;
    for (const type of ["online", "pageshow", "visibilitychange"]) {
      globalThis.addEventListener?.(type, () => this.check(), { signal, capture: true });
    }
  }

  async clear() {
    this.close();
    this.#gone.abort();
    this.sessions.clear();
    await this._kept("clear");
  }

  /** @returns {Promise<any>} */
  consult() {
    const consulted = new Promise((resolve, reject) => this.#consults.push((error) => (error ? reject(error) : resolve(this.current))));
    consulted.catch(() => {});
    if (this.state === "closed") this.reconnect();
    else this._greet();
    return consulted;
  }

  /** @param {string} sessionId @param {string} msgId */
  markRead(sessionId, msgId) {
    const session = this.sessions.get(sessionId);
    if (session?._read(session._find(msgId)?.seq)) this.#acknowledge(session, { msgId, status: "read", cumulative: true });
  }

  /** @param {object} page */
  page(page) {
    this._stand("page", page);
    this.post("chat.page", page);
  }

  /** @param {string} event @param {any} payload */
  _stand(event, payload) {
    // What takes it back stands in its place, and is harmless to repeat.
    this.#standing.set(event.replace("un", "") + payload.sessionId, [`chat.${event}`, payload]);
  }

  /** @param {string} sessionId */
  async loadOlder(sessionId, limit = PAGE) {
    const session = this.sessions.get(sessionId);
    if (session?.hasOlder) floored(session, await this.#history(sessionId, { beforeSeq: session._floor + 1, limit }));
  }

  /** @param {any} message */
  refresh({ sessionId, seq }) {
    return this.#history(sessionId, { afterSeq: seq - 1, limit: 1 });
  }

  /** @param {any} looked */
  async open(looked) {
    const { sessionId = looked, status = "ended" } = looked;
    const known = this.sessions.get(sessionId);
    if (known) return known;
    const page = await this.#history(sessionId, { beforeSeq: LAST_SEQ });
    const session = this.#session(sessionId);
    session._update({ ...(looked.sessionId ? looked : {}), status, readOnly: true });
    for (const wire of page.messages) session._merge(wire);
    floored(session, page);
    this._emit("sessions");
    return session;
  }

  /** @param {string} sessionId */
  forget(sessionId) {
    this.sessions.delete(sessionId);
    this._emit("sessions");
  }

  /** @param {Blob} file @param {{sessionId?: string, onProgress?: (share: number) => void, signal?: AbortSignal}} [options] */
  upload(file, options = {}) {
    return upload(new URL("/api/v1/uploads", this.#base).href, this._token, options.sessionId ?? this._open?.sessionId, file, options);
  }

  /** @param {string} content */
  imageUrl(content) {
    const { href = "" } = URL.canParse(content, this.#base) ? new URL(content, this.#base) : {};
    return /^https?:/.test(href) ? href : null;
  }

  _hello() {
    const { source = "web", locale } = this._options;
    const intent = this.#consults.length ? "consult" : "resume";
    // What is here already: the answer then holds exactly what is missing (M4).
    const known = [...this.sessions.values()].filter((session) => session._floor >= 0 && !session.readOnly);
    const lastSeqs = Object.fromEntries(known.map((session) => [session.sessionId, session._contiguous]));
    const sessionId = this.current?.sessionId;
    return { source, locale, intent, sessionId, lastSeq: lastSeqs[/** @type {string} */ (sessionId)], lastSeqs };
  }

  _entered() {
    if (this.state === "ready") {
      this.#repeat();
      this._pumpAll();
    } else for (const session of this.sessions.values()) session._setTyping(false);
    if (this.state === "closed") for (const settle of this.#consults.splice(0)) settle(new ChatError(`${this.reason}`));
  }

  #repeat() {
    for (const [event, payload] of this.#standing.values()) this.post(event, payload);
  }

  /** @param {string} event @param {any} payload */
  _frame(event, payload) {
    const { sessionId } = payload;
    const session = this.sessions.get(sessionId);
    // A user's other tab may have opened the session that a frame speaks of.
    if (sessionId && !session && this._isUser && /new|assigned|position/.test(event)) this._greet();
    const name = event.slice(5);
    if (CHANGES[name]) session?._update({ ...payload, ...CHANGES[name] });
    switch (name) {
      case "session.assigned":
        // Who has just come knows nothing of the page.
        this.#repeat();
        break;
      case "connected":
        this.#connected(payload);
        break;
      case "message.new":
        // Acknowledged also when it is known: a push that comes again means that our receipt was lost.
        if (session) this.#received(session, [payload], true);
        break;
      case "history":
        if (session) this.#received(session, payload.messages);
        break;
      case "message.server_ack":
        this.#stored(payload);
        break;
      case "message.peer_ack":
        session?._receipt(payload);
        break;
      case "session.read":
        session?._read(payload.seq);
        break;
      case "typing":
        session?._setTyping(payload.isTyping);
        break;
      case "page":
        session?._update({ page: payload });
        break;
      case "offline_notice":
        this.current?._update({ agentsOnline: false, offlineMessage: payload.message, position: null });
        break;
      case "session.new":
        this.#catchUp({ status: "active", unreadCount: payload.unread, ...payload });
        this._emit("sessions");
        break;
      case "session.removed":
        this.forget(sessionId);
        break;
      case "pong":
        this.#receipts.splice(0, this.#proven);
        this.#proven = this.#receipts.length;
        break;
      case "agent.status":
        this._emit("agent", (this.agent = payload));
        break;
      case "queue.list":
        if (!(payload.version < this.line.version)) this._emit("line", (this.line = { ...this.line, total: payload.sessions.length, ...payload }));
    }
    this._emit(event, payload);
  }

  /** @param {any} connected */
  #connected(connected) {
    const { sessionId, agentInfo, unread = [], role = this.me.role, session: own = sessionId && { sessionId, agentInfo } } = connected;
    Object.assign(this.limits, connected.limits);
    this.me.role = role;
    if (this.state !== "ready") for (const receipt of this.#receipts) this.post("chat.message.ack", receipt);
    const open = connected.sessions ?? (own ? [own] : []);
    for (const session of this.sessions.values()) {
      // Lost or ended while away; one that was seen ending, or is only looked at, stays.
      const kept = this._isUser || session.readOnly || session.status === "ended" || open.some((/** @type {any} */ one) => one.sessionId === session.sessionId);
      if (!kept) this.sessions.delete(session.sessionId);
    }
    for (const session of open) this.#catchUp(session, unread.filter((/** @type {any} */ wire) => wire.sessionId === session.sessionId));
    if (this._isUser && own) this._enter(this.#session(own.sessionId));
    if (role === "agent") {
      // The line is not part of `chat.connected`, and its version starts anew with its server.
      this.line.version = -1;
      this.post("chat.queue.list");
    }
    this._emit("sessions");
    if (sessionId) for (const settle of this.#consults.splice(0)) settle(null);
    this._pumpAll();
  }

  /** Brings a session to the server's present state. @param {any} parts @param {any[]} [unread] */
  #catchUp(parts, unread = []) {
    const session = this.#session(parts.sessionId);
    const oldest = session._oldestUnread;
    session._update({ ...parts, readOnly: false });
    if (session._floor < 0) session._setFloor((unread[0]?.seq ?? session.lastSeq + 1) - 1);
    // A receipt is pushed once, when it happens: what came while we were away is read from history.
    this.#received(session, unread, false, oldest - 1);
  }

  /** @param {Session} session @param {any[]} wires @param {boolean} [pushed] @param {number} [from] */
  #received(session, wires, pushed, from) {
    for (const wire of wires) {
      const { msgId, senderType, status = "pending" } = wire;
      session._merge(wire, pushed);
      if (!session._isIncoming(senderType) || !/pending|failed/.test(status)) continue;
      this.#acknowledge(session, { msgId, status: "delivered" });
      session._receipt({ msgId, status: "delivered" });
    }
    this.#pull(session, from);
  }

  /** Pulls until nothing is missing; at first sight also a page of what was before. @param {Session} session @param {number} [from] */
  async #pull(session, from = LAST_SEQ) {
    if (session._pulling || session._floor < 0) return;
    session._pulling = true;
    try {
      for (let after = Math.min(from, session._contiguous); after < session.lastSeq; ) {
        const { messages } = await this.#history(session.sessionId, { afterSeq: after });
        after = messages.at(-1)?.seq ?? LAST_SEQ;
      }
      // An agent with many sessions needs the last line of each and what is unread; the rest comes when it is looked at.
      const wanted = this._isUser ? PAGE : Math.min(session.unreadCount || 1, PAGE);
      if (session.messages.length < wanted) await this.loadOlder(session.sessionId, wanted);
    } catch (error) {
      // After a lost connection the next `chat.connected` starts this again.
      const { retryable, code, retryAfterMs = RETRY_MS } = /** @type {any} */ (error);
      if (retryable && code !== "disconnected") setTimeout(() => this.#pull(session, from), retryAfterMs);
    }
    session._pulling = false;
  }

  /** @param {string} sessionId @param {object} position */
  #history(sessionId, position) {
    return this.request("chat.history", { sessionId, limit: PAGE, ...position });
  }

  /** @param {Session} session @param {object} receipt */
  #acknowledge({ readOnly }, receipt) {
    if (readOnly || this.me.role === "supervisor") return;
    this.#receipts.push(receipt);
    this.post("chat.message.ack", receipt);
  }

  /** @param {any} ack */
  #stored(ack) {
    this._kept("delete", ack.clientMsgId);
    for (const session of this.sessions.values()) {
      const message = /** @type {any} */ (session._settle(ack));
      if (!message) continue;
      session._receipt(ack);
      message._stored?.(message);
      this.#pull(session);
    }
  }

  /** @param {string} sessionId */
  #session(sessionId) {
    let session = this.sessions.get(sessionId);
    if (!session) this.sessions.set(sessionId, (session = new Session(sessionId, this._isUser, (changed) => this._emit("change", changed))));
    this._adopt(session);
    return session;
  }

}

for (const [call, event] of Object.entries(CALLS)) {
  /** @type {any} */ (Client.prototype)[call] = /** @this {Client} @param {any} payload */ function (payload = {}) {
    if (/watch|board/.test(event)) this._stand(event, payload);
    return this.request(`chat.${event}`, payload);
  };
}

/** @param {Session} session @param {{messages: any[], hasMore: boolean}} page the oldest page loaded so far */
function floored(session, { messages, hasMore }) {
  session._setFloor(hasMore ? messages[0].seq - 1 : 0);
}
