// The lists at the left of the console: own sessions, and who waits.
import { w } from "./console-strings.js";
import { duration, serverNow, waitingSince } from "./desk-clock.js";
import { draftOf } from "./desk-compose.js";
import { Rows, setText, view, visitorName } from "./desk-kit.js";
import { amount } from "./desk-visitor.js";
import { el } from "./dom.js";
import { t } from "./shared/i18n.js";

/**
 * @typedef {import("./client.js").Client} Client
 * @typedef {import("./client.js").Session} Session
 */

/** From here on a visitor has waited long for a reply, and very long. */
const WAIT_LATE_MS = 60_000;
const WAIT_VERY_LATE_MS = 180_000;

/**
 * What a row tells of its session, worked out once a drawing: the library counts it anew at every question.
 * @typedef {{store: Session, since: number | null, unread: number, line: string, at: number}} Summary
 */

/** @param {Session} store @param {Record<string, number>} known @param {string} me @returns {Summary} */
function summaryOf(store, known, me) {
  const { messages } = store;
  const last = messages.at(-1) ?? store.lastMessage;
  return { store, since: waitingSince(store, messages, known[store.sessionId]), unread: store.unreadCount, line: lastLine(last, me), at: last?.time ?? store.startedAt ?? 0 };
}

/** One line of what was said last. @param {{msgType?: string, senderType: string, senderId?: string, content: string} | null | undefined} message @param {string} me */
function lastLine(message, me) {
  if (!message) return w("saidNothing");
  const text = message.msgType === "image" ? t("image") : message.content;
  return message.senderType === "agent" && (message.senderId ?? me) === me ? w("youSaid", { text }) : text;
}

/** @param {number} ms */
function lateness(ms) {
  if (ms >= WAIT_VERY_LATE_MS) return "very";
  return ms >= WAIT_LATE_MS ? "late" : "none";
}

