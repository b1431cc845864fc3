// What a page shows of one session: its state and its messages, each once, ordered by `seq`.

/** @typedef {import("../client.js").Message} Message */

/** How far a message has come; it never goes back. */
const STATES = ["failed", "sending", "stored", "delivered", "read"];
const TYPING_MS = 6_000;

export class Session {
  /** @type {"waiting" | "active" | "ended"} */
  status = "waiting";
  /** @type {any} */
  agentInfo = null;
  agentsOnline = true;
  offlineMessage = "";
  typing = false;
  readOnly = false;
  /** The highest `seq` known to exist, whether loaded or not. */
  lastSeq = 0;
  /** The other side's messages up to this `seq` are read. */
  readUpTo = 0;

  /** Messages up to this `seq` are not loaded; -1 before the first look. */
  _floor = -1;
  /** All from the floor up to this `seq` are loaded: the position to resume from. */
  _contiguous = 0;
  /** Own messages without `server_ack`, in the order they were written. @type {Message[]} */
  _unsent = [];
  /** The first of them is under way, or waits for its next attempt. */
  _busy = false;
  _pulling = false;

  #isUser;
  #changed;
  /** By `seq`: integer keys are enumerated in ascending order. @type {Record<number, any>} */
  #stored = {};
  /** @type {Map<string, any>} */
  #byId = new Map();
  /** Receipts that came before their message. @type {Record<string, string>} */
  #early = {};
  /** As the server counted, and pushed since. */
  #unread = 0;
  /** @type {any} */
  #typingTimer;

  /** @param {string} sessionId @param {boolean} isUser of the person who looks @param {(session: Session) => void} changed */
  constructor(sessionId, isUser, changed) {
    this.sessionId = sessionId;
    this.#isUser = isUser;
    this.#changed = changed;
  }

  get messages() {
    return [...this.#loaded(), ...this._unsent];
  }

  get hasOlder() {
    return this._floor > 0;
  }

  /** Nobody is there: what is written now is left as a message. */
  get offline() {
    return this.status === "waiting" && !this.agentsOnline;
  }

  /** Of the other side, above the read cursor (B64). */
  get unreadCount() {
    const loaded = this.#loaded().filter((message) => message.incoming && message.state !== "read").length;
    // Told while a message was coming, the server's count may hold it already: what is all here is counted here.
    return Math.max(this._contiguous >= this.lastSeq && this._floor >= 0 && this._floor <= this.readUpTo ? 0 : this.#unread, loaded);
  }

  set unreadCount(count) {
    this.#unread = count;
  }

  /** The `seq` of the oldest own message that the other side has not read, as far as known here; infinite for none. */
  get _oldestUnread() {
    return this.#loaded().find((message) => !message.incoming && message.state !== "read")?.seq ?? 2_000_000_000;
  }

  /** @param {string} senderType */
  _isIncoming(senderType) {
    return (senderType === "user") !== this.#isUser;
  }

  /** Takes a message as it is on the wire. @param {any} wire @param {boolean} [pushed] */
  _merge(wire, pushed) {
    let message = this.#byId.get(wire.msgId) ?? this._settle(wire);
    if (!message) {
      const incoming = this._isIncoming(wire.senderType);
      if (incoming) this._setTyping(false);
      // Up to `lastSeq` the server has counted.
      if (incoming && pushed && wire.seq > this.lastSeq) this.#unread++;
      this.#insert((message = { ...wire, state: "stored", incoming, rev: 0 }));
    }
    // A signed link is another one each time it is read.
    message.content = wire.content;
    this._receipt(wire);
  }

  /** Takes a receipt, or a message or acknowledgement with its status. @param {{msgId: string, status?: string}} receipt */
  _receipt({ msgId, status = "pending" }) {
    const message = this.#byId.get(msgId);
    if (message) this.#advance(message, status);
    else this.#early[msgId] = status;
    this._change();
  }

  /** Our own message is stored, as its acknowledgement, history or another of our devices says. @param {any} stored */
  _settle({ clientMsgId, msgId, seq, time }) {
    const message = this._unsent.find((unsent) => unsent.clientMsgId === clientMsgId);
    if (!message) return;
    this._remove(message);
    const known = this.#byId.get(msgId);
    // History brought it before its acknowledgement did: one message, shown once.
    if (known) return Object.assign(known, { clientMsgId });
    this.#insert(Object.assign(message, { msgId, seq, time, state: "stored", error: undefined }));
    return message;
  }

  /** @param {Message} message */
  _remove(message) {
    this._unsent = this._unsent.filter((unsent) => unsent !== message);
  }

  /** @param {string} msgId */
  _find(msgId) {
    return this.#byId.get(msgId);
  }

  /** All of the other side up to there is read, here or on another device (B64); false when that is not new. @param {number} seq */
  _read(seq) {
    if (!(seq > this.readUpTo)) return false;
    this.readUpTo = seq;
    for (const message of this.#loaded()) if (message.incoming && message.seq <= seq) this.#advance(message, "read");
    this.#unread = 0;
    this._change();
    return true;
  }

  /** Takes a `session` object or the parts of one that an event carries. @param {any} parts */
  _update(parts) {
    Object.assign(this, { ...parts, lastSeq: Math.max(this.lastSeq, parts.lastSeq ?? 0) });
    if (this.status !== "active") this._setTyping(false);
    this._change();
  }

  /** @param {boolean} isTyping */
  _setTyping(isTyping) {
    clearTimeout(this.#typingTimer);
    // The end of typing may never come: its sender's connection can die (P3).
    if (isTyping) this.#typingTimer = setTimeout(() => this._setTyping(false), TYPING_MS);
    this.typing = isTyping;
    this._change();
  }

  /** From here on down nothing is loaded. @param {number} floor */
  _setFloor(floor) {
    this._contiguous = Math.max(this._contiguous, floor);
    this._floor = floor;
    this.#grow();
    this._change();
  }

  _change() {
    this.#changed(this);
  }

  #loaded() {
    return Object.values(this.#stored).filter((message) => message.seq > this._floor);
  }

  /** @param {any} message */
  #insert(message) {
    this.#stored[message.seq] = message;
    this.#byId.set(message.msgId, message);
    this.lastSeq = Math.max(this.lastSeq, message.seq);
    this.#grow();
    this.#advance(message, this.#early[message.msgId] ?? "pending");
  }

  #grow() {
    while (this._floor >= 0 && this.#stored[this._contiguous + 1]) this._contiguous++;
  }

  /** `failed` on the wire only means that no push was answered yet. @param {any} message @param {string} status */
  #advance(message, status) {
    message.rev++;
    if (STATES.indexOf(status) > STATES.indexOf(message.state)) message.state = status;
    if (message.incoming && status === "read") this.readUpTo = Math.max(this.readUpTo, message.seq);
  }
}
