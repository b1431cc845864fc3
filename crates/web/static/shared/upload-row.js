// One image on its way: how far it is, a way to give it up, and to try again what may still succeed.
import { el } from "../dom.js";
import { t } from "./i18n.js";

/**
 * @typedef {import("../client.js").ChatError} ChatError
 * @typedef {object} UploadOptions
 * @property {(progress: {onProgress: (share: number) => void, signal: AbortSignal}) => Promise<void>} send
 * @property {() => void} begins
 * @property {(code: string) => void} failed tells why
 */

export class UploadRow {
  #options;
  #gone = new AbortController();
  #bar;
  #retry = el("button", { type: "button", className: "quiet", hidden: true, "data-testid": "upload-retry", onclick: () => this.#again() }, t("retry"));
  #cancel = el("button", { type: "button", className: "quiet", "data-testid": "cancel", onclick: () => this.#giveUp() }, t("cancel"));
  element;

  /** @param {string} name @param {UploadOptions} options */
  constructor(name, options) {
    this.#options = options;
    this.#bar = el("progress", { max: 1, "aria-label": t("uploading", { name }) });
    this.element = el("div", { className: "upload", "data-testid": "upload" }, el("span", {}, name), this.#bar, this.#retry, this.#cancel);
    this.#start();
  }

  async #start() {
    this.#show(false);
    this.#options.begins();
    try {
      await this.#options.send({ onProgress: (share) => (this.#bar.value = share), signal: this.#gone.signal });
      this.element.remove();
    } catch (error) {
      this.#stopped(/** @type {ChatError} */ (error));
    }
  }

  /** A picked file is not asked for twice because the network was away, or a token had run out. @param {ChatError} error */
  #stopped({ code, retryable }) {
    if (this.#gone.signal.aborted) return;
    const again = retryable || /auth|token|internal/.test(code);
    this.#options.failed(again ? "upload_stopped" : code);
    if (again) this.#show(true);
    else this.element.remove();
  }

  #again() {
    // The button that was pressed goes.
    this.#cancel.focus();
    this.#start();
  }

  #giveUp() {
    this.#gone.abort();
    this.element.remove();
    this.#options.begins();
  }

  /** @param {boolean} stopped */
  #show(stopped) {
    this.#bar.value = 0;
    this.#bar.hidden = stopped;
    this.#retry.hidden = !stopped;
  }
}
