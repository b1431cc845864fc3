// The client library of kefu: what pages, widgets, bots and tests build on. Browsers and Node 22+
// (Node 20 with `connect({WebSocket})`). Types and their meaning: client.d.ts. Events and payloads: docs/protocol.md.
import { ChatError } from "./client/error.js";
import { keeper } from "./client/keeper.js";
import { Link } from "./client/link.js";
import { Session } from "./client/session.js";
import { upload } from "./client/upload.js";

export { ChatError };

/** @typedef {import("./client.js").Message} Message */

const PAGE = 50;
/** Above every real `seq`, and small enough for every integer type. */
const LAST_SEQ = 2_000_000_000;
const RETRY_MS = 1_000;
const RESTORE_MS = 2_000;
const TYPING_AGAIN_MS = 3_000;
const TYPING_SILENCE_MS = 5_000;

/** Calls that are one frame and its answer. */
const CALLS = {
  end: "session.end",
  rate: "session.rate",
  online: "agent.online",
  offline: "agent.offline",
  transfer: "session.transfer",
  claim: "session.claim",
  agents: "agent.list",
  queue: "queue.list",
  history: "history",
  addNote: "note.add",
  notes: "note.list",
  canned: "canned.list",
  putCanned: "canned.put",
  deleteCanned: "canned.delete",
  listSessions: "sessions.list",
  watch: "session.watch",
  unwatch: "session.unwatch",
  board: "board",
  explain: "assignment.explain",
};

/** What a frame changes of its session, besides what it says itself. @type {Record<string, object>} */
const CHANGES = {
  "session.assigned": { status: "active", position: null },
  "session.requeued": { status: "waiting", agentInfo: null },
  "session.ended": { status: "ended", position: null },
  "session.rated": {},
  "queue.position": { agentsOnline: true },
};

/** @param {import("./client.js").ConnectOptions} options */
export function connect(options) {
  const client = new Client(options);
  client.reconnect();
  return client;
}

class Client extends Link {
  limits = { maxChars: 500, maxUploadBytes: 2_097_152, page: PAGE };
  me = { id: "", role: "user" };
  /** @type {Session | null} */
  current = null;
  /** @type {Map<string, Session>} */
  sessions = new Map();
  /** @type {any} */
  agent = null;
  line = { sessions: [], total: 0, version: -1 };

