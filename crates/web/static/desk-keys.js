// Keys of the console, the dialog that lists them, and the palette that does everything by name.
import { w } from "./console-strings.js";
import { el } from "./dom.js";

/**
 * @typedef {object} Command
 * @property {string} id
 * @property {string} label
 * @property {string} [keys] as the dialog writes them
 * @property {(event: KeyboardEvent) => boolean} [pressed]
 * @property {() => boolean} [possible] now
 * @property {() => void} run
 */

/** Alt and a key, by its place on the board: with Alt, a Mac types other characters. @param {string} code */
export function alt(code) {
  return (/** @type {KeyboardEvent} */ event) => event.altKey && !event.ctrlKey && !event.metaKey && event.code === code;
}

/** Ctrl, or Command on a Mac, and a character. @param {string} key */
export function ctrl(key) {
  return (/** @type {KeyboardEvent} */ event) => (event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === key;
}

/** Listens for the keys of these commands. @param {Command[]} commands */
export function listenForKeys(commands) {
  document.addEventListener("keydown", (event) => {
    if (event.isComposing || event.keyCode === 229) return;
    // An open dialog has its own keys, and closes with Escape.
    if (document.querySelector("dialog[open]")) return;
    const command = commands.find(({ pressed, possible }) => pressed?.(event) && (possible?.() ?? true));
    if (!command) return;
    event.preventDefault();
    command.run();
  });
}

export class HelpDialog {
  #list = el("dl", { className: "keys" });
  element = el(
    "dialog",
    { className: "dialog", "aria-labelledby": "desk-help", "data-testid": "help-dialog" },
    el("header", {}, el("h2", { id: "desk-help" }, w("help")), el("button", { type: "button", "data-testid": "help-close", onclick: () => this.element.close() }, w("close"))),
    el("p", {}, w("helpIntro")),
    this.#list,
  );

  /** @param {Command[]} commands */
  open(commands) {
    if (this.element.open) return;
    const own = [
      { label: w("keySend"), keys: "Enter" },
      { label: w("keyBreak"), keys: "Shift + Enter" },
      { label: w("keyCanned"), keys: "/" },
    ];
    const rows = [...commands.filter(({ keys }) => keys), ...own];
    this.#list.replaceChildren(...rows.flatMap(({ label, keys }) => [el("dt", {}, el("kbd", {}, keys ?? "")), el("dd", {}, label)]));
    this.element.showModal();
  }
}

/** Everything that can be done and everybody who can be gone to, by a few letters. */
export class Palette {
  #commands;
  /** @type {Command[]} */
  #found = [];
  #active = 0;
  #input = el("input", { type: "text", role: "combobox", "aria-expanded": "true", "aria-controls": "desk-palette-list", "aria-autocomplete": "list", "aria-label": w("paletteHint"), placeholder: w("paletteHint"), autocomplete: "off", "data-testid": "palette-input" });
  #list = el("ul", { role: "listbox", id: "desk-palette-list", "aria-label": w("palette"), "data-testid": "palette-list" });
  #none = el("p", { className: "empty", role: "status" }, w("paletteNone"));
  element = el("dialog", { className: "dialog palette", "aria-label": w("palette"), "data-testid": "palette" }, this.#input, this.#list, this.#none);

  /** @param {() => Command[]} commands those that are possible now */
  constructor(commands) {
    this.#commands = commands;
    this.#input.addEventListener("input", () => this.#draw());
    this.#input.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => this.#key(event));
    this.element.addEventListener("click", (/** @type {Event} */ event) => {
      if (event.target === this.element) this.element.close();
    });
  }

  open() {
    if (this.element.open) return;
    this.#input.value = "";
    this.#draw();
    this.element.showModal();
    this.#input.focus();
  }

  #draw() {
    const words = this.#input.value.toLocaleLowerCase().split(/\s+/);
    this.#found = this.#commands().filter(({ label }) => words.every((/** @type {string} */ word) => label.toLocaleLowerCase().includes(word))).slice(0, 50);
    this.#list.replaceChildren(
      ...this.#found.map((command, index) =>
        el(
          "li",
          { role: "option", id: `desk-palette-${index}`, "data-testid": "palette-option", "data-command": command.id, onclick: () => this.#run(command) },
          command.label,
          command.keys ? el("kbd", {}, command.keys) : null,
        ),
      ),
    );
    this.#none.hidden = this.#found.length > 0;
    this.#list.hidden = this.#found.length === 0;
    this.#activate(0);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.isComposing || event.keyCode === 229) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      this.#activate(this.#active + step);
    } else if (event.key === "Enter" && this.#found[this.#active]) {
      event.preventDefault();
      this.#run(this.#found[this.#active]);
    }
  }

  /** @param {number} index */
  #activate(index) {
    const count = this.#found.length;
    this.#active = count ? (index + count) % count : 0;
    [...this.#list.children].forEach((option, at) => option.setAttribute("aria-selected", String(at === this.#active)));
    this.#list.children[this.#active]?.scrollIntoView({ block: "nearest" });
    if (count) this.#input.setAttribute("aria-activedescendant", `desk-palette-${this.#active}`);
    else this.#input.removeAttribute("aria-activedescendant");
  }

  /** @param {Command} command */
  #run(command) {
    this.element.close();
    command.run();
  }
}
