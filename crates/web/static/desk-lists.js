// The two lists of the console: own sessions, and who waits.
import { el } from "./dom.js";
import { language, t } from "./shared/i18n.js";

const TIME = new Intl.DateTimeFormat(language(), { hour: "2-digit", minute: "2-digit" });

/** @param {{name?: string, userId?: string} | null | undefined} userInfo @param {string} sessionId */
function visitorName(userInfo, sessionId) {
  return userInfo?.name || userInfo?.userId || sessionId;
}

/** Rows are kept by key, so that a focused button stays focused while the list changes around it. */
class Rows {
  #make;
  #list;
  /** @type {Map<string, any>} */
  #rows = new Map();

  /** @param {HTMLElement} list @param {(key: string) => any} make */
  constructor(list, make) {
    this.#list = list;
    this.#make = make;
  }

  /** @param {string[]} keys @returns {any[]} a row for each key, in order */
  show(keys) {
    const wanted = new Set(keys);
    for (const [key, row] of this.#rows) {
      if (wanted.has(key)) continue;
      row.element.remove();
      this.#rows.delete(key);
    }
    return keys.map((key, index) => {
      const row = this.#rows.get(key) ?? this.#make(key);
      this.#rows.set(key, row);
      if (this.#list.children[index] !== row.element) this.#list.insertBefore(row.element, this.#list.children[index] ?? null);
      return row;
    });
  }
}

export class SessionList {
  #list = el("ul", {});
  #none = el("p", { className: "empty" }, t("noSessions"));
  #rows;
  element = el("section", {}, el("h2", {}, t("sessions")), this.#list, this.#none);

  /** @param {(sessionId: string) => void} select */
  constructor(select) {
    this.#rows = new Rows(this.#list, (sessionId) => {
      const name = el("span", { className: "who" });
      const last = el("span", { className: "last" });
      const badge = el("span", { className: "badge" });
      const button = el("button", { type: "button", "data-testid": "session", "data-session-id": sessionId, onclick: () => select(sessionId) }, name, badge, last);
      return { element: el("li", {}, button), button, name, last, badge };
    });
  }

  /** @param {import("./client.js").Session[]} stores @param {string | null} selected */
  update(stores, selected) {
    this.#none.hidden = stores.length > 0;
    const rows = this.#rows.show(stores.map((store) => store.sessionId));
    stores.forEach((store, index) => {
      const { button, name, last, badge } = rows[index];
      const message = store.messages.at(-1);
      button.dataset.unread = String(store.unreadCount);
      button.dataset.status = store.status;
      button.setAttribute("aria-current", String(store.sessionId === selected));
      name.textContent = visitorName(store.userInfo, store.sessionId);
      last.textContent = store.typing ? t("typing") : message?.msgType === "image" ? t("image") : (message?.content ?? "");
      badge.textContent = store.unreadCount ? String(store.unreadCount) : "";
      badge.hidden = store.unreadCount === 0;
      badge.title = t("unread", { count: store.unreadCount });
    });
  }
}

export class WaitingLine {
  #title = el("h2", {});
  #list = el("ol", {});
  #none = el("p", { className: "empty" }, t("noLine"));
  #rows;
  element = el("section", { "data-testid": "line" }, this.#title, this.#list, this.#none);

  /** @param {(sessionId: string) => void} claim */
  constructor(claim) {
    this.#rows = new Rows(this.#list, (sessionId) => {
      const name = el("span", { className: "who" });
      const place = el("span", { className: "last" });
      const button = el("button", { type: "button", "data-testid": "claim", "data-session-id": sessionId, onclick: () => claim(sessionId) }, t("claim"));
      const element = el("li", { "data-testid": "line-entry", "data-session-id": sessionId }, el("div", {}, name, place), button);
      return { element, name, place };
    });
  }

  /** @param {{sessions: any[], total: number}} line */
  update({ sessions, total }) {
    this.#title.textContent = t("line", { total });
    this.element.dataset.total = String(total);
    this.#none.hidden = sessions.length > 0;
    const rows = this.#rows.show(sessions.map(({ sessionId }) => sessionId));
    sessions.forEach(({ sessionId, userInfo, position, waitingSince }, index) => {
      rows[index].name.textContent = visitorName(userInfo, sessionId);
      rows[index].place.textContent = t("place", { position, time: TIME.format(waitingSince) });
    });
  }
}
