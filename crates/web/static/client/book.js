// All sessions of one person, kept equal to the server's: what each frame changes, what is missing and is
// pulled, which receipts are owed.
import { ChatError } from "./error.js";
import { SessionStore } from "./session-store.js";

export const PAGE = 50;

/**
 * @typedef {import("./outbox.js").Unsent} Unsent
 * @typedef {{id: string, role: string}} Person `sub` and `role` of the token
 * @typedef {{status: "online" | "offline", maxSessions: number, activeSessions: number}} Availability
 *
 * @typedef {object} BookOptions
 * @property {(event: string, payload: object) => boolean} post
 * @property {(event: string, payload: object) => Promise<any>} request
 * @property {() => void} resume asks the server for the present state
 * @property {(sessionId: string) => Unsent[]} unsent
 * @property {(type: string, detail: unknown) => void} emit
 */

export class SessionBook {
  /** @type {Person} */
  me = { id: "", role: "user" };
  /** @type {SessionStore | null} */
  current = null;
  /** @type {Map<string, SessionStore>} */
  sessions = new Map();
  /** @type {Availability | null} */
  agent = null;
  /** @type {{sessions: any[], total: number, version: number}} */
  line = { sessions: [], total: 0, version: -1 };

  #options;
  /** @type {Set<SessionStore>} */
  #filling = new Set();

  /** @param {BookOptions} options */
  constructor(options) {
    this.#options = options;
  }

  /** The open session of a user. */
  get openSessionId() {
    return this.current && this.current.status !== "ended" ? this.current.sessionId : null;
  }

  /** What is here already, for `chat.connect`: the answer then holds exactly what is missing (M4). */
  position() {
    const { current } = this;
    if (this.me.role === "user") {
      return current?.floor == null ? {} : { sessionId: current.sessionId, lastSeq: current.contiguous };
    }
    const known = [...this.sessions.values()].filter((store) => store.floor !== null && !store.readOnly);
    return { lastSeqs: Object.fromEntries(known.map((store) => [store.sessionId, store.contiguous])) };
  }

  /** Takes a frame of the server. @param {string} event @param {any} payload */
  take(event, payload) {
    const store = this.sessions.get(payload.sessionId);
    switch (event) {
      case "chat.message.new":
        return this.#messageNew(store, payload);
      case "chat.message.peer_ack":
        return this.#receipt(store, payload);
      case "chat.history":
        for (const wire of payload.messages) store?.merge(wire);
        return;
      case "chat.typing":
        return store?.setTyping(payload.isTyping);
      case "chat.session.assigned":
        return this.#known(store)?.update({ status: "active", agentInfo: payload.agentInfo });
      case "chat.session.requeued":
        return store?.update({ status: "waiting", agentInfo: null });
      case "chat.session.ended":
        return store?.update({ status: "ended" });
      case "chat.queue.position":
        return this.#known(store)?.update({ position: payload.position, total: payload.total, agentsOnline: true });
      case "chat.offline_notice":
        return this.current?.setOffline(payload.message);
      case "chat.session.new":
        return this.#sessionNew(payload);
      case "chat.session.removed":
        return this.forget(payload.sessionId);
      case "chat.queue.list":
        return this.#lineChanged(payload);
      case "chat.agent.status":
        return this.#agentChanged(payload);
    }
  }

  /** Takes `chat.connected`. @param {any} connected */
  connected(connected) {
    if (connected.role) this.me = { ...this.me, role: connected.role };
    const before = [...this.sessions.values()].map((store) => ({ store, last: store.lastIncoming }));
    const unread = bySession(connected.unread ?? []);
    if (this.me.role === "user") this.#userConnected(connected, unread);
    else this.#agentConnected(connected, unread);
    for (const { store, last } of before) this.#restate(store, last);
  }

  /** Takes `server_ack` of a message of `sessionId`. @param {string | null} sessionId @param {any} ack */
  stored(sessionId, ack) {
    const store = this.sessions.get(sessionId ?? "");
    const message = store?.accept(ack);
    if (store) this.#fill(store);
    return message;
  }

  /** @param {string} sessionId @param {string} msgId */
  markRead(sessionId, msgId) {
    const store = this.sessions.get(sessionId);
    const message = store?.find(msgId);
    if (store && message && store.read(message)) this.#ackRead(store);
  }

  /** @param {string} sessionId @param {object} position */
  history(sessionId, position) {
    return this.#options.request("chat.history", { sessionId, limit: PAGE, ...position });
  }

