// The dialog in which canned replies are written, changed and deleted.
import { w } from "./console-strings.js";
import { refusal } from "./desk-kit.js";
import { el } from "./dom.js";

/**
 * @typedef {import("./desk-canned.js").Canned} Canned
 * @typedef {import("./desk-canned.js").CannedBook} CannedBook
 */

export class CannedDialog {
  #book;
  #scope;
  /** @type {Canned | null} The one in the form; null for a new one. */
  #item = null;

  #list = el("ul", { className: "rows", "data-testid": "canned-items" });
  #none = el("p", { className: "empty" }, w("cannedEmpty"));
  #shortcut = el("input", { type: "text", required: true, maxLength: 32, autocomplete: "off", spellcheck: false, pattern: "[^\\s\\/]\\S*", title: w("cannedShortcutRule"), "data-testid": "canned-shortcut" });
  #title = el("input", { type: "text", maxLength: 128, autocomplete: "off", "data-testid": "canned-title" });
  #content = el("textarea", { rows: 5, required: true, maxLength: 1000, "aria-describedby": "desk-canned-places", "data-testid": "canned-content" });
  #heading = el("h3", {});
  #notice = el("p", { className: "notice", role: "alert", hidden: true, "data-testid": "canned-notice" });
  #done = el("p", { className: "hint", role: "status", "data-testid": "canned-done" });
  #save = el("button", { type: "submit", className: "primary", "data-testid": "canned-save" }, w("save"));
  #delete = el("button", { type: "button", "data-testid": "canned-delete", onclick: () => this.#remove() }, w("delete"));
  #form = el(
    "form",
    { className: "stack" },
    this.#heading,
    el("label", { className: "field" }, w("cannedShortcut"), this.#shortcut),
    el("label", { className: "field" }, w("cannedTitle"), this.#title),
    el("label", { className: "field" }, w("cannedContent"), this.#content),
    el("p", { className: "hint", id: "desk-canned-places" }, w("cannedPlaces", { visitor: "{visitor}", agent: "{agent}", source: "{source}", date: "{date}" })),
    this.#notice,
    this.#done,
    el("div", { className: "buttons" }, this.#save, this.#delete),
  );
  element = el(
    "dialog",
    { className: "dialog wide", "aria-labelledby": "desk-canned-heading", "data-testid": "canned-dialog" },
    el(
      "header",
      {},
      el("h2", { id: "desk-canned-heading" }, w("canned")),
      el("button", { type: "button", "data-testid": "canned-new", onclick: () => this.#edit(null, true) }, w("cannedNew")),
      el("button", { type: "button", "data-testid": "canned-close", onclick: () => this.element.close() }, w("close")),
    ),
    el("div", { className: "split" }, el("div", {}, this.#list, this.#none), this.#form),
  );

  /** @param {CannedBook} book @param {"mine" | "team"} scope the ones that this person may change */
  constructor(book, scope) {
    this.#book = book;
    this.#scope = scope;
    this.#form.addEventListener("submit", (/** @type {Event} */ event) => {
      event.preventDefault();
      this.#store();
    });
  }

  async open() {
    if (this.element.open) return;
    this.#edit(null);
    this.#drawList();
    this.element.showModal();
    this.#shortcut.focus();
    await this.#attempt(() => this.#book.load());
  }

  /** @param {Canned | null} item @param {boolean} [focus] */
  #edit(item, focus = false) {
    this.#item = item;
    const writable = !item || item.scope === this.#scope;
    this.#heading.textContent = item ? `/${item.shortcut}` : w("cannedNew");
    this.#shortcut.value = item?.shortcut ?? "";
    this.#title.value = item?.title ?? "";
    this.#content.value = item?.content ?? "";
    for (const field of [this.#shortcut, this.#title, this.#content]) field.readOnly = !writable;
    this.#save.hidden = !writable;
    this.#delete.hidden = !item || !writable;
    this.#say("");
    this.#done.textContent = writable ? "" : w("cannedOfTeam");
    this.#drawList();
    if (focus) this.#shortcut.focus();
  }

  #drawList() {
    this.#none.hidden = this.#book.items.length > 0;
    const rows = this.#book.items.map((item) =>
      el(
        "li",
        {},
        el(
          "button",
          { type: "button", "aria-current": String(item.id === this.#item?.id), "data-testid": "canned-item", onclick: () => this.#edit(item, true) },
          el("strong", {}, `/${item.shortcut}`),
          el("span", { className: "tag" }, w(item.scope === "team" ? "scopeTeam" : "scopeMine")),
          el("span", { className: "last" }, item.title || item.content),
        ),
      ),
    );
    this.#list.replaceChildren(...rows);
  }

  async #store() {
    const item = {
      ...(this.#item ? { id: this.#item.id } : {}),
      shortcut: this.#shortcut.value.trim(),
      title: this.#title.value.trim(),
      content: this.#content.value.trim(),
      scope: this.#scope,
    };
    const done = await this.#attempt(async () => this.#edit(await this.#book.put(item)));
    if (done) this.#done.textContent = w("saved");
  }

  async #remove() {
    const item = this.#item;
    if (!item) return;
    await this.#attempt(async () => {
      await this.#book.delete(item.id);
      this.#edit(null, true);
    });
  }

  /** @param {() => Promise<unknown>} act */
  async #attempt(act) {
    try {
      await act();
      this.#drawList();
      return true;
    } catch (error) {
      this.#say(refusal(error, { conflict: w("cannedTaken"), bad_request: w("cannedBad") }, { max: 500 }));
      return false;
    }
  }

  /** @param {string} text */
  #say(text) {
    this.#done.textContent = "";
    this.#notice.textContent = text;
    this.#notice.hidden = text === "";
  }
}