  #base;
  #gone = new AbortController();
  /** Unsent messages whose session is not known here (yet). @type {any[]} */
  #loose = [];
  /** @type {((error: unknown) => void)[]} */
  #consults = [];
  /** What the server forgets with the connection, said again on the next. @type {Map<string, [string, object]>} */
  #standing = new Map();
  /** Receipts have no answer: those of the last heartbeats are said again after a cut. @type {object[]} */
  #receipts = [];
  #proven = 0;
  #typedAt = 0;
  /** @type {any} */
  #silence;
  /** @type {string | undefined} */
  #restored;
  #restoring = false;
  #lastKey = 0;

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
    await this.#kept("clear");
  }

  /** @returns {Promise<any>} */
  consult() {
    const consulted = new Promise((resolve, reject) => this.#consults.push((error) => (error ? reject(error) : resolve(this.current))));
    consulted.catch(() => {});
    if (this.state === "closed") this.reconnect();
    else this._greet();
    return consulted;
  }

  /** @param {{sessionId?: string, content: string, msgType?: string}} draft @returns {Promise<any>} */
  send({ sessionId = this.#open?.sessionId ?? "", content, msgType = "text" }) {
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
    this.#kept("delete", message.clientMsgId);
    const session = this.sessions.get(message.sessionId);
    session?._remove(message);
    if (session) this.#pump(session);
  }

  /** @param {string} sessionId @param {string} msgId */
  markRead(sessionId, msgId) {
    const session = this.sessions.get(sessionId);
    if (session?._read(session._find(msgId)?.seq)) this.#acknowledge(session, { msgId, status: "read", cumulative: true });
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
    return upload(new URL("/api/v1/uploads", this.#base).href, this._token, options.sessionId ?? this.#open?.sessionId, file, options);
  }

  /** @param {string} content */
  imageUrl(content) {
    const { href = "" } = URL.canParse(content, this.#base) ? new URL(content, this.#base) : {};
    return /^https?:/.test(href) ? href : null;
  }

  /** The open session of a user. */
  get #open() {
    return this.current?.status === "ended" ? null : this.current;
  }

  get #isUser() {
    return this.me.role === "user";
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

  /** Reads a token without trusting it: only to know which messages are our own. @param {string} token */
  _identify(token) {
    this._token = token;
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

  _entered() {
    if (this.state === "ready") {
      this.#repeat();
      this.#pumpAll();
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
    if (sessionId && !session && this.#isUser && /new|assigned|position/.test(event)) this._greet();
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
      const kept = this.#isUser || session.readOnly || session.status === "ended" || open.some((/** @type {any} */ one) => one.sessionId === session.sessionId);
      if (!kept) this.sessions.delete(session.sessionId);
    }
    for (const session of open) this.#catchUp(session, unread.filter((/** @type {any} */ wire) => wire.sessionId === session.sessionId));
    if (this.#isUser && own) this.#enter(this.#session(own.sessionId));
    if (role === "agent") {
      // The line is not part of `chat.connected`, and its version starts anew with its server.
      this.line.version = -1;
      this.post("chat.queue.list");
    }
    this._emit("sessions");
    if (sessionId) for (const settle of this.#consults.splice(0)) settle(null);
    this.#pumpAll();
  }

  /** The user's session; what was not sent in the last one moves along. @param {Session} session */
  #enter(session) {
    if (this.current && this.current !== session) this.#loose.push(...this.current._unsent.splice(0));
    this.current = session;
    this.#adopt(session);
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
      const wanted = this.#isUser ? PAGE : Math.min(session.unreadCount || 1, PAGE);
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
    this.#kept("delete", ack.clientMsgId);
    for (const session of this.sessions.values()) {
      const message = /** @type {any} */ (session._settle(ack));
      if (!message) continue;
      session._receipt(ack);
      message._stored?.(message);
      this.#pull(session);
    }
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

  #pumpAll() {
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
    const { code, retryable, retryAfterMs = RETRY_MS } = error;
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

  /** @param {string} sessionId */
  #session(sessionId) {
    let session = this.sessions.get(sessionId);
    if (!session) this.sessions.set(sessionId, (session = new Session(sessionId, this.#isUser, (changed) => this._emit("change", changed))));
    this.#adopt(session);
    return session;
  }

  /** Unsent messages find their session; those of a user's ended one come to the present one, not sent. @param {Session} session */
  #adopt(session) {
    const open = this.#isUser && session === this.#open;
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
    return { senderType: this.#isUser ? "user" : "agent", senderId: this.me.id, rev: 0, ...entry, state: entry.error ? "failed" : "sending" };
  }

  /** @param {string} id */
  async #restore(id) {
    this.#restored = id;
    this.#restoring = true;
    const late = new Promise((resolve) => setTimeout(resolve, RESTORE_MS));
    const kept = (await Promise.race([this.#kept("all"), late])) ?? [];
    this.#restoring = false;
    this.#loose.push(...kept.map((/** @type {any} */ entry) => this.#unsent(entry)));
    for (const session of this.sessions.values()) this.#adopt(session);
    this.#pumpAll();
  }

  /** @param {any} message */
  #keep({ clientMsgId, sessionId, msgType, content, time, error }) {
    this.#kept("put", { clientMsgId, sessionId, msgType, content, time, error });
  }

  /** @param {"all" | "put" | "delete" | "clear"} call @param {any} [value] */
  async #kept(call, value) {
    const { storage = keeper } = this._options;
    try {
      return await storage?.[call]?.(this.me.id, value);
    } catch {
      // No, blocked or full storage only means that unsent messages live as long as the page.
    }
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
