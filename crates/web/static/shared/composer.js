// The place to write the next message: text, and images that are picked, pasted or dropped.
import { el } from "../dom.js";
import { errorText, t } from "./i18n.js";
import "./strings.js";
import { UploadRow } from "./upload-row.js";

/** @typedef {import("../client.js").Client} Client */

const IMAGES = ["image/jpeg", "image/png", "image/gif"];
/** From this share of the longest text on the count is shown. */
const NEAR = 0.9;

export class Composer {
  #client;
  #sessionId;
  #options;
  #counter = el("span", { className: "counter", role: "status", hidden: true, "data-testid": "counter" });
  #notice = el("p", { className: "notice", role: "alert", hidden: true, "data-testid": "notice" });
  #uploads = el("div", { className: "uploads" });
  #file = el("input", { type: "file", accept: IMAGES.join(), multiple: true, "data-testid": "attach", "aria-label": t("attach"), onchange: () => this.#picked() });
  /** @type {HTMLTextAreaElement} */
  input = el("textarea", { rows: 2, "data-testid": "composer", "aria-label": t("composer"), placeholder: t("composer"), oninput: () => this.#written(), onkeydown: (/** @type {KeyboardEvent} */ event) => this.#key(event) });
  #form = el(
    "form",
    { className: "composer", onsubmit: (/** @type {Event} */ event) => this.#submit(event) },
    this.input,
    el("label", { className: "attach", title: t("attach") }, this.#file, el("span", { "aria-hidden": "true" }, "+")),
    el("button", { type: "submit", className: "primary", "data-testid": "send" }, t("send")),
  );
  element = el("div", { className: "writing", onpaste: (/** @type {ClipboardEvent} */ event) => this.#take(event, event.clipboardData) }, this.#uploads, this.#notice, this.#form, this.#counter);

  /**
   * @param {Client} client @param {string} sessionId
   * @param {{draft: {get(): string, set(text: string): void}, keydown?: (event: KeyboardEvent) => boolean}} options `keydown`: true when it took the key
   */
  constructor(client, sessionId, options) {
    this.#client = client;
    this.#sessionId = sessionId;
    this.#options = options;
    this.input.value = options.draft.get();
    this.#count();
  }

  /** @returns {string} */
  get text() {
    return this.input.value;
  }

  set text(text) {
    this.input.value = text;
    this.#written();
  }

  /** Puts a text in at the cursor. @param {string} text */
  insert(text) {
    this.input.setRangeText(text, this.input.selectionStart, this.input.selectionEnd, "end");
    this.#written();
  }

  focus() {
    this.input.focus();
  }

  /** Images dropped there are sent. @param {HTMLElement} place @param {AbortSignal} signal */
  dropOn(place, signal) {
    place.addEventListener("dragover", (event) => event.preventDefault(), { signal });
    place.addEventListener("drop", (event) => this.#take(event, event.dataTransfer), { signal });
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    // 229: Safari tells the Enter that ends a composition after it has ended (B70).
    if (event.isComposing || event.keyCode === 229 || this.#options.keydown?.(event)) return;
    if (event.key === "Enter" && !event.shiftKey) this.#submit(event);
  }

  #written() {
    this.#options.draft.set(this.text);
    this.#client.typing(this.#sessionId, this.text !== "");
    this.#count();
  }

  /** In scalar values, as the server counts (M1). */
  #count() {
    const max = this.#client.limits.maxChars;
    const count = [...this.text].length;
    this.#counter.hidden = count < max * NEAR;
    this.#counter.textContent = t("counter", { count, max });
    this.#counter.classList.toggle("over", count > max);
    return count <= max;
  }

  /** @param {Event} event */
  #submit(event) {
    event.preventDefault();
    const content = this.text;
    if (content.trim() === "") return;
    if (!this.#count()) return this.say("content_too_long");
    this.say();
    this.#client.send({ sessionId: this.#sessionId, content });
    this.input.value = "";
    this.#options.draft.set("");
    this.#count();
  }

  #picked() {
    this.#sendAll([...this.#file.files]);
    this.#file.value = "";
  }

  /** @param {Event} event @param {DataTransfer | null} data */
  #take(event, data) {
    const files = [...(data?.files ?? [])];
    if (!files.length) return;
    event.preventDefault();
    this.#sendAll(files);
  }

  /** @param {File[]} files */
  #sendAll(files) {
    this.say();
    for (const file of files) this.#sendImage(file);
  }

  /** @param {File} file */
  #sendImage(file) {
    if (!IMAGES.includes(file.type)) return this.say("unsupported_media_type");
    if (file.size > this.#client.limits.maxUploadBytes) return this.say("payload_too_large");
    const sessionId = this.#sessionId;
    const row = new UploadRow(file.name, {
      begins: () => this.say(),
      failed: (code) => this.say(code),
      send: async (progress) => {
        const { url } = await this.#client.upload(file, { sessionId, ...progress });
        this.#client.send({ sessionId, content: url, msgType: "image" });
      },
    });
    this.#uploads.append(row.element);
  }

  /** Shows a refusal, or none. @param {string} [code] @param {Record<string, unknown>} [values] */
  say(code, values) {
    const { maxChars: max, maxUploadBytes } = this.#client.limits;
    this.#notice.textContent = code ? errorText(code, { max, megabytes: maxUploadBytes / 2 ** 20, ...values }) : "";
    this.#notice.hidden = !code;
  }
}
