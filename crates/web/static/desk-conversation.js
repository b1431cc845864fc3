// The pane in the middle: one session, its timeline, and the place to write.
import { w } from "./console-strings.js";
import { dateOf } from "./desk-clock.js";
import { setText, visitorName } from "./desk-kit.js";
import { Timeline } from "./desk-timeline.js";
import { el } from "./dom.js";

/**
 * @typedef {import("./client.js").Client} Client
 * @typedef {import("./client.js").Session} Session
 *
 * @typedef {object} ConversationOptions
 * @property {Client} client
 * @property {import("./desk-notes.js").Notes} notes
 * @property {import("./desk-compose.js").Compose} compose
 * @property {boolean} readOnly a supervisor looks without being noticed
 * @property {string} empty words for no session
 * @property {() => void} back to the lists, where one pane is shown at a time
 * @property {() => void} details to the visitor's pane
 * @property {() => void} leave closes an ended session, or stops looking at one
 */

export class Conversation {
  #options;
  #timeline;
  /** @type {Session | null} */
  #session = null;

  #back = el("button", { type: "button", className: "flat only-narrow", "data-testid": "back" }, w("back"));
  #visitor = el("h2", { "data-testid": "visitor", tabIndex: -1 });
  #details = el("button", { type: "button", className: "flat not-wide", "data-testid": "details" }, w("details"));
  #leave = el("button", { type: "button", "data-testid": "dismiss" });
  #note = el("p", { className: "banner", hidden: true, "data-testid": "note" });
  #state = el("p", { className: "banner", role: "status", hidden: true, "data-testid": "read-only" });
  #ended = el("p", { className: "banner", role: "status", hidden: true, "data-testid": "ended" }, w("ended"));
  #empty;
  #talk;
  element;

  /** @param {ConversationOptions} options */
  constructor(options) {
    this.#options = options;
    const { client, notes, readOnly, compose } = options;
    this.#timeline = new Timeline({ client, readOnly, notes: () => (this.#session ? notes.of(this.#session.sessionId) : []) });
    this.#back.addEventListener("click", options.back);
    this.#details.addEventListener("click", options.details);
    this.#leave.addEventListener("click", options.leave);
    this.#empty = el("p", { className: "empty middle" }, options.empty);
    this.#talk = el(
      "div",
      { className: "talk" },
      el("header", {}, this.#back, this.#visitor, this.#leave, this.#details),
      this.#note,
      this.#state,
      this.#timeline.element,
      this.#ended,
      compose.element,
    );
    this.element = el("section", { className: "pane conversation", "aria-label": w("conversation") }, this.#empty, this.#talk);
  }

  get position() {
    return this.#timeline.position;
  }

  /** @param {Session | null} session @param {{seq: number, offset: number} | null} [position] */
  show(session, position = null) {
    this.#session = session;
    this.#empty.hidden = session !== null;
    this.#talk.hidden = session === null;
    this.#drawHeader();
    this.#options.compose.show(session);
    this.#timeline.show(session, position);
  }

  /** What the session is has changed. */
  update() {
    this.#drawHeader();
    this.#options.compose.show(this.#session);
  }

  /** Its notes have changed. */
  updateNotes() {
    this.#timeline.update();
  }

  focusHeading() {
    this.#visitor.focus();
  }

  #drawHeader() {
    const session = this.#session;
    if (!session) return;
    const { userInfo, sessionId, note, status, readOnly, startedAt } = session;
    setText(this.#visitor, visitorName(userInfo, sessionId));
    this.#note.hidden = !note;
    setText(this.#note, note ? w("note", { note }) : "");
    this.#state.hidden = !readOnly;
    setText(this.#state, readOnly ? w(status === "ended" ? "readOnlyPast" : "readOnlyLive", { date: startedAt ? dateOf(startedAt) : "" }) : "");
    this.#ended.hidden = status !== "ended" || readOnly;
    this.#leave.hidden = status !== "ended" && !readOnly;
    setText(this.#leave, w(readOnly ? "stopLooking" : "dismiss"));
  }
}
