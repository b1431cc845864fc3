// Writing in a session: a reply to the visitor, or a private note to colleagues; each with a draft of its own.
import { w } from "./console-strings.js";
import { CannedMenu } from "./desk-canned.js";
import { refusal, view } from "./desk-kit.js";
import { Composer } from "./shared/composer.js";
import { el } from "./dom.js";
import { storage } from "./storage.js";

/**
 * @typedef {import("./client.js").Client} Client
 * @typedef {import("./client.js").Session} Session
 * @typedef {"reply" | "note"} Mode
 */

const NOTE_MOST = 500;
/** From this many characters left on, the counter shows. */
const NOTE_NEAR = 50;

/** @param {Mode} mode @param {string} sessionId what is being written is kept over a reload */
export function draftOf(mode, sessionId) {
  const key = `kefu.console.${mode}.${sessionId}`;
  return {
    get: () => storage.getItem(key) ?? "",
    /** @param {string} text */
    set: (text) => (text ? storage.setItem(key, text) : storage.removeItem(key)),
  };
}

export class Compose {
  #options;
  /** @type {Session | null} */
  #session = null;
  /** @type {Mode} */
  #mode;
  /** @type {Composer | null} */
  #composer = null;
  /** @type {AbortController | null} */
  #dropped = null;
  #menu;
  #note;

