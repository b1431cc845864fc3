// What was said in one session, and what colleagues noted beside it, in the order it happened.
import { w } from "./console-strings.js";
import { clockOf, dateAndTime, dayName, dayOf, serverNow } from "./desk-clock.js";
import { framed, setText } from "./desk-kit.js";
import { VirtualList } from "./desk-virtual.js";
import { el, linked } from "./dom.js";
import { t } from "./shared/i18n.js";
import { LATE_MS, MessageView } from "./shared/message-view.js";

/**
 * @typedef {import("./client.js").Client} Client
 * @typedef {import("./client.js").Message} Message
 * @typedef {import("./client.js").Session} Session
 * @typedef {import("./desk-notes.js").Note} Note
 *
 * @typedef {object} TimelineOptions
 * @property {Client} client
 * @property {() => Note[]} notes those of the session that is shown, ascending
 * @property {boolean} [readOnly] look, without telling that it was read
 */

/** This many rows from the first loaded one, the page before is fetched. */
const NEAR_ROWS = 12;
/** How many pages are fetched to come back to where the reader was before a reload. */
const MOST_PAGES_BACK = 40;
const OLDER_AGAIN_MS = 2_000;
/** Kept in the region that screen readers read out. */
const SPOKEN = 3;

export class Timeline {
  #client;
  #notes;
  #readOnly;
  /** @type {Session | null} */
  #session = null;
  #loading = false;
  #pages = 0;
  /** @type {any} */
  #lateTimer;
  /** Position to come back to. @type {{seq: number, offset: number} | null} */
  #return = null;
  /** @type {Message | null} Newest message that was spoken, or was there from the start. */
  #spoken = null;
  /** @type {any[]} */
  #rows = [];
  #update = framed(() => this.#draw());

