// The client library of kefu: what pages, widgets, bots and tests build on. Browsers and Node 22+
// (Node 20 with `connect({WebSocket})`). Events and payloads are those of docs/protocol.md.
import { claimsOf, httpBase, socketUrl } from "./client/address.js";
import { PAGE, SessionBook } from "./client/book.js";
import { ChatError } from "./client/error.js";
import { Link } from "./client/link.js";
import { Outbox } from "./client/outbox.js";
import { watchPage } from "./client/page-watch.js";
import { Typing } from "./client/typing.js";
import { upload } from "./client/upload.js";

export { ChatError };

/**
 * @typedef {import("./client/session-store.js").Message} Message
 * @typedef {import("./client/session-store.js").SessionStore} SessionStore
 * @typedef {import("./client/link.js").LinkState} LinkState
 * @typedef {import("./client/outbox.js").Unsent} Unsent
 *
 * @typedef {object} KeptStorage Web Storage, or anything alike that answers with promises
 * @property {(key: string) => string | null | Promise<string | null>} getItem
 * @property {(key: string, value: string) => unknown} setItem
 *
 * @typedef {object} ConnectOptions
 * @property {string} [url] address of the gateway's socket, or of the gateway (default: where this module came from)
 * @property {string} [token] a fixed token; without `getToken` an expired one ends the connection
 * @property {(ask: {refresh: boolean}) => string | Promise<string>} [getToken] `refresh`: the last one was refused or ran out
 * @property {string} [source] where the person comes from, shown to agents
 * @property {"user" | "agent" | "supervisor"} [role] role in the token (default: read from the token)
 * @property {string} [locale] language of the server's own texts
 * @property {KeptStorage} [storage] keeps unsent messages over a reload; one tab each (`sessionStorage`)
 * @property {typeof globalThis.WebSocket} [WebSocket]
 * @property {() => number} [random] uniform in [0, 1), for the jitter
 */

/**
 * Connects and stays connected until `close()`.
 *
 * Nobody is put into the waiting line by that: only `consult()`, a person's act, opens a session.
 * @param {ConnectOptions} options
 */
export function connect(options) {
  const client = new Client(options);
  client.reconnect();
  return client;
}

/**
 * Dispatches every server event under its own name (`detail` is the payload), and besides:
 * `state` (`{state, reason}`), `change` (a `SessionStore` changed), `sessions` (one came or went),
 * `agent` (own availability), `line` (the waiting line).
 */
export class Client extends EventTarget {
  limits = { maxChars: 500, maxUploadBytes: 2_097_152, page: PAGE };
  /** Why the state is `closed`: a close code or an error code. @type {number | string | undefined} */
  reason;

  #options;
  #base;
  /** @type {Link} */
  #link;
  #outbox;
  /** @type {SessionBook} */
  #book;
  #typing;
  #token = "";
  /** @type {Map<string, {resolve: (message: Message) => void, reject: (error: ChatError) => void}>} */
  #sends = new Map();
  /** @type {{promise: Promise<SessionStore>, resolve: (store: SessionStore) => void, reject: (error: ChatError) => void} | null} */
  #consulting = null;
  /** @type {"no" | "reading" | "done"} */
  #restored = "no";
  #unwatch = () => {};