export class SessionList {
  #list = el("ul", { className: "rows", "data-testid": "sessions" });
  #none = el("p", { className: "empty" });
  #count = el("span", { className: "count" });
  #rows;
  #client;
  /** @type {Summary[]} As last shown. */
  #shown = [];
  /** @type {any[]} */
  #elements = [];
  #attention = 0;
  /** Since when visitors have waited, as known before a reload. @type {Record<string, number>} */
  #known = view.get("waits") ?? {};
  element = el("section", { "aria-labelledby": "desk-sessions" }, el("h2", { id: "desk-sessions" }, w("sessions"), " ", this.#count), this.#list, this.#none);

  /** @param {Client} client @param {(sessionId: string) => void} select */
  constructor(client, select) {
    this.#client = client;
    this.#rows = new Rows(this.#list, (sessionId) => sessionRow(sessionId, select));
  }

  /** Session ids from top to bottom. */
  get order() {
    return this.#shown.map(({ store }) => store.sessionId);
  }

  /** Keeps over a reload what the last messages alone do not tell. */
  keep() {
    view.set("waits", Object.fromEntries(this.#shown.flatMap(({ store, since }) => (since === null ? [] : [[store.sessionId, since]]))));
  }

  /** Unread messages of all sessions, and the new sessions in which nothing was said yet. */
  get attention() {
    return this.#attention;
  }

  /** @param {Session[]} stores @param {{selected: string | null, fresh: (sessionId: string) => boolean, online: boolean}} state */
  update(stores, { selected, fresh, online }) {
    this.#shown = this.#sorted(stores.map((store) => summaryOf(store, this.#known, this.#client.me.id)));
    this.#attention = this.#shown.reduce((sum, { unread, store }) => sum + (unread || Number(fresh(store.sessionId))), 0);
    this.#none.hidden = stores.length > 0;
    setText(this.#none, w(online ? "noSessionsOnline" : "noSessionsOffline"));
    setText(this.#count, stores.length ? String(stores.length) : "");
    this.#elements = this.#rows.show(this.order);
    this.#shown.forEach((summary, index) => {
      const { sessionId } = summary.store;
      drawSession(this.#elements[index], summary, { selected: sessionId === selected, fresh: fresh(sessionId) });
    });
    this.tick();
  }

  /** The time that each visitor has waited for a reply. */
  tick() {
    const now = serverNow();
    this.#shown.forEach(({ since }, index) => {
      const { wait, button } = this.#elements[index];
      setText(wait, since === null ? "" : duration(now - since));
      button.dataset.late = since === null ? "none" : lateness(now - since);
    });
  }

  /**
   * Who waits for a reply first, the longest at the top; then those spoken with most recently, then the ended.
   * While somebody is about to click or walks through the list, no row moves away under them.
   * @param {Summary[]} summaries
   */
  #sorted(summaries) {
    if (this.#list.matches(":hover") || this.#list.contains(document.activeElement)) {
      const place = new Map(this.order.map((sessionId, index) => [sessionId, index]));
      const before = (/** @type {Summary} */ { store }) => place.get(store.sessionId) ?? place.size;
      return summaries.sort((one, other) => before(one) - before(other));
    }
    const group = (/** @type {Summary} */ { store, since }) => (store.status === "ended" ? 2 : since === null ? 1 : 0);
    return summaries.sort((one, other) => group(one) - group(other) || (one.since ?? -one.at) - (other.since ?? -other.at));
  }
}

/** @param {string} sessionId @param {(sessionId: string) => void} select */
function sessionRow(sessionId, select) {
  const name = el("span", { className: "who" });
  const tags = el("span", { className: "tags" });
  const wait = el("span", { className: "wait", "data-testid": "wait" });
  const last = el("span", { className: "last" });
  const badge = el("span", { className: "badge", "data-testid": "badge" });
  const count = el("span", { "aria-hidden": "true" });
  const said = el("span", { className: "unseen" });
  badge.append(count, said);
  const button = el("button", { type: "button", "data-testid": "session", "data-session-id": sessionId, onclick: () => select(sessionId) }, name, tags, wait, last, badge);
  return { element: el("li", {}, button), button, name, tags, wait, last, badge, count, said, shown: "" };
}

/** @param {any} row @param {Summary} summary @param {{selected: boolean, fresh: boolean}} state */
function drawSession(row, { store, unread: unreadCount, line }, { selected, fresh }) {
  const { button, name, last, badge, count, said } = row;
  const { status, userInfo, typing } = store;
  button.dataset.unread = String(unreadCount);
  button.dataset.status = status;
  button.dataset.fresh = String(fresh);
  if (button.getAttribute("aria-current") !== String(selected)) button.setAttribute("aria-current", String(selected));
  setText(name, visitorName(userInfo, store.sessionId));
  setText(last, typing ? t("typing") : line);
  setText(count, unreadCount ? String(unreadCount) : "");
  setText(said, unreadCount ? w("unread", { count: unreadCount }) : "");
  badge.hidden = unreadCount === 0;
  const drafted = !selected && (draftOf("reply", store.sessionId).get() || draftOf("note", store.sessionId).get());
  const tags = [fresh && "new", userInfo?.vip && "vip", drafted && "draft", status === "ended" && "over"].filter(Boolean);
  if (row.shown === tags.join()) return;
  row.shown = tags.join();
  row.tags.replaceChildren(...tags.map((tag) => el("span", { className: "tag", "data-tag": tag }, w(`tag_${tag}`))));
}

export class WaitingLine {
  #count = el("span", { className: "count" });
  #list = el("ol", { className: "rows" });
  #none = el("p", { className: "empty" }, w("noLine"));
  #more = el("p", { className: "hint", hidden: true });
  #rows;
  #client;
  element = el("section", { "data-testid": "line", "aria-labelledby": "desk-line" }, el("h2", { id: "desk-line" }, w("line"), " ", this.#count), this.#list, this.#more, this.#none);

  /** @param {Client} client @param {((sessionId: string) => void) | null} claim null where nobody can be taken from the line */
  constructor(client, claim) {
    this.#client = client;
    this.#rows = new Rows(this.#list, (sessionId) => {
      const name = el("span", { className: "who" });
      const place = el("span", { className: "last" });
      const button = claim && el("button", { type: "button", "data-testid": "claim", "data-session-id": sessionId, onclick: () => claim(sessionId) }, w("claim"));
      const element = el("li", { "data-testid": "line-entry", "data-session-id": sessionId }, el("div", {}, name, place), button);
      return { element, name, place, button };
    });
  }

  update() {
    const { sessions, total } = this.#client.line;
    setText(this.#count, total ? String(total) : "");
    this.element.dataset.total = String(total);
    this.#none.hidden = sessions.length > 0;
    this.#more.hidden = total <= sessions.length;
    setText(this.#more, total > sessions.length ? w("lineMore", { count: total - sessions.length }) : "");
    this.tick();
  }

  tick() {
    const { sessions } = this.#client.line;
    const now = serverNow();
    const { status, activeSessions = 0, maxSessions = 0 } = this.#client.agent ?? {};
    const mayClaim = status === "online" && activeSessions < maxSessions;
    const rows = this.#rows.show(sessions.map((/** @type {any} */ { sessionId }) => sessionId));
    sessions.forEach((/** @type {any} */ { sessionId, userInfo, position, waitingSince: since }, /** @type {number} */ index) => {
      const { name, place, button } = rows[index];
      const who = visitorName(userInfo, sessionId);
      setText(name, userInfo?.vip ? `${who} · ${w("tag_vip")}` : who);
      const money = typeof userInfo?.balance === "number" ? ` · ${amount(userInfo.balance)}` : "";
      setText(place, w("place", { position, time: duration(now - since) }) + money);
      if (button) {
        button.disabled = !mayClaim;
        button.title = mayClaim ? "" : w("claimNot");
      }
      if (button && button.dataset.who !== who) {
        button.dataset.who = who;
        button.setAttribute("aria-label", w("claimOf", { name: who }));
      }
    });
  }
}