  #older = el("button", { type: "button", className: "quiet", "data-testid": "older", onclick: () => this.#loadOlder() }, t("older"));
  #beginning = el("span", {}, w("beginning"));
  #head = el("div", { className: "head" }, this.#older, this.#beginning);
  // Silent: rows come and go with scrolling, which is no news. What is new is said in `#speech`.
  #scroller = el("div", { className: "scroller", role: "log", "aria-live": "off", "aria-label": t("messages"), tabIndex: 0, "data-testid": "messages" });
  #speech = el("div", { className: "unseen", "aria-live": "polite", "data-testid": "spoken" });
  #newer = el("button", { type: "button", className: "newer", hidden: true, "data-testid": "newer", onclick: () => this.#list.toEnd() }, w("newest"));
  #typing = el("p", { className: "typing", role: "status", hidden: true, "data-testid": "typing" }, t("typing"));
  #list;
  element = el("div", { className: "timeline" }, this.#scroller, this.#newer, this.#typing, this.#speech);

  /** @param {TimelineOptions} options */
  constructor({ client, notes, readOnly = false }) {
    this.#client = client;
    this.#notes = notes;
    this.#readOnly = readOnly;
    this.#list = new VirtualList({
      scroller: this.#scroller,
      head: this.#head,
      make: (row) => this.#view(row),
      onShown: (first, last) => this.#shown(first, last),
    });
    client.on("change", (session) => session === this.#session && this.#update());
    document.addEventListener("visibilitychange", () => this.#list.draw());
  }

  /** What is looked at, to come back to it: null at the end. */
  get position() {
    const { anchor } = this.#list;
    const message = anchor && this.#rows.find(({ key }) => key === anchor.key)?.message;
    return message?.seq ? { seq: message.seq, offset: anchor?.offset ?? 0 } : null;
  }

  /** @param {Session | null} session @param {{seq: number, offset: number} | null} [position] */
  show(session, position = null) {
    if (session !== this.#session) {
      this.#session = session;
      this.#return = position;
      this.#pages = 0;
      this.#spoken = session?.messages.at(-1) ?? null;
      this.#speech.replaceChildren();
      this.#list.reset();
    }
    this.#draw();
  }

  /** Draws soon what changed. */
  update() {
    this.#update();
  }

  #draw() {
    const session = this.#session;
    const messages = session?.messages ?? [];
    const ownIsNew = messages.length > 0 && !messages[messages.length - 1].seq;
    this.#rows = session ? rowsOf(messages, this.#notes()) : [];
    this.#older.hidden = !session?.hasOlder;
    this.#beginning.hidden = Boolean(session?.hasOlder);
    this.#typing.hidden = !session?.typing;
    if (this.#return) this.#goBack(messages);
    // What one has just written oneself is to be seen.
    if (ownIsNew && messages[messages.length - 1] !== this.#spoken && !this.#readOnly) this.#list.atEnd = true;
    this.#list.show(this.#rows);
    this.#speak(messages);
    clearTimeout(this.#lateTimer);
    // Its writer is told when a message has been under way too long (B59).
    if (ownIsNew) this.#lateTimer = setTimeout(() => this.#update(), LATE_MS);
  }

  /** @param {Message[]} messages */
  #goBack(messages) {
    const { seq, offset } = this.#return ?? { seq: 0, offset: 0 };
    const message = messages.find((candidate) => candidate.seq === seq);
    if (message) {
      this.#return = null;
      this.#list.reset({ key: message, offset });
    } else if (this.#session?.hasOlder && this.#pages < MOST_PAGES_BACK) {
      this.#loadOlder();
    } else if (messages.length > 0) this.#return = null;
  }

  /** @param {any} row */
  #view(row) {
    if (row.note) return noteView(row.note);
    if (row.day) return dayView(row.day);
    const view = new MessageView(this.#client, row.message);
    return { element: el("div", { className: "row" }, view.element), update: () => view.update(this.#session) };
  }

  async #loadOlder() {
    const session = this.#session;
    if (!session?.hasOlder || this.#loading) return;
    this.#loading = true;
    this.#pages++;
    try {
      await this.#client.loadOlder(session.sessionId);
      this.#update();
    } catch {
      // Without a connection, or refused for load: tried again while the first rows are in sight.
      setTimeout(() => this.#update(), OLDER_AGAIN_MS);
    } finally {
      this.#loading = false;
    }
  }

  /** @param {number} first @param {number} last */
  #shown(first, last) {
    this.#newer.hidden = this.#list.atEnd;
    if (first < NEAR_ROWS && this.#session?.hasOlder) this.#loadOlder();
    if (!this.#readOnly && document.visibilityState === "visible") this.#markRead(last);
  }

  /** Read is what was really on screen, and all above it. @param {number} last */
  #markRead(last) {
    const session = this.#session;
    for (let index = last; session && index >= 0; index--) {
      const { message } = this.#rows[index];
      if (!message?.incoming || !message.seq) continue;
      if (message.seq > session.readUpTo) this.#client.markRead(session.sessionId, message.msgId);
      return;
    }
  }

  /** @param {Message[]} messages */
  #speak(messages) {
    const from = this.#spoken ? messages.lastIndexOf(this.#spoken) + 1 : 0;
    const fresh = messages.slice(from).filter(({ incoming }) => incoming);
    for (const { content, msgType } of fresh.slice(-SPOKEN)) {
      this.#speech.append(el("p", {}, w("said", { text: msgType === "image" ? t("image") : content })));
    }
    while (this.#speech.childElementCount > SPOKEN) this.#speech.firstElementChild.remove();
    this.#spoken = messages.at(-1) ?? null;
  }
}

/**
 * Days, messages and notes by time; what is not stored yet has none and comes last.
 * @param {Message[]} messages @param {Note[]} notes
 */
function rowsOf(messages, notes) {
  /** @type {any[]} */
  const rows = [];
  let day = NaN;
  let note = 0;
  const place = (/** @type {number} */ time, /** @type {any} */ row) => {
    if (dayOf(time) !== day) {
      day = dayOf(time);
      rows.push({ key: `day ${day}`, day: time });
    }
    rows.push(row);
  };
  for (const message of messages) {
    const time = message.time ?? null;
    while (note < notes.length && (time === null || notes[note].time < time)) {
      const before = notes[note++];
      // A note of a time whose messages are not loaded waits for them.
      if (rows.length > 0 || time === null) place(before.time, { key: before.noteId, note: before });
    }
    place(time ?? serverNow(), { key: message, message });
  }
  for (const after of notes.slice(note)) place(after.time, { key: after.noteId, note: after });
  return rows;
}

/** @param {number} time */
function dayView(time) {
  const name = el("span", {});
  const element = el("div", { className: "row day", role: "separator" }, name);
  return { element, update: () => setText(name, dayName(time)) };
}

/** @param {Note} note */
function noteView({ name, adminId, content, time }) {
  const element = el(
    "div",
    { className: "row" },
    el(
      "article",
      { className: "note", "data-testid": "note-entry" },
      el("span", { className: "sender" }, w("noteBy", { name: name || adminId })),
      el("div", { className: "body" }, linked(content)),
      el("div", { className: "meta" }, el("time", { title: dateAndTime(time) }, clockOf(time))),
    ),
  );
  return { element, update: () => {} };
}
