// Canned replies: the ones known, finding one, filling its places, and the menu that "/" opens.
import { w } from "./console-strings.js";
import { el } from "./dom.js";

/**
 * @typedef {import("./client.js").Client} Client
 * @typedef {{id: string, shortcut: string, title: string, content: string, scope: "mine" | "team"}} Canned
 */

/** A slash that begins a word, up to the caret. */
const ASKED = /(?:^|\s)\/(\S*)$/;
const PLACE = /\{\{\s*([^{}]+?)\s*\}\}/g;
const MOST_SHOWN = 8;

export class CannedBook {
  /** @type {Canned[]} */
  items = [];
  #client;

  /** @param {Client} client */
  constructor(client) {
    this.#client = client;
    client.on("state", ({ state }) => {
      // Where it fails, the list of before stays; the menu and the dialog ask again each time they open.
      if (state === "ready") this.load().catch(() => {});
    });
  }

  async load() {
    /** @type {Canned[]} */
    const items = [];
    let cursor;
    do {
      const page = await this.#client.canned(cursor ? { cursor } : {});
      items.push(...page.items);
      cursor = page.nextCursor;
    } while (cursor);
    this.items = items;
  }

  /** @param {Omit<Canned, "id"> & {id?: string}} item */
  async put(item) {
    const { item: stored } = await this.#client.putCanned(item);
    await this.load();
    return stored;
  }

  /** @param {string} id */
  async delete(id) {
    await this.#client.deleteCanned({ id });
    await this.load();
  }

  /** Shortcuts that begin with it first, then those that hold it anywhere. @param {string} query @returns {Canned[]} */
  find(query) {
    const wanted = query.toLocaleLowerCase();
    const rank = (/** @type {Canned} */ { shortcut, title, content }) => {
      if (shortcut.toLocaleLowerCase().startsWith(wanted)) return 0;
      if (`${shortcut} ${title}`.toLocaleLowerCase().includes(wanted)) return 1;
      return content.toLocaleLowerCase().includes(wanted) ? 2 : 3;
    };
    return this.items.filter((item) => rank(item) < 3).sort((one, other) => rank(one) - rank(other));
  }
}

/** Fills `{{name}}`; a place without a value stays, to be filled by hand. @param {string} content @param {Record<string, string | undefined>} values */
export function filled(content, values) {
  return content.replaceAll(PLACE, (place, name) => values[name] || place);
}

