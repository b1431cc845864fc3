// <kefu-thread>: the messages of one session and the place to write the next one, on the agent's desk.
import { Composer } from "./shared/composer.js";
import { MessageList } from "./shared/message-list.js";
import { storage } from "./storage.js";

/** @typedef {import("./client.js").Client} Client */

export class KefuThread extends HTMLElement {
  /** @type {string | null} */
  #sessionId = null;
  /** @type {MessageList | null} */
  #list = null;
  /** @type {Composer | null} */
  #composer = null;

  /** Shows a session; null shows none. @param {Client} client @param {string | null} sessionId */
  show(client, sessionId) {
    if (sessionId !== this.#sessionId) this.#switch(client, sessionId);
    this.#list?.update();
    const session = client.sessions.get(sessionId ?? "");
    if (this.#composer) this.#composer.element.hidden = !session || session.status === "ended" || session.readOnly;
  }

  focusComposer() {
    this.#composer?.focus();
  }

  /** @param {Client} client @param {string | null} sessionId */
  #switch(client, sessionId) {
    this.#list?.dispose();
    this.#list = this.#composer = null;
    this.#sessionId = sessionId;
    this.replaceChildren();
    if (!sessionId) return;
    const key = `kefu.draft.${sessionId}`;
    const draft = { get: () => storage.getItem(key) ?? "", set: (/** @type {string} */ text) => (text ? storage.setItem(key, text) : storage.removeItem(key)) };
    this.#list = new MessageList(client, sessionId);
    this.#composer = new Composer(client, sessionId, { draft });
    this.append(this.#list.element, this.#composer.element);
  }
}

customElements.define("kefu-thread", KefuThread);
