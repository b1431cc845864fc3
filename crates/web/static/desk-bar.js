// The bar at the top: who sits here, whether we are connected, and the way to everything else.
import { w } from "./console-strings.js";
import { setText } from "./desk-kit.js";
import { notificationState } from "./desk-notices.js";
import { el } from "./dom.js";
import { language } from "./shared/i18n.js";

/**
 * @typedef {object} BarOptions
 * @property {string} title
 * @property {() => void} palette
 * @property {() => void} canned
 * @property {() => void} help
 * @property {boolean} notifies whether desktop notifications are of use here
 * @property {() => void} signOut
 * @property {(tag: string) => void} speak another language
 */

const STATE_WORDS = { connecting: "stateConnecting", ready: "stateReady", reconnecting: "stateReconnecting", closed: "stateClosed" };

export class Bar {
  #client;
  #who;
  #notifies;
  #name = el("span", { className: "me", "data-testid": "me" });
  #state = el("span", {});
  #again = el("button", { type: "button", hidden: true, "data-testid": "reconnect", onclick: () => this.#client.reconnect() }, w("reconnect"));
  #connection = el("div", { className: "connection", role: "status", "data-testid": "connection" }, this.#state, this.#again);
  #notify = el("button", { type: "button", hidden: true, "data-testid": "notifications", onclick: () => this.#ask() }, w("notificationsOn"));
  #language;
  element;

  /** @param {import("./client.js").Client} client @param {string} who @param {BarOptions} options */
  constructor(client, who, { title, notifies, palette, canned, help, signOut, speak }) {
    this.#notifies = notifies;
    this.#client = client;
    this.#who = who;
    const button = (/** @type {string} */ id, /** @type {string} */ text, /** @type {() => void} */ onclick) => el("button", { type: "button", className: "flat", "data-testid": id, onclick }, text);
    this.#language = el(
      "select",
      { "aria-label": w("languageChoice"), "data-testid": "language", onchange: () => speak(this.#language.value) },
      el("option", { value: "en", lang: "en" }, "English"),
      el("option", { value: "zh-CN", lang: "zh-CN" }, "简体中文"),
    );
    this.#language.value = language();
    this.element = el(
      "header",
      { className: "bar" },
      el("h1", {}, title),
      this.#name,
      this.#connection,
      el(
        "nav",
        { className: "tools", "aria-label": w("tools") },
        this.#notify,
        button("palette-open", w("palette"), palette),
        button("canned-open", w("canned"), canned),
        button("help-open", w("help"), help),
        this.#language,
        button("sign-out", w("signOut"), signOut),
      ),
    );
    client.on("state", () => this.update());
    this.update();
  }

  update() {
    const { state } = this.#client;
    this.#connection.dataset.state = state;
    setText(this.#state, w(/** @type {any} */ (STATE_WORDS)[state]));
    setText(this.#name, this.#who || this.#client.me.id);
    this.#again.hidden = state !== "closed";
    this.#notify.hidden = !this.#notifies || notificationState() !== "default";
  }

  async #ask() {
    await Notification.requestPermission();
    this.update();
  }
}