  /** @param {string} sessionId */
  async loadOlder(sessionId) {
    const store = this.sessions.get(sessionId);
    if (!store?.hasOlder) return;
    const page = await this.history(sessionId, { beforeSeq: (store.floor ?? 0) + 1 });
    store.setFloor(floorOf(page));
    this.#ackDelivered(store, page.messages.filter(undelivered), false);
  }

  /** Opens a session that is not among the open ones, to look at. @param {string} sessionId */
  async open(sessionId) {
    const known = this.sessions.get(sessionId);
    if (known) return known;
    const page = await this.history(sessionId, { beforeSeq: LAST_SEQ });
    const store = this.#store(sessionId);
    store.readOnly = true;
    store.update({ status: "ended" });
    for (const wire of page.messages) store.merge(wire);
    store.setFloor(floorOf(page));
    this.#options.emit("sessions", null);
    return store;
  }

  /** @param {string} sessionId */
  forget(sessionId) {
    if (this.sessions.delete(sessionId)) this.#options.emit("sessions", null);
  }

  /** Puts a message that is not acknowledged yet on screen, once. @param {Unsent} unsent */
  show({ clientMsgId, sessionId, msgType, content }) {
    const store = this.sessions.get(sessionId ?? "");
    if (!store || store.findUnsent(clientMsgId)) return;
    store.addUnsent({
      msgId: null,
      seq: null,
      clientMsgId,
      sessionId: store.sessionId,
      senderType: this.me.role === "user" ? "user" : "agent",
      senderId: this.me.id,
      msgType,
      content,
      time: null,
      state: "sending",
      incoming: false,
      unanswered: false,
    });
  }

