// What a page shows of one session: its state and its messages, each once, ordered by `seq`.

/** Local states of a message and how far each has come; a state never goes back. */
const RANK = { failed: 0, sending: 0, stored: 1, delivered: 2, read: 3 };
/** @type {Record<string, MessageState>} Status on the wire: `failed` there only means that no push was answered yet. */
const STATE_OF = { pending: "stored", failed: "stored", delivered: "delivered", read: "read" };
const TYPING_MS = 6_000;

/**
 * @typedef {"sending" | "stored" | "delivered" | "read" | "failed"} MessageState `failed`: refused for good, not stored
 *
 * @typedef {object} Message
 * @property {string | null} msgId null until stored
 * @property {number | null} seq null until stored
 * @property {string | null} clientMsgId
 * @property {string} sessionId
 * @property {string} senderType `user`, `agent`, `system` or `bot`
 * @property {string | null} senderId
 * @property {string} msgType `text` or `image`
 * @property {string} content text, or the address of an image
 * @property {number | null} time Unix milliseconds, set by the server
 * @property {MessageState} state
 * @property {boolean} incoming from the other side
 * @property {boolean} unanswered the server gave up pushing it for now; it is stored and will be delivered on return
 * @property {string} [error] why it failed: a code of docs/protocol.md
 *
 * @typedef {{adminId: string, name: string, avatar?: string}} AgentInfo
 * @typedef {{userId: string, name: string, avatar?: string, balance?: number, vip?: unknown}} UserInfo
 */

export class SessionStore {
  /** @type {"waiting" | "active" | "ended"} */
  status = "waiting";
  /** @type {AgentInfo | null} */
  agentInfo = null;
  /** @type {UserInfo | null} */
  userInfo = null;
  /** @type {string | null} */
  source = null;
  /** A colleague's words at a transfer. @type {string | null} */
  note = null;
  /** Place in the waiting line; 1 is next. @type {number | null} */
  position = null;
  /** @type {number | null} */
  total = null;
  /** Nobody is online: what is written now is left as a message. */
  offline = false;
  /** The server's words for that, in the visitor's language. @type {string | null} */
  offlineMessage = null;
  /** The other side is typing. */
  typing = false;
  unreadCount = 0;
  /** @type {number | null} */
  rating = null;
  /** Opened to look at, not to talk in: no receipts are sent. */
  readOnly = false;
  /** The highest `seq` known to exist, whether loaded or not. */
  lastSeq = 0;
  /** Messages up to this `seq` are not loaded (`loadOlder`); null before the first look. @type {number | null} */
  floor = null;
  /** Everything undelivered is loaded, so receipts may be cumulative. */
  whole = true;
  /** The newest message that was on screen. @type {Message | null} */
  readUpTo = null;

  #role;
  #changed;
  /** @type {Message[]} Stored ones, ascending. */
  #stored = [];
  /** @type {Message[]} */
  #unsent = [];
  /** @type {Map<string, Message>} */
  #byMsgId = new Map();
  /** @type {Map<string, string>} Receipts that came before their message. */
  #early = new Map();
  /** @type {Set<number>} */
  #seqs = new Set();
  #contiguous = 0;
  /** `unreadCount` as told by the server covers messages up to this `seq`. */
  #countedTo = 0;
  /** @type {any} */
  #typingTimer = null;

  /**
   * @param {string} sessionId
   * @param {string} role role of the person who looks
   * @param {(store: SessionStore) => void} changed
   */
  constructor(sessionId, role, changed) {
    this.sessionId = sessionId;
    this.#role = role;
    this.#changed = changed;
  }

