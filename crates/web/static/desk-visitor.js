// The pane at the right: who the visitor is, where they come from, what was before, and what can be done.
import { w } from "./console-strings.js";
import { dateAndTime } from "./desk-clock.js";
import { setText, view, visitorName } from "./desk-kit.js";
import { el } from "./dom.js";
import { avatar } from "./shared/avatar.js";
import { language } from "./shared/i18n.js";

/** @typedef {import("./client.js").Session} Session */

const MOST_PAGES_KEPT = 50;

/** A balance for people: the wire carries minor units. @param {number} minor */
export function amount(minor) {
  return new Intl.NumberFormat(language(), { minimumFractionDigits: 2, maximumFractionDigits: 2 }).format(minor / 100);
}

/** @param {string | undefined} url */
function webAddress(url) {
  if (!url || !URL.canParse(url)) return null;
  return /^https?:$/.test(new URL(url).protocol) ? url : null;
}

export class VisitorPane {
  #name = el("h2", { "data-testid": "visitor-name" });
  #vip = el("span", { className: "tag", "data-tag": "vip", "data-testid": "vip" }, w("tag_vip"));
  #avatar = el("div");
  #facts = el("dl", { className: "facts", "data-testid": "facts" });
  #shown = "";
  /** @type {any} */
  #told = null;
  #rating = el("p", { className: "rating", "data-testid": "rating" });
  #comment = el("p", { className: "said", "data-testid": "rating-comment" });
  /** What came with ratings while this page was open. @type {Map<string, string>} */
  #comments = new Map();
  #actions = el("div", { className: "buttons" });
  element = el("div", { className: "visitor" }, el("header", {}, this.#avatar, this.#name, this.#vip), this.#facts, this.#rating, this.#comment, this.#actions);

  /**
   * @param {import("./client.js").Client} client
   * @param {HTMLElement[]} actions buttons and forms of what this person may do
   * @param {HTMLElement} past
   */
  constructor(client, actions, past) {
    this.#actions.append(...actions);
    this.element.append(past);
    client.on("chat.session.rated", ({ sessionId, content }) => this.#comments.set(sessionId, content));
    // The gateway tells a page when the visitor comes to it, and keeps none: a reload must not lose it.
    client.on("chat.page", ({ sessionId, url, title, language: tongue }) => {
      const pages = Object.entries({ ...view.get("pages"), [sessionId]: { url, title, language: tongue } });
      view.set("pages", Object.fromEntries(pages.slice(-MOST_PAGES_KEPT)));
    });
  }

  /** What a list says of a session that was pushed: the push tells less. @param {any} entry */
  told(entry) {
    this.#told = entry;
  }

  /** @param {Session} session */
  update(session) {
    const { userInfo, sessionId, rating } = session;
    setText(this.#name, visitorName(userInfo, sessionId));
    this.#vip.hidden = !userInfo?.vip;
    this.#drawAvatar(visitorName(userInfo, sessionId), webAddress(userInfo?.avatar));
    this.#rating.hidden = !rating;
    const comment = rating ? (this.#comments.get(sessionId) ?? session.ratingContent) : "";
    this.#comment.hidden = !comment;
    setText(this.#comment, comment ?? "");
    setText(this.#rating, rating ? `${"★".repeat(rating)}${"☆".repeat(5 - rating)} ${w("ratedOf", { rating })}` : "");
    this.#drawFacts(session);
  }

  /** @param {string} name @param {string | null} url */
  #drawAvatar(name, url) {
    const key = `${name} ${url}`;
    if (this.#avatar.dataset.of === key) return;
    this.#avatar.dataset.of = key;
    this.#avatar.replaceChildren(avatar(name, url));
  }

  /** @param {Session} session */
  #drawFacts({ sessionId, userInfo, source, page: told, endedAt, status, ...session }) {
    const known = this.#told?.sessionId === sessionId ? this.#told : {};
    const { startedAt = known.startedAt } = session;
    const agentInfo = session.agentInfo ?? known.agentInfo;
    const page = told ?? view.get("pages")?.[sessionId];
    const url = webAddress(page?.url);
    /** @type {[string, string, string | Node][]} */
    const facts = [];
    if (typeof userInfo?.balance === "number") facts.push(["balance", w("balance"), amount(userInfo.balance)]);
    facts.push(["user", w("userId"), userInfo?.userId ?? "–"]);
    facts.push(["source", w("source"), source || "–"]);
    facts.push(["page", w("page"), url ? el("a", { href: url, target: "_blank", rel: "noopener noreferrer" }, page?.title || url) : w("pageUnknown")]);
    if (page?.language) facts.push(["language", w("language"), page.language]);
    if (startedAt) facts.push(["since", w("since"), dateAndTime(startedAt)]);
    if (status === "ended" && endedAt) facts.push(["until", w("until"), dateAndTime(endedAt)]);
    if (agentInfo) facts.push(["agent", w("servedBy"), agentInfo.name || agentInfo.adminId]);
    const key = JSON.stringify(facts.map(([, name, value]) => [name, value instanceof Node ? [value.textContent, url] : value]));
    if (key === this.#shown) return;
    this.#shown = key;
    this.#facts.replaceChildren(...facts.flatMap(([id, name, value]) => [el("dt", {}, name), el("dd", { "data-testid": `fact-${id}` }, value)]));
  }
}

/** The visitor's earlier conversations, to be read only; a page at a time. */
export class PastSessions {
  #list = el("ul", { className: "rows" });
  #none = el("p", { className: "empty" }, w("pastNone"));
  #more = el("button", { type: "button", className: "quiet", "data-testid": "past-more", onclick: () => this.#load() }, w("pastMore"));
  #notice = el("p", { className: "notice", role: "alert", hidden: true }, w("pastFailed"));
  #client;
  #open;
  #told;
  /** @type {string | null} */
  #sessionId = null;
  /** @type {string | undefined | null} Where the next page begins; null after the last. */
  #cursor = undefined;
  element = el("section", { "aria-labelledby": "desk-past", "data-testid": "past" }, el("h3", { id: "desk-past" }, w("past")), this.#list, this.#none, this.#notice, this.#more);

  /**
   * @param {import("./client.js").Client} client
   * @param {(session: any) => void} open shows one of them
   * @param {(session: any) => void} told takes what the list says of the shown session itself
   */
  constructor(client, open, told) {
    this.#client = client;
    this.#open = open;
    this.#told = told;
  }

  /** @param {string} sessionId the session whose visitor's past is shown */
  show(sessionId) {
    if (sessionId === this.#sessionId || this.#client.state !== "ready") return;
    this.#sessionId = sessionId;
    this.#cursor = undefined;
    this.#list.replaceChildren();
    this.#none.hidden = true;
    this.#load();
  }

  async #load() {
    const sessionId = this.#sessionId;
    if (!sessionId || this.#cursor === null) return;
    this.#notice.hidden = true;
    try {
      const page = await this.#client.listSessions({ scope: "visitor", sessionId, limit: 10, ...(this.#cursor ? { cursor: this.#cursor } : {}) });
      if (sessionId !== this.#sessionId) return;
      this.#cursor = page.nextCursor;
      const own = page.sessions.find((/** @type {any} */ session) => session.sessionId === sessionId);
      if (own) this.#told(own);
      const others = page.sessions.filter((/** @type {any} */ session) => session.sessionId !== sessionId);
      this.#list.append(...others.map((/** @type {any} */ session) => this.#row(session)));
    } catch {
      if (sessionId !== this.#sessionId) return;
      this.#sessionId = null;
      this.#notice.hidden = false;
    }
    this.#more.hidden = !this.#cursor;
    this.#none.hidden = this.#list.childElementCount > 0 || !this.#notice.hidden;
  }

  /** @param {any} session */
  #row(session) {
    const { sessionId, startedAt, agentInfo, lastMessage, rating } = session;
    const stars = rating ? ` · ${"★".repeat(rating)}` : "";
    return el(
      "li",
      {},
      el(
        "button",
        { type: "button", "data-testid": "past-session", "data-session-id": sessionId, onclick: () => this.#open(session) },
        el("span", { className: "who" }, dateAndTime(startedAt)),
        el("span", { className: "last" }, `${agentInfo?.name || agentInfo?.adminId || w("nobody")}${stars}`),
        el("span", { className: "last" }, snippet(lastMessage)),
      ),
    );
  }
}

/** @param {{msgType: string, content: string} | null} message */
export function snippet(message) {
  if (!message) return w("saidNothing");
  return message.msgType === "image" ? w("imageSaid") : message.content;
}
