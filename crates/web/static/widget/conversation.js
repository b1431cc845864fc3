// One session on the visitor's screen: who serves, the messages, the composer, and what comes after the end.
import { el } from "../dom.js";
import { Composer } from "../shared/composer.js";
import { t } from "../shared/i18n.js";
import { MessageList } from "../shared/message-list.js";
import { storage } from "../storage.js";
import { RatingForm } from "./rating.js";

/** @typedef {import("../client.js").Client} Client */

export class Conversation {
  #client;
  sessionId;
  #gone = new AbortController();
  #list;
  #composer;
  #waiting = el("p", { className: "state", role: "status", hidden: true, "data-testid": "waiting" });
  #offline = el("p", { className: "state", role: "status", hidden: true, "data-testid": "offline" });
  #ended = el("p", { className: "state", role: "status", hidden: true, "data-testid": "ended" }, t("ended"));
  #end;
  #restart;
  #rating;
  element;

  /** @param {Client} client @param {string} sessionId @param {(act: () => Promise<unknown>) => void} attempt @param {() => void} restart */
  constructor(client, sessionId, attempt, restart) {
    this.#client = client;
    this.sessionId = sessionId;
    const key = `kefu.draft.${sessionId}`;
    const draft = { get: () => storage.getItem(key) ?? "", set: (/** @type {string} */ text) => (text ? storage.setItem(key, text) : storage.removeItem(key)) };
    this.#list = new MessageList(client, sessionId, { days: true });
    this.#composer = new Composer(client, sessionId, { draft });
    this.#end = el("button", { type: "button", "data-testid": "end", onclick: () => attempt(() => client.end({ sessionId })) }, t("end"));
    this.#restart = el("button", { type: "button", className: "primary", "data-testid": "restart", onclick: restart }, t("restart"));
    this.#rating = new RatingForm((rating, content) => attempt(() => client.rate({ sessionId, rating, content })));
    this.element = el("div", { className: "talk" }, this.#waiting, this.#offline, this.#list.element, this.#composer.element, this.#ended, el("footer", {}, this.#end, this.#rating.element, this.#restart));
    this.#composer.dropOn(this.element, this.#gone.signal);
    this.update();
  }

  update() {
    const session = this.#client.sessions.get(this.sessionId);
    if (!session) return;
    const { status, offline, offlineMessage, position, total } = session;
    const ended = status === "ended";
    this.#waiting.hidden = status !== "waiting" || offline;
    this.#waiting.textContent = position ? t("waiting", { position, total: total ?? position }) : t("waitingSoon");
    this.#waiting.dataset.position = String(position ?? "");
    this.#offline.hidden = !offline;
    this.#offline.textContent = offlineMessage || t("offline");
    this.#composer.element.hidden = this.#end.hidden = ended;
    this.#ended.hidden = this.#restart.hidden = !ended;
    // Nothing to rate before somebody was there.
    this.#rating.element.hidden = !ended && !session.agentInfo;
    this.#rating.update(session.rating);
    this.#list.update();
  }

  focus() {
    this.#composer.focus();
  }

  /** @param {string} code @param {Record<string, unknown>} [values] */
  say(code, values) {
    this.#composer.say(code, values);
  }

  dispose() {
    this.#gone.abort();
    this.#list.dispose();
  }
}