/** The menu of canned replies at a text field. */
export class CannedMenu {
  #book;
  #values;
  #manage;
  /** @type {HTMLTextAreaElement | null} */
  #input = null;
  /** A reply was chosen whose places are not all filled: it is not sent before. */
  #filling = false;
  /** @type {Canned[]} */
  #found = [];
  #active = 0;
  /** Since the slash was written. */
  #open = false;
  #list = el("ul", { role: "listbox", id: "desk-canned-list", "aria-label": w("canned"), "data-testid": "canned-list" });
  #none = el("p", {}, w("cannedNone"), " ", el("button", { type: "button", className: "quiet", onclick: () => this.#manage() }, w("cannedManage")));
  #count = el("p", { className: "unseen", role: "status" });
  #hint = el("p", { className: "hint" }, w("cannedHint"));
  element = el("div", { className: "canned-menu", hidden: true, "data-testid": "canned-menu" }, this.#list, this.#none, this.#hint);
  status = this.#count;

  /**
   * @param {CannedBook} book
   * @param {() => Record<string, string | undefined>} values what `{{name}}` stands for now
   * @param {() => void} manage opens the dialog
   */
  constructor(book, values, manage) {
    this.#book = book;
    this.#values = values;
    this.#manage = manage;
    // The field keeps the focus, whatever is clicked here.
    this.element.addEventListener("mousedown", (/** @type {Event} */ event) => event.preventDefault());
  }

  /** @param {HTMLTextAreaElement} input */
  attach(input) {
    this.close();
    this.#filling = false;
    this.#input = input;
    input.setAttribute("aria-haspopup", "listbox");
    input.setAttribute("aria-controls", "desk-canned-list");
    input.addEventListener("input", () => this.#look());
    input.addEventListener("blur", () => this.close());
  }

  /** True when the key was meant for the menu. @param {KeyboardEvent} event */
  key(event) {
    if (event.isComposing || event.keyCode === 229) return false;
    if (this.element.hidden) return this.#filling && this.#fills(event);
    if (event.key === "Escape") return this.#handled(event, () => this.close());
    if (this.#found.length === 0) return false;
    if (event.key === "ArrowDown") return this.#handled(event, () => this.#activate(this.#active + 1));
    if (event.key === "ArrowUp") return this.#handled(event, () => this.#activate(this.#active - 1));
    const chosen = (event.key === "Enter" && !event.shiftKey) || event.key === "Tab";
    return chosen && this.#handled(event, () => this.#choose(this.#found[this.#active]));
  }

  close() {
    this.#open = false;
    this.element.hidden = true;
    this.#count.textContent = "";
    this.#input?.removeAttribute("aria-activedescendant");
  }

  /** @param {KeyboardEvent} event @param {() => void} act */
  #handled(event, act) {
    event.preventDefault();
    event.stopPropagation();
    act();
    return true;
  }

  #look() {
    const asked = this.#asked();
    if (asked === null) return this.close();
    if (!this.#open) this.#renew();
    this.#show(asked, 0);
  }

  /** Others change them too, and nobody tells: each time the known ones show at once, and the present ones as they come. */
  async #renew() {
    this.#open = true;
    try {
      await this.#book.load();
    } catch {
      // Those of before are better than none.
      return;
    }
    const asked = this.#asked();
    if (!this.#open || asked === null) return;
    const chosen = this.#found[this.#active]?.id;
    this.#show(asked, Math.max(0, this.#matching(asked).findIndex(({ id }) => id === chosen)));
  }

  /** @param {string} asked */
  #matching(asked) {
    return this.#book.find(asked).slice(0, MOST_SHOWN);
  }

  /** @param {string} asked @param {number} active */
  #show(asked, active) {
    this.#found = this.#matching(asked);
    this.#list.replaceChildren(...this.#found.map((item, index) => this.#option(item, index)));
    this.#none.hidden = this.#book.items.length > 0;
    this.#hint.hidden = this.#found.length === 0;
    this.element.hidden = this.#found.length === 0 && this.#book.items.length > 0;
    this.#count.textContent = this.element.hidden ? "" : w("cannedCount", { count: this.#found.length });
    if (this.#found.length > 0) this.#activate(active);
  }

  /** What stands after the slash before the caret; null when there is none. */
  #asked() {
    const input = this.#input;
    if (!input || input.selectionStart !== input.selectionEnd) return null;
    return ASKED.exec(input.value.slice(0, input.selectionStart))?.[1] ?? null;
  }

  /** @param {Canned} item @param {number} index */
  #option(item, index) {
    return el(
      "li",
      { role: "option", id: `desk-canned-${index}`, "data-testid": "canned-option", onclick: () => this.#choose(item) },
      el("strong", {}, `/${item.shortcut}`),
      item.title ? el("span", {}, item.title) : null,
      el("span", { className: "last" }, filled(item.content, this.#values())),
    );
  }

  /** @param {number} index */
  #activate(index) {
    this.#active = (index + this.#found.length) % this.#found.length;
    [...this.#list.children].forEach((option, at) => option.setAttribute("aria-selected", String(at === this.#active)));
    this.#list.children[this.#active].scrollIntoView({ block: "nearest" });
    this.#input?.setAttribute("aria-activedescendant", `desk-canned-${this.#active}`);
  }

  /** @param {Canned} item */
  #choose(item) {
    const input = this.#input;
    const asked = this.#asked();
    if (!input || asked === null) return this.close();
    const end = input.selectionStart;
    const start = end - asked.length - 1;
    const text = filled(item.content, this.#values());
    input.setRangeText(text, start, end, "end");
    input.dispatchEvent(new Event("input", { bubbles: true }));
    this.close();
    input.setSelectionRange(start, start);
    this.#filling = this.#selectPlace();
    if (!this.#filling) input.setSelectionRange(start + text.length, start + text.length);
    input.focus();
  }

  /** Tab goes to the next place, and so does Enter while there is one. @param {KeyboardEvent} event */
  #fills(event) {
    if (event.key === "Escape") return this.#handled(event, () => (this.#filling = false));
    const goesOn = (event.key === "Enter" || event.key === "Tab") && !event.shiftKey;
    if (!goesOn) return false;
    this.#filling = this.#selectPlace();
    if (this.#filling) event.preventDefault();
    return this.#filling;
  }

  /** Selects the next place behind the caret, or the first. */
  #selectPlace() {
    const input = this.#input;
    const places = [...(input?.value ?? "").matchAll(PLACE)];
    const from = input?.selectionEnd ?? 0;
    const next = places.find(({ index }) => index >= from) ?? places[0];
    if (next) input?.setSelectionRange(next.index, next.index + next[0].length);
    return Boolean(next);
  }
}
