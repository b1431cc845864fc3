// Handing a session to a colleague: who has room, and a word to them.
import { w } from "./console-strings.js";
import { el } from "./dom.js";

/** @typedef {{adminId: string, name: string, activeSessions: number, maxSessions: number}} Colleague */

export class TransferForm {
  #colleagues;
  #target = el("select", { required: true, "data-testid": "transfer-target" });
  #note = el("textarea", { rows: 2, maxLength: 500, "data-testid": "transfer-note" });
  #none = el("p", { className: "empty", role: "status", hidden: true, "data-testid": "transfer-none" }, w("transferNone"));
  #submit = el("button", { type: "submit", className: "primary", disabled: true, "data-testid": "transfer-submit" }, w("transferSubmit"));
  #cancel = el("button", { type: "button", onclick: () => this.#cancelled() }, w("cancel"));
  /** The button that opens and closes the form. */
  toggle = el("button", { type: "button", "aria-expanded": "false", "data-testid": "transfer", onclick: () => this.#toggled() }, w("transfer"));
  element = el(
    "form",
    { className: "stack transfer", hidden: true },
    el("label", { className: "field" }, w("transferTarget"), this.#target),
    this.#none,
    el("label", { className: "field" }, w("transferNote"), this.#note),
    el("div", { className: "buttons" }, this.#submit, this.#cancel),
  );

  /** @param {() => Promise<Colleague[]>} colleagues @param {(adminId: string, note: string) => void} transfer */
  constructor(colleagues, transfer) {
    this.#colleagues = colleagues;
    this.element.addEventListener("submit", (/** @type {Event} */ event) => {
      event.preventDefault();
      transfer(this.#target.value, this.#note.value.trim());
    });
    this.element.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      if (event.key === "Escape") this.#cancelled();
    });
  }

  /** What is written in the note so far is kept: the form may have been closed by mistake. */
  close() {
    this.element.hidden = true;
    this.toggle.setAttribute("aria-expanded", "false");
  }

  /** The session has gone; the next one starts with an empty form. */
  reset() {
    this.close();
    this.element.reset();
  }

  #cancelled() {
    this.close();
    this.toggle.focus();
  }

  async #toggled() {
    if (!this.element.hidden) return this.close();
    this.element.hidden = false;
    this.toggle.setAttribute("aria-expanded", "true");
    const colleagues = await this.#colleagues().catch(() => []);
    this.#target.replaceChildren(...colleagues.map(colleagueOption));
    const free = colleagues.filter(hasRoom);
    this.#none.hidden = free.length > 0;
    this.#submit.disabled = this.#target.disabled = free.length === 0;
    if (free.length > 0) this.#target.value = free[0].adminId;
    (free.length > 0 ? this.#target : this.#note).focus();
  }
}

/** @param {Colleague} colleague */
function hasRoom({ activeSessions, maxSessions }) {
  return activeSessions < maxSessions;
}

/** @param {Colleague} colleague */
function colleagueOption(colleague) {
  const { adminId, name, activeSessions, maxSessions } = colleague;
  const room = hasRoom(colleague) ? w("room", { count: maxSessions - activeSessions, max: maxSessions }) : w("roomNone");
  return el("option", { value: adminId, disabled: !hasRoom(colleague) }, `${name || adminId} – ${room}`);
}