  /** @param {ConnectOptions} options */
  constructor(options) {
    super();
    this.#options = options;
    this.#base = httpBase(options.url ?? import.meta.url);
    this.#link = new Link({
      url: socketUrl(this.#base, options.url),
      getToken: (ask) => options.getToken?.(ask) ?? options.token ?? "",
      renewable: Boolean(options.getToken),
      WebSocket: options.WebSocket ?? globalThis.WebSocket,
      random: options.random ?? Math.random,
      hello: () => this.#hello(),
      onToken: (token) => this.#identify(token),
      onFrame: (event, payload, ref) => this.#frame(event, payload, ref),
      onState: (state, reason) => this.#stateChanged(state, reason),
    });
    this.#outbox = new Outbox({
      nextRef: () => this.#link.nextRef(),
      post: ({ sessionId, msgType, content, clientMsgId }, ref) =>
        this.#link.post("chat.message.send", { sessionId, msgType, content, clientMsgId }, ref),
      onFailed: (entry, error) => this.#sendFailed(entry, error),
      onChange: (entries) => this.#keep(entries),
    });
    this.#book = new SessionBook({
      post: (event, payload) => this.#link.post(event, payload),
      request: (event, payload) => this.#link.request(event, payload),
      resume: () => this.#link.greet(),
      unsent: (sessionId) => this.#outbox.list(sessionId),
      emit: (type, detail) => this.#emit(type, detail),
    });
    this.#typing = new Typing((sessionId, isTyping) => this.#link.post("chat.typing", { sessionId, isTyping }));
  }

  /** @returns {LinkState} */
  get state() {
    return this.#link.state;
  }

  /** `sub` and `role` of the token. */
  get me() {
    return this.#book.me;
  }

  /** The user's own session: the open one, else the latest; null for agents. */
  get current() {
    return this.#book.current;
  }

  /** @returns {ReadonlyMap<string, SessionStore>} */
  get sessions() {
    return this.#book.sessions;
  }

  /** An agent's own availability; null until it is known. */
  get agent() {
    return this.#book.agent;
  }

  /** The waiting line as an agent sees it. */
  get line() {
    return this.#book.line;
  }

  /** Starts again after a terminal close; cuts an open connection. */
  reconnect() {
    this.#unwatch();
    this.#unwatch = watchPage(() => this.#link.check());
    this.#link.open();
  }

  /** Ends the connection, not the session. */
  close() {
    this.#unwatch();
    this.#link.close();
  }

  /** Looks at once whether the connection still lives. */
  check() {
    this.#link.check();
  }

  /** The visitor asks for somebody: opens a session, or gives the open one. @returns {Promise<SessionStore>} */
  consult() {
    if (this.#consulting) return this.#consulting.promise;
    /** @type {any} */
    const consulting = {};
    consulting.promise = new Promise((resolve, reject) => Object.assign(consulting, { resolve, reject }));
    consulting.promise.catch(() => {});
    this.#consulting = consulting;
    if (this.state === "closed") this.reconnect();
    else this.#link.greet();
    return consulting.promise;
  }

  /**
   * Sends a message. It is in the session's `messages` at once; the promise gives it when it is stored and
   * rejects when it was refused for good. Meanwhile it is kept and sent again as often as it takes.
   * @param {{sessionId?: string, content: string, msgType?: "text" | "image"}} draft
   * @returns {Promise<Message>}
   */
  send({ sessionId, content, msgType = "text" }) {
    const session = sessionId ?? this.#book.openSessionId;
    const unsent = { clientMsgId: newKey(), sessionId: session, msgType, content };
    if (session) this.#book.show(unsent);
    return this.#dispatch(unsent);
  }

  /** Sends a failed message again under its own key; tapping five times sends one. @param {Message} message */
  retry(message) {
    if (message.state !== "failed" || !message.clientMsgId || this.#outbox.has(message.clientMsgId)) return;
    message.state = "sending";
    delete message.error;
    const { clientMsgId, sessionId, msgType, content } = message;
    this.#dispatch({ clientMsgId, sessionId, msgType, content });
    this.sessions.get(sessionId)?.notify();
  }

  /** Says that the person has had this message, and all before it, on screen. @param {string} sessionId @param {string} msgId */
  markRead(sessionId, msgId) {
    this.#book.markRead(sessionId, msgId);
  }

  /** Call on every key stroke; sent at most every 3 s, ended after 5 s of silence. @param {string} sessionId @param {boolean} [isTyping] */
  typing(sessionId, isTyping = true) {
    this.#typing.set(sessionId, isTyping);
  }

  /** @param {string} sessionId */
  end(sessionId) {
    return this.#link.request("chat.session.end", { sessionId });
  }

  /** @param {string} sessionId @param {number} rating 1–5 @param {string} [content] */
  async rate(sessionId, rating, content = "") {
    const rated = await this.#link.request("chat.session.rate", { sessionId, rating, content });
    this.sessions.get(sessionId)?.update({ rating });
    return rated;
  }

  /** @param {number} maxSessions */
  online(maxSessions) {
    return this.#link.request("chat.agent.online", { maxSessions });
  }

  /** @param {{requeue?: boolean}} [options] */
  offline({ requeue = false } = {}) {
    return this.#link.request("chat.agent.offline", { requeue });
  }

  /** @param {string} sessionId @param {string} targetAdminId @param {string} [note] */
  transfer(sessionId, targetAdminId, note) {
    return this.#link.request("chat.session.transfer", { sessionId, targetAdminId, ...(note ? { note } : {}) });
  }

  /** @param {string} sessionId */
  claim(sessionId) {
    return this.#link.request("chat.session.claim", { sessionId });
  }

  /** @returns {Promise<{agents: {adminId: string, name: string, status: string, activeSessions: number, maxSessions: number}[]}>} */
  agents() {
    return this.#link.request("chat.agent.list", {});
  }

  /** @returns {Promise<{sessions: any[], total?: number, version?: number}>} */
  queue() {
    return this.#link.request("chat.queue.list", {});
  }

  /**
   * A page of messages, merged into the session's store.
   * @param {string} sessionId @param {{afterSeq?: number, beforeSeq?: number, limit?: number}} position
   * @returns {Promise<{sessionId: string, messages: any[], hasMore: boolean}>}
   */
  history(sessionId, position) {
    return this.#book.history(sessionId, position);
  }

  /** Loads the page before the oldest loaded message. @param {string} sessionId */
  loadOlder(sessionId) {
    return this.#book.loadOlder(sessionId);
  }

  /** An expired image link is signed anew by reading its message again. @param {Message} message */
  async refresh({ sessionId, seq }) {
    if (seq) await this.history(sessionId, { afterSeq: seq - 1, limit: 1 });
  }

  /** Opens a session that is not among the open ones, to look at. @param {string} sessionId */
  open(sessionId) {
    return this.#book.open(sessionId);
  }

  /** Forgets a session that is over. @param {string} sessionId */
  forget(sessionId) {
    this.#book.forget(sessionId);
  }

  /**
   * Stores an image and gives its address, which `send({msgType: "image"})` takes as content.
   * @param {Blob} file
   * @param {{sessionId?: string, onProgress?: (share: number) => void, signal?: AbortSignal}} [options]
   * @returns {Promise<{url: string, mimeType: string, size: number, width: number, height: number}>}
   */
  upload(file, { sessionId, onProgress, signal } = {}) {
    const session = sessionId ?? this.#book.openSessionId;
    return upload({ base: this.#base, token: this.#token, sessionId: session, file, onProgress, signal });
  }

  /** Absolute address of an image message, or null when it is not a web address. @param {string} content */
  imageUrl(content) {
    try {
      const url = new URL(content, this.#base);
      return url.protocol === "https:" || url.protocol === "http:" ? url.href : null;
    } catch {
      return null;
    }
  }

  /** @returns {object} */
  #hello() {
    const { source = "web", locale } = this.#options;
    const intent = this.#consulting ? "consult" : "resume";
    return { source, intent, ...(locale ? { locale } : {}), ...this.#book.position() };
  }

  /** @param {string} token */
  #identify(token) {
    this.#token = token;
    const { sub = "", role = "user" } = claimsOf(token);
    this.#book.me = { id: sub, role: this.#options.role ?? role };
    this.#restore();
  }

  /** @param {LinkState} state @param {number | string | undefined} reason */
  #stateChanged(state, reason) {
    this.reason = reason;
    if (state !== "ready") {
      this.#outbox.down();
      for (const store of this.sessions.values()) store.setTyping(false);
    }
    if (state === "closed") {
      this.#consulting?.reject(new ChatError(typeof reason === "string" ? reason : "disconnected"));
      this.#consulting = null;
    }
    this.#emit("state", { state, reason });
  }

  /** @param {string} event @param {any} payload @param {string | undefined} ref */
  #frame(event, payload, ref) {
    if (event === "chat.connected") this.#connected(payload);
    else if (event === "chat.message.server_ack") this.#stored(payload);
    else if (event === "chat.error") {
      if (ref) this.#outbox.refuse(ref, new ChatError(payload.code, payload.message, payload));
    } else this.#book.take(event, payload);
    this.#emit(event, payload);
  }

  /** @param {any} connected */
  #connected(connected) {
    Object.assign(this.limits, connected.limits);
    this.#book.connected(connected);
    const { sessionId } = connected;
    if (sessionId) {
      this.#outbox.adopt(sessionId);
      for (const unsent of this.#outbox.list(sessionId)) this.#book.show(unsent);
    }
    this.#outbox.up();
    if (!sessionId || !this.#consulting || !this.current) return;
    this.#consulting.resolve(this.current);
    this.#consulting = null;
  }

  /** @param {any} ack */
  #stored(ack) {
    const unsent = this.#outbox.accept(ack.clientMsgId);
    const message = unsent && this.#book.stored(unsent.sessionId, ack);
    if (message) this.#sends.get(ack.clientMsgId)?.resolve(message);
    this.#sends.delete(ack.clientMsgId);
  }

  /** @param {Unsent} unsent @returns {Promise<Message>} */
  #dispatch(unsent) {
    const { clientMsgId, sessionId } = unsent;
    const stored = new Promise((resolve, reject) => this.#sends.set(clientMsgId, { resolve, reject }));
    // Who only watches the store need not handle the refusal a second time.
    stored.catch(() => {});
    if (sessionId) this.#typing.forget(sessionId);
    this.#outbox.add(unsent);
    return stored;
  }

  /** @param {Unsent} unsent @param {ChatError} error */
  #sendFailed({ clientMsgId, sessionId }, error) {
    this.sessions.get(sessionId ?? "")?.fail(clientMsgId, error.code);
    this.#sends.get(clientMsgId)?.reject(error);
    this.#sends.delete(clientMsgId);
  }

  /** @param {Unsent[]} entries */
  async #keep(entries) {
    // Before the kept ones are read, writing would lose them.
    if (this.#restored !== "done") return;
    try {
      await this.#options.storage?.setItem(this.#storageKey(), JSON.stringify(entries));
    } catch {
      // Blocked or full storage only means that unsent messages live as long as the page.
    }
  }

  async #restore() {
    const { storage } = this.#options;
    if (this.#restored !== "no" || !storage) return;
    this.#restored = "reading";
    let kept = [];
    try {
      kept = JSON.parse((await storage.getItem(this.#storageKey())) ?? "[]");
    } catch {
      // As above.
    }
    this.#restored = "done";
    this.#outbox.restore(kept);
    for (const unsent of kept) this.#book.show(unsent);
  }

  #storageKey() {
    return `kefu.unsent.${this.me.id}`;
  }

  /** @param {string} type @param {unknown} detail */
  #emit(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}

/** Not `randomUUID`: pages on plain http have no such function. */
function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