  /** Loaded messages by `seq`, then the unsent ones in the order they were written. @returns {Message[]} */
  get messages() {
    const from = this.#stored.findIndex((message) => (message.seq ?? 0) > (this.floor ?? 0));
    return [...(from < 0 ? [] : this.#stored.slice(from)), ...this.#unsent];
  }

  /** All messages from `floor` up to this `seq` are loaded: the position to resume from. */
  get contiguous() {
    return this.#contiguous;
  }

  /** The newest loaded message from the other side. */
  get lastIncoming() {
    return this.#stored.findLast((message) => message.incoming);
  }

  /** The `seq` of the oldest own message that the other side has not read, as far as known here; infinite for none. */
  get oldestUnread() {
    return this.#stored.find((message) => !message.incoming && message.state !== "read")?.seq ?? Infinity;
  }

  get hasOlder() {
    return this.floor !== null && this.floor > 0;
  }

  /** @param {string} msgId */
  find(msgId) {
    return this.#byMsgId.get(msgId);
  }

  /** @param {string} senderType */
  isIncoming(senderType) {
    return this.#role === "user" ? senderType !== "user" : senderType === "user";
  }

  /**
   * Takes a message as it is on the wire; true when it was not known yet.
   * @param {any} wire
   */
  merge(wire) {
    const known = this.#byMsgId.get(wire.msgId) ?? this.#adoptUnsent(wire);
    const message = known ?? this.#incomingMessage(wire);
    message.content = wire.content;
    if (!known) this.#insert(message);
    this.#advance(message, wire.status ?? "pending");
    this.lastSeq = Math.max(this.lastSeq, wire.seq);
    if (message.incoming && !known) this.setTyping(false);
    this.notify();
    return !known;
  }

  /** A message of this device that the server has not acknowledged yet. @param {Message} message */
  addUnsent(message) {
    this.#unsent.push(message);
    this.notify();
  }

  /** @param {string} clientMsgId */
  findUnsent(clientMsgId) {
    return this.#unsent.find((message) => message.clientMsgId === clientMsgId);
  }

  /** Takes `server_ack`. @param {any} ack */
  accept(ack) {
    const unsent = this.findUnsent(ack.clientMsgId);
    const known = this.#byMsgId.get(ack.msgId);
    if (unsent && known) {
      // History brought it before its acknowledgement did: one message, shown once.
      this.#unsent.splice(this.#unsent.indexOf(unsent), 1);
      known.clientMsgId = ack.clientMsgId;
    } else if (unsent) this.#settle(unsent, ack);
    const message = this.#byMsgId.get(ack.msgId);
    if (message) this.#advance(message, ack.status);
    this.notify();
    return message;
  }

  /** @param {string} clientMsgId @param {string} code */
  fail(clientMsgId, code) {
    const message = this.findUnsent(clientMsgId);
    if (!message) return;
    message.state = "failed";
    message.error = code;
    this.notify();
  }

  /** Takes a receipt. @param {string} msgId @param {string} status */
  receipt(msgId, status) {
    const message = this.#byMsgId.get(msgId);
    if (message) this.#advance(message, status);
    else this.#early.set(msgId, status);
    this.notify();
  }

  /** Counts a message that was pushed, unless the server's count had it already. @param {any} wire */
  count(wire) {
    if (!this.isIncoming(wire.senderType) || wire.seq <= this.#countedTo) return;
    this.unreadCount++;
    this.notify();
  }

  /** Marks as read what was on screen; false when nothing new was. @param {Message} message */
  read(message) {
    if (!message.incoming || !message.seq || message.seq <= (this.readUpTo?.seq ?? 0)) return false;
    this.readUpTo = message;
    for (const other of this.#stored) {
      if (other.incoming && (other.seq ?? 0) <= message.seq) this.#advance(other, "read");
    }
    this.unreadCount = this.#stored.filter((other) => other.incoming && other.state !== "read").length;
    this.notify();
    return true;
  }

  /** Takes a `session` object or the parts of one that an event carries. @param {any} session */
  update(session) {
    for (const key of /** @type {const} */ (["status", "agentInfo", "userInfo", "source", "note", "position", "total", "unreadCount"])) {
      if (session[key] !== undefined) /** @type {any} */ (this)[key] = session[key];
    }
    if (session.rating !== undefined) this.rating = session.rating?.rating ?? session.rating;
    if (session.agentsOnline !== undefined) this.offline = !session.agentsOnline;
    if (session.unreadCount !== undefined) this.#countedTo = session.lastSeq ?? this.lastSeq;
    if (session.lastSeq) this.lastSeq = Math.max(this.lastSeq, session.lastSeq);
    if (this.status !== "waiting") this.position = this.total = this.offlineMessage = null;
    if (this.status !== "waiting") this.offline = false;
    if (this.status !== "active") this.setTyping(false);
    this.notify();
  }

  /** @param {string} message */
  setOffline(message) {
    this.offline = true;
    this.offlineMessage = message;
    this.position = this.total = null;
    this.notify();
  }

  /** @param {boolean} isTyping */
  setTyping(isTyping) {
    clearTimeout(this.#typingTimer);
    // The end of typing may never come: its sender's connection can die (P3).
    if (isTyping) this.#typingTimer = setTimeout(() => this.setTyping(false), TYPING_MS);
    if (isTyping === this.typing) return;
    this.typing = isTyping;
    this.notify();
  }

  /** From here on down nothing is loaded. @param {number} floor */
  setFloor(floor) {
    if (this.floor === null || this.#contiguous < floor) this.#contiguous = floor;
    this.floor = floor;
    this.#grow();
    this.notify();
  }

  notify() {
    this.#changed(this);
  }

  /** @param {any} wire @returns {Message} */
  #incomingMessage(wire) {
    return {
      msgId: wire.msgId,
      seq: wire.seq,
      clientMsgId: wire.clientMsgId ?? null,
      sessionId: this.sessionId,
      senderType: wire.senderType,
      senderId: wire.senderId ?? null,
      msgType: wire.msgType ?? "text",
      content: wire.content,
      time: wire.time ?? null,
      state: "stored",
      incoming: this.isIncoming(wire.senderType),
      unanswered: false,
    };
  }

  /** Our own message, seen in history or on another device before its acknowledgement. @param {any} wire */
  #adoptUnsent(wire) {
    if (!wire.clientMsgId || this.isIncoming(wire.senderType)) return undefined;
    const unsent = this.findUnsent(wire.clientMsgId);
    if (unsent) this.#settle(unsent, wire);
    return unsent;
  }

  /** @param {Message} message @param {{msgId: string, seq: number, time?: number}} stored */
  #settle(message, stored) {
    this.#unsent.splice(this.#unsent.indexOf(message), 1);
    delete message.error;
    Object.assign(message, { msgId: stored.msgId, seq: stored.seq, time: stored.time ?? message.time, state: "stored" });
    this.lastSeq = Math.max(this.lastSeq, stored.seq);
    this.#insert(message);
  }

  /** @param {Message} message */
  #insert(message) {
    const seq = message.seq ?? 0;
    let index = this.#stored.length;
    while (index > 0 && (this.#stored[index - 1].seq ?? 0) > seq) index--;
    this.#stored.splice(index, 0, message);
    this.#byMsgId.set(/** @type {string} */ (message.msgId), message);
    this.#seqs.add(seq);
    this.#grow();
    const early = this.#early.get(/** @type {string} */ (message.msgId));
    if (early === undefined) return;
    this.#early.delete(/** @type {string} */ (message.msgId));
    this.#advance(message, early);
  }

  #grow() {
    while (this.floor !== null && this.#seqs.has(this.#contiguous + 1)) this.#contiguous++;
  }

  /** @param {Message} message @param {string} status */
  #advance(message, status) {
    message.unanswered = status === "failed" && RANK[message.state] <= RANK.stored;
    const state = STATE_OF[status];
    if (state && RANK[state] > RANK[message.state]) message.state = state;
    if (message.incoming && state === "read" && (message.seq ?? 0) > (this.readUpTo?.seq ?? 0)) this.readUpTo = message;
  }
}
