// <kefu-connection>: whether we are connected, always in sight.
import { el } from "./dom.js";
import { t } from "./shared/i18n.js";
import "./shared/strings.js";

/** @typedef {import("./client.js").Client} Client */

export class KefuConnection extends HTMLElement {
  /** @type {Client | null} */
  #client = null;
  #text = el("span");
  #again = el("button", { type: "button", "data-testid": "reconnect", onclick: () => this.#client?.reconnect() }, t("reconnect"));

  connectedCallback() {
    this.setAttribute("data-testid", "connection");
    this.setAttribute("role", "status");
    this.replaceChildren(this.#text, this.#again);
    this.#render();
  }

  /** @param {Client} client */
  set client(client) {
    this.#client = client;
    client.addEventListener("state", () => this.#render());
    this.#render();
  }

  #render() {
    const state = this.#client?.state ?? "closed";
    this.dataset.state = state;
    this.hidden = !this.#client;
    this.#text.textContent = t(state);
    this.#again.hidden = state !== "closed";
  }
}

customElements.define("kefu-connection", KefuConnection);
