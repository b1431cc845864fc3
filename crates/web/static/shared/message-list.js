// The messages of one session: kept at the end while the end is in sight, older ones on scroll, read when really seen.
import { coalesced, el } from "../dom.js";
import { language, t } from "./i18n.js";
import { LATE_MS, MessageView } from "./message-view.js";
import "./strings.js";

/**
 * @typedef {import("../client.js").Client} Client
 * @typedef {import("../client.js").Message} Message
 */

const NEAR_PX = 60;

/** @param {Element} element */
const top = (element) => element.getBoundingClientRect().top;

export class MessageList {
  #client;
  #sessionId;
  #options;
  /** @type {Map<Message, MessageView>} */
  #views = new Map();
  /** @type {Map<string, HTMLElement>} */
  #days = new Map();
  /** @type {Set<Element>} */
  #onScreen = new Set();
  #loading = false;
  /** Whether the end is in sight, and is to stay so. */
  #atEnd = true;
  /** @type {any} */
  #lateTimer;
  #gone = new AbortController();
  #older = el("button", { type: "button", className: "quiet", hidden: true, "data-testid": "older", onclick: () => this.#loadOlder() }, t("older"));
  #log = el("div", { className: "log", role: "log", "aria-live": "polite", "aria-label": t("messages"), tabIndex: 0, "data-testid": "messages" }, this.#older);
  #typing = el("p", { className: "typing", role: "status", hidden: true, "data-testid": "typing" }, t("typing"));
  // Read is what was really on screen: in the visible part of the list, in a visible page.
  #watcher = new IntersectionObserver((entries) => this.#seen(entries), { root: this.#log, threshold: [0, 0.1, 0.2, 0.4, 0.6] });
  // A phone's keyboard, a turned phone, a notice above: the end stays in sight.
  #size = new ResizeObserver(() => this.#keepEnd());
  element = el("div", { className: "thread" }, this.#log, this.#typing);
  /** Draws what changed, once for all changes of a turn. */
  update = coalesced(() => this.#draw());

  /** @param {Client} client @param {string} sessionId @param {{readOnly?: boolean, days?: boolean}} [options] */
  constructor(client, sessionId, options = {}) {
    this.#client = client;
    this.#sessionId = sessionId;
    this.#options = options;
    const { signal } = this.#gone;
    // An image has its height only when it has come; `load` does not bubble.
    this.#log.addEventListener("load", () => this.#keepEnd(), { capture: true, signal });
    this.#size.observe(this.#log);
    this.#log.addEventListener("scroll", () => this.#scrolled(), { signal });
    document.addEventListener("visibilitychange", () => this.#markRead(), { signal });
    if (this.#session?.hasOlder && (this.#session.messages.length ?? 0) < 2) this.#loadOlder();
    this.update();
  }

  dispose() {
    clearTimeout(this.#lateTimer);
    this.#gone.abort();
    this.#watcher.disconnect();
    this.#size.disconnect();
  }

  get #session() {
    return this.#client.sessions.get(this.#sessionId) ?? null;
  }

  #scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = this.#log;
    this.#atEnd = scrollHeight - scrollTop - clientHeight < NEAR_PX;
    if (scrollTop < NEAR_PX) this.#loadOlder();
  }

  /**
   * The first message in sight, even in part: while one reads up there it stays where it is. Not a day's
   * separator, which goes up in front of older messages.
   */
  #topmost() {
    const edge = top(this.#log);
    return [...this.#log.querySelectorAll("article")].find((row) => row.getBoundingClientRect().bottom > edge);
  }

  #keepEnd() {
    if (this.#atEnd) this.#log.scrollTop = this.#log.scrollHeight;
  }

  #draw() {
    const session = this.#session;
    if (this.#gone.signal.aborted || !session) return;
    const { messages } = session;
    const newest = messages.at(-1);
    // What one has just written is to be seen.
    if (newest && !newest.incoming && !this.#views.has(newest)) this.#atEnd = true;
    const anchor = this.#atEnd ? undefined : this.#topmost();
    const before = anchor && top(anchor);
    this.#place(messages);
    this.#older.hidden = !session.hasOlder;
    this.#typing.hidden = !session.typing;
    const moved = anchor?.isConnected ? top(anchor) - before : 0;
    // Scrolling goes by whole pixels: less would add up from draw to draw.
    if (Math.abs(moved) >= 1) this.#log.scrollTop += moved;
    this.#keepEnd();
    this.#markRead();
    clearTimeout(this.#lateTimer);
    if (messages.some((message) => message.state === "sending")) this.#lateTimer = setTimeout(this.update, LATE_MS);
  }

  /** Each message has one element, moved rather than made again. @param {Message[]} messages */
  #place(messages) {
    const wanted = new Set(messages);
    for (const [message, view] of this.#views) {
      if (wanted.has(message)) continue;
      this.#watcher.unobserve(view.element);
      this.#onScreen.delete(view.element);
      view.element.remove();
      this.#views.delete(message);
    }
    /** @type {Element | null} */
    let next = this.#older.nextElementSibling;
    const put = (/** @type {Element} */ element) => {
      if (element === next) next = next.nextElementSibling;
      else this.#log.insertBefore(element, next);
    };
    let day = "";
    for (const message of messages) {
      const its = this.#options.days && message.time ? new Date(message.time).toDateString() : day;
      if (its !== day) put(this.#separator((day = its)));
      const view = this.#views.get(message) ?? this.#newView(message);
      view.update(this.#session);
      put(view.element);
    }
  }

  /** @param {string} day */
  #separator(day) {
    const known = this.#days.get(day);
    if (known) return known;
    const text = new Intl.DateTimeFormat(language(), { dateStyle: "medium" }).format(new Date(day));
    const separator = el("p", { className: "day", "data-testid": "day" }, text);
    this.#days.set(day, separator);
    return separator;
  }

  /** @param {Message} message */
  #newView(message) {
    const view = new MessageView(this.#client, message);
    this.#views.set(message, view);
    this.#watcher.observe(view.element);
    return view;
  }

  async #loadOlder() {
    if (!this.#session?.hasOlder || this.#loading) return;
    this.#loading = true;
    try {
      await this.#client.loadOlder(this.#sessionId);
      this.update();
    } catch {
      // The button stays, to be tried again.
    } finally {
      this.#loading = false;
    }
  }

  /** @param {IntersectionObserverEntry[]} entries */
  #seen(entries) {
    for (const { target, isIntersecting, intersectionRatio, intersectionRect } of entries) {
      const filled = intersectionRect.height > this.#log.clientHeight / 2;
      if (isIntersecting && (intersectionRatio >= 0.6 || filled)) this.#onScreen.add(target);
      else this.#onScreen.delete(target);
    }
    this.#markRead();
  }

  #markRead() {
    if (this.#options.readOnly || document.visibilityState !== "visible") return;
    let newest = null;
    for (const [message, { element }] of this.#views) {
      if (message.incoming && this.#onScreen.has(element)) newest = message;
    }
    if (newest?.msgId) this.#client.markRead(this.#sessionId, newest.msgId);
  }
}