  /** @param {any} connected @param {Map<string, any[]>} unread */
  #userConnected(connected, unread) {
    const session = connected.session ?? (connected.sessionId && { sessionId: connected.sessionId });
    if (!session) return;
    this.current = this.#store(session.sessionId);
    const state = { agentInfo: connected.agentInfo ?? null, ...session };
    this.#catchUp(this.current, state, unread.get(session.sessionId) ?? [], connected.hasMore);
    this.#options.emit("sessions", null);
  }

  /** @param {any} connected @param {Map<string, any[]>} unread */
  #agentConnected(connected, unread) {
    const open = connected.sessions ?? [];
    const ids = new Set(open.map((/** @type {any} */ session) => session.sessionId));
    for (const store of this.sessions.values()) {
      // Lost or ended while away; one that was seen ending stays to be looked at.
      if (!ids.has(store.sessionId) && store.status !== "ended") this.sessions.delete(store.sessionId);
    }
    for (const session of open) {
      this.#catchUp(this.#store(session.sessionId), session, unread.get(session.sessionId) ?? [], connected.hasMore);
    }
    this.#options.emit("sessions", null);
    this.#readLine();
  }

  /** The line is not part of `chat.connected`, and its version starts anew with its server. */
  #readLine() {
    this.line = { ...this.line, version: -1 };
    if (this.me.role === "agent") this.#options.request("chat.queue.list", {}).catch(() => {});
  }

  /**
   * Brings a store to the server's present state: what was undelivered, then everything up to `lastSeq`.
   * @param {SessionStore} store @param {any} session @param {any[]} unread @param {boolean} hasMore
   */
  #catchUp(store, session, unread, hasMore) {
    store.update(session);
    this.#catchUpReceipts(store);
    if (store.floor === null) {
      store.whole = !hasMore || unread.length > 0;
      store.setFloor((unread[0]?.seq ?? store.lastSeq + 1) - 1);
    }
    for (const wire of unread) store.merge(wire);
    this.#ackDelivered(store, unread, store.whole);
    this.#fill(store);
  }

  /**
   * A receipt is pushed once, when it happens: what came while we were away is read from history.
   * @param {SessionStore} store
   */
  async #catchUpReceipts(store) {
    const { oldestUnread, contiguous } = store;
    try {
      for (let position = oldestUnread - 1; position < contiguous; position += PAGE) {
        await this.history(store.sessionId, { afterSeq: position });
      }
    } catch {
      // After a lost connection the next `chat.connected` starts this again.
    }
  }

  /** Pulls until nothing is missing; at first sight also a page of what was before. @param {SessionStore} store */
  async #fill(store) {
    const missing = store.contiguous < store.lastSeq || (store.hasOlder && store.messages.length < PAGE);
    if (!missing || store.floor === null || this.#filling.has(store)) return;
    this.#filling.add(store);
    try {
      await this.#pull(store);
    } catch (error) {
      // After a lost connection the next `chat.connected` starts this again.
      if (error instanceof ChatError && error.retryable && error.code !== "disconnected") {
        setTimeout(() => this.#fill(store), error.retryAfterMs ?? 1_000);
      }
    } finally {
      this.#filling.delete(store);
    }
  }

  /** @param {SessionStore} store */
  async #pull(store) {
    while (store.contiguous < store.lastSeq) {
      const before = store.contiguous;
      const page = await this.history(store.sessionId, { afterSeq: before });
      this.#ackDelivered(store, page.messages.filter(undelivered), store.whole);
      if (store.contiguous === before) return;
    }
    if (store.hasOlder && store.messages.length < PAGE) await this.loadOlder(store.sessionId);
  }

  /** @param {SessionStore | undefined} store @param {any} wire */
  #messageNew(store, wire) {
    if (!this.#known(store) || !store) return;
    if (store.merge(wire)) store.count(wire);
    // Also when it is known: a push that comes again means that our receipt was lost.
    this.#ackDelivered(store, [wire], false);
    this.#fill(store);
  }

  /** @param {SessionStore | undefined} store @param {{msgId: string, status: string}} receipt */
  #receipt(store, { msgId, status }) {
    const holder = store ?? [...this.sessions.values()].find((candidate) => candidate.find(msgId));
    holder?.receipt(msgId, status);
  }

  /** @param {any} payload */
  #sessionNew({ sessionId, userInfo, source, note = null, lastSeq, unread }) {
    const state = { status: "active", userInfo, source, note, lastSeq, unreadCount: unread };
    // What is undelivered is not listed here: receipts go one by one.
    this.#catchUp(this.#store(sessionId), state, [], true);
    this.#options.emit("sessions", null);
  }

  /** A user's other tab may have opened the session that a frame speaks of. @param {SessionStore | undefined} store */
  #known(store) {
    if (!store && this.me.role === "user") this.#options.resume();
    return store;
  }

  /** @param {any} list */
  #lineChanged({ sessions, total = sessions.length, version = this.line.version }) {
    if (version < this.line.version) return;
    this.line = { sessions, total, version };
    this.#options.emit("line", this.line);
  }

  /** @param {any} status */
  #agentChanged({ status, maxSessions, activeSessions }) {
    this.agent = { status, maxSessions, activeSessions };
    this.#options.emit("agent", this.agent);
  }

  /**
   * Receipts have no answer, so those of before the cut may be lost: said again, once.
   * @param {SessionStore} store @param {import("./session-store.js").Message | undefined} last newest incoming one of before
   */
  #restate(store, last) {
    if (this.sessions.get(store.sessionId) !== store) return;
    const covered = last !== store.lastIncoming || last === store.readUpTo;
    if (last && !covered && store.whole) this.#ack(store, last.msgId, "delivered", true);
    if (store.readUpTo) this.#ackRead(store);
  }

  /** @param {SessionStore} store @param {any[]} wires @param {boolean} cumulative one frame for all of them */
  #ackDelivered(store, wires, cumulative) {
    const received = wires.filter((wire) => store.isIncoming(wire.senderType));
    for (const { msgId } of cumulative ? received.slice(-1) : received) {
      this.#ack(store, msgId, "delivered", cumulative);
    }
    for (const { msgId } of received) store.receipt(msgId, "delivered");
  }

  /** @param {SessionStore} store */
  #ackRead(store) {
    this.#ack(store, store.readUpTo?.msgId, "read", true);
  }

  /** @param {SessionStore} store @param {string | null | undefined} msgId @param {string} status @param {boolean} cumulative */
  #ack(store, msgId, status, cumulative) {
    if (this.me.role === "supervisor" || store.readOnly) return;
    this.#options.post("chat.message.ack", { msgId, status, ...(cumulative ? { cumulative } : {}) });
  }

  /** @param {string} sessionId */
  #store(sessionId) {
    let store = this.sessions.get(sessionId);
    if (store) return store;
    store = new SessionStore(sessionId, this.me.role, (changed) => this.#options.emit("change", changed));
    this.sessions.set(sessionId, store);
    for (const unsent of this.#options.unsent(sessionId)) this.show(unsent);
    return store;
  }
}

/** Above every real `seq`, and small enough for every integer type. */
const LAST_SEQ = 2 ** 31 - 1;

/** @param {{messages: any[], hasMore: boolean}} page the oldest page loaded so far */
function floorOf({ messages, hasMore }) {
  return hasMore && messages.length ? messages[0].seq - 1 : 0;
}

/** @param {any} wire */
function undelivered({ status }) {
  return status === undefined || status === "pending" || status === "failed";
}

/** @param {any[]} messages @returns {Map<string, any[]>} */
function bySession(messages) {
  const groups = new Map();
  for (const wire of messages) groups.set(wire.sessionId, [...(groups.get(wire.sessionId) ?? []), wire]);
  return groups;
}