  #reply = el("input", { type: "radio", name: "desk-mode", value: "reply", "data-testid": "mode-reply", onchange: () => this.setMode("reply") });
  #private = el("input", { type: "radio", name: "desk-mode", value: "note", "data-testid": "mode-note", onchange: () => this.setMode("note") });
  #modes = el(
    "fieldset",
    { className: "modes" },
    el("legend", { className: "unseen" }, w("modeLegend")),
    el("label", {}, this.#reply, el("span", {}, w("modeReply"))),
    el("label", {}, this.#private, el("span", {}, w("modeNote"))),
  );
  #holder = el("div", { className: "reply" });
  element = el("div", { className: "compose" }, this.#modes);

  /**
   * @param {object} options
   * @param {Client} options.client
   * @param {import("./desk-canned.js").CannedBook} options.canned
   * @param {() => Record<string, string | undefined>} options.values what the places of canned replies stand for
   * @param {() => void} options.manage opens the dialog of canned replies
   * @param {(sessionId: string, content: string, key: string) => Promise<void>} options.addNote
   * @param {() => HTMLElement} options.dropPlace images dropped there are sent
   * @param {boolean} options.mayReply a supervisor only notes
   * @param {() => void} options.drafted a draft began or ended
   */
  constructor(options) {
    this.#options = options;
    this.#mode = options.mayReply ? (view.get("mode") ?? "reply") : "note";
    this.#menu = new CannedMenu(options.canned, options.values, options.manage);
    this.#note = new NoteForm(options.addNote, options.drafted);
    this.#modes.hidden = !options.mayReply;
    this.element.append(this.#menu.element, this.#menu.status, this.#holder, this.#note.element);
  }

  get mode() {
    return this.#mode;
  }

  /** @param {Session | null} session */
  show(session) {
    // Ended ones take notes still; replies they take none.
    const replies = this.#options.mayReply && session?.status === "active" && !session.readOnly;
    if (session?.sessionId !== this.#session?.sessionId) this.#switch(session);
    this.element.hidden = session === null;
    this.#modes.hidden = !replies;
    this.#drawMode(replies ? this.#mode : "note");
  }

  /** @param {Mode} mode */
  setMode(mode) {
    this.#mode = mode;
    view.set("mode", mode);
    this.show(this.#session);
    this.focus();
  }

  focus() {
    if (this.#note.element.hidden) this.#composer?.focus();
    else this.#note.focus();
  }

  /** @param {Session | null} session */
  #switch(session) {
    // What is written in another conversation is for its visitor, unless a note is asked for anew.
    if (this.#session && this.#options.mayReply) view.set("mode", (this.#mode = "reply"));
    this.#session = session;
    this.#dropped?.abort();
    this.#composer = null;
    this.#menu.close();
    this.#note.show(session?.sessionId ?? null);
    this.#holder.replaceChildren();
    if (!session || !this.#options.mayReply) return;
    const draft = draftOf("reply", session.sessionId);
    const set = (/** @type {string} */ text) => {
      const began = Boolean(draft.get()) !== Boolean(text);
      draft.set(text);
      if (began) this.#options.drafted();
    };
    this.#composer = new Composer(this.#options.client, session.sessionId, { draft: { get: draft.get, set }, keydown: (event) => this.#menu.key(event) });
    this.#dropped = new AbortController();
    this.#composer.dropOn(this.#options.dropPlace(), this.#dropped.signal);
    this.#menu.attach(this.#composer.input);
    this.#holder.append(this.#composer.element);
  }

  /** @param {Mode} mode */
  #drawMode(mode) {
    this.element.dataset.mode = mode;
    this.#reply.checked = mode === "reply";
    this.#private.checked = mode === "note";
    this.#holder.hidden = mode !== "reply";
    this.#note.element.hidden = mode !== "note";
  }
}

/** Not `randomUUID`, which pages on plain http do not have. */
function newKey() {
  return crypto.getRandomValues(new Uint32Array(4)).join("-");
}

class NoteForm {
  #add;
  #drafted;
  /** @type {string | null} */
  #sessionId = null;
  /** The same key for a second try of the same text, so that it is noted once. */
  #key = "";
  #input = el("textarea", { rows: 2, "aria-label": w("notePlaceholder"), placeholder: w("notePlaceholder"), "data-testid": "note-input" });
  #left = el("span", { className: "hint", role: "status", hidden: true });
  #notice = el("p", { className: "notice", role: "alert", hidden: true, "data-testid": "note-notice" });
  #submit = el("button", { type: "submit", "data-testid": "note-add" }, w("noteAdd"));
  element = el("form", { className: "note-form", hidden: true }, this.#notice, el("div", { className: "line" }, this.#input, this.#submit), this.#left);

  /** @param {(sessionId: string, content: string, key: string) => Promise<void>} add @param {() => void} drafted */
  constructor(add, drafted) {
    this.#add = add;
    this.#drafted = drafted;
    this.element.addEventListener("submit", (/** @type {Event} */ event) => {
      event.preventDefault();
      this.#store();
    });
    this.#input.addEventListener("input", () => this.#written());
    this.#input.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      // 229: Safari tells the Enter that ends a composition after it has ended (B70).
      if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
      event.preventDefault();
      this.#store();
    });
  }

  /** @param {string | null} sessionId */
  show(sessionId) {
    this.#sessionId = sessionId;
    this.#key = newKey();
    this.#input.value = sessionId ? draftOf("note", sessionId).get() : "";
    this.#say("");
    this.#count();
  }

  focus() {
    this.#input.focus();
  }

  #written() {
    this.#key = newKey();
    if (this.#sessionId) draftOf("note", this.#sessionId).set(this.#input.value);
    this.#count();
    this.#drafted();
  }

  #count() {
    const left = NOTE_MOST - [...this.#input.value].length;
    this.#left.hidden = left > NOTE_NEAR;
    this.#left.textContent = left > NOTE_NEAR ? "" : w("left", { count: left });
    this.#submit.disabled = left < 0;
  }

  async #store() {
    const sessionId = this.#sessionId;
    const content = this.#input.value.trim();
    if (!sessionId || content === "" || this.#submit.disabled) return;
    this.#submit.disabled = true;
    this.#say("");
    try {
      await this.#add(sessionId, content, this.#key);
      draftOf("note", sessionId).set("");
      if (sessionId === this.#sessionId) this.show(sessionId);
      this.#drafted();
    } catch (error) {
      this.#say(refusal(error, {}, { max: NOTE_MOST }));
      this.#submit.disabled = false;
    }
  }

  /** @param {string} text */
  #say(text) {
    this.#notice.textContent = text;
    this.#notice.hidden = text === "";
  }
}
