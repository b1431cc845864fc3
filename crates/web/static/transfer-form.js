// Handing a session to a colleague: who has room, and a word to them.
import { el } from "./dom.js";
import { t } from "./shared/i18n.js";

/** @typedef {{adminId: string, name: string, activeSessions: number, maxSessions: number}} Target */

export class TransferForm {
  #targets;
  #target = el("select", { required: true, "data-testid": "transfer-target" });
  #note = el("textarea", { rows: 2, maxLength: 500, "data-testid": "transfer-note" });
  #none = el("p", { className: "empty", hidden: true }, t("noTarget"));
  #submit = el("button", { type: "submit", disabled: true, "data-testid": "transfer-submit" }, t("transferSubmit"));
  #form = el("form", { hidden: true }, el("label", { className: "field" }, t("transferTarget"), this.#target), this.#none, el("label", { className: "field" }, t("transferNote"), this.#note), this.#submit);
  /** The button that opens and closes the form. */
  toggle = el("button", { type: "button", "aria-expanded": "false", "data-testid": "transfer", onclick: () => this.#toggled() }, t("transfer"));
  element = el("div", { className: "transfer" }, this.#form);

  /** @param {() => Promise<Target[]>} targets @param {(adminId: string, note: string) => void} transfer */
  constructor(targets, transfer) {
    this.#targets = targets;
    this.#form.addEventListener("submit", (/** @type {Event} */ event) => {
      event.preventDefault();
      transfer(this.#target.value, this.#note.value.trim());
    });
  }

  close() {
    this.#form.hidden = true;
    this.#form.reset();
    this.toggle.setAttribute("aria-expanded", "false");
  }

  async #toggled() {
    if (!this.#form.hidden) return this.close();
    this.#form.hidden = false;
    this.toggle.setAttribute("aria-expanded", "true");
    const targets = await this.#targets().catch(() => []);
    const options = targets.map(({ adminId, name, activeSessions, maxSessions }) =>
      el("option", { value: adminId }, t("agentRoom", { name: name || adminId, active: activeSessions, max: maxSessions })),
    );
    this.#target.replaceChildren(...options);
    this.#none.hidden = targets.length > 0;
    this.#submit.disabled = targets.length === 0;
  }
}
