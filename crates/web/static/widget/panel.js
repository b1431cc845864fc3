// The opened widget: its head with who serves and how the connection is, and the conversation below.
import { el } from "../dom.js";
import { avatar } from "../shared/avatar.js";
import { errorText, language, setLanguage, t } from "../shared/i18n.js";
import { storage } from "../storage.js";
import { Conversation } from "./conversation.js";
import "./strings.js";

/**
 * @typedef {import("../client.js").Client} Client
 * @typedef {object} PanelHooks
 * @property {() => void} close
 * @property {() => void} consult
 * @property {() => void} rebuild in another language
 */

export const SOUND = "kefu.sound";

export class Panel {
  #client;
  #hooks;
  /** @type {Conversation | null} */
  #conversation = null;
  #avatar = el("div", { hidden: true });
  #agent = el("p", { className: "agent", hidden: true, "data-testid": "agent-name" });
  #state = el("span");
  #reconnect = el("button", { type: "button", className: "quiet", "data-testid": "reconnect", onclick: () => this.#client.reconnect() }, t("reconnect"));
  #connection = el("p", { className: "connection", role: "status", "data-testid": "connection" }, this.#state, this.#reconnect);
  #sound = el("button", { type: "button", "data-testid": "sound", "aria-label": t("sound"), title: t("sound"), onclick: () => this.#toggleSound() }, "♪");
  #start = el("button", { type: "button", className: "primary", hidden: true, "data-testid": "start", onclick: () => this.#hooks.consult() }, t("start"));
  #error = el("p", { className: "notice", role: "alert", hidden: true, "data-testid": "error" });
  #place = el("div", { className: "talk" });
  element;

  /** @param {Client} client @param {PanelHooks} hooks */
  constructor(client, hooks) {
    this.#client = client;
    this.#hooks = hooks;
    const head = el(
      "header",
      {},
      this.#avatar,
      el("div", { className: "who" }, el("h2", {}, t("title")), this.#agent, this.#connection),
      this.#sound,
      el("button", { type: "button", "data-testid": "language", "aria-label": t("language"), lang: language() === "en" ? "zh-CN" : "en", onclick: () => this.#switchLanguage() }, t("languageShort")),
      el("button", { type: "button", "data-testid": "minimize", "aria-label": t("minimize"), title: t("minimize"), onclick: hooks.close }, "–"),
    );
    this.element = el("section", { className: "panel", role: "dialog", "aria-label": t("title"), lang: language(), "data-testid": "panel" }, head, this.#error, this.#start, this.#place);
    this.#showSound();
    this.update();
  }

  update() {
    const { state, reason, current } = this.#client;
    this.#connection.dataset.state = state;
    const why = reason === 4001 ? "unauthenticated" : reason;
    this.#state.textContent = state === "closed" && typeof why === "string" ? errorText(why) : t(state);
    this.#reconnect.hidden = state !== "closed";
    this.#start.hidden = current !== null || state === "connecting" || state === "closed";
    this.#showAgent();
    if (current && current.sessionId !== this.#conversation?.sessionId) this.#enter(current.sessionId);
    this.#conversation?.update();
  }

  focus() {
    if (this.#conversation) this.#conversation.focus();
    else this.element.querySelector("button").focus();
  }

  /** A refusal that nobody waits for, such as a limit: told until it is over. @param {{code: string, retryAfterMs?: number}} error */
  refused({ code, retryAfterMs = 1_000 }) {
    this.#say(errorText(code, { seconds: Math.ceil(retryAfterMs / 1_000), max: this.#client.limits.maxChars }));
    setTimeout(() => this.#say(""), Math.max(retryAfterMs, 4_000));
  }

  dispose() {
    this.#conversation?.dispose();
    this.element.remove();
  }

  #showAgent() {
    const { status, agentInfo } = this.#client.current ?? {};
    const serves = status !== "ended" && agentInfo;
    this.#agent.hidden = !serves;
    this.#agent.textContent = serves ? t("talkingTo", { name: agentInfo.name || t("agent") }) : "";
    this.#avatar.hidden = !serves;
    if (!serves || this.#avatar.dataset.of === agentInfo.adminId) return;
    this.#avatar.dataset.of = agentInfo.adminId;
    this.#avatar.replaceChildren(avatar(agentInfo.name || t("agent"), this.#picture(agentInfo.avatar)));
  }

  /** Of the gateway or the host's own site: others the host page's policy may forbid, and hears of each attempt. @param {string | undefined} address */
  #picture(address) {
    const url = address && this.#client.imageUrl(address);
    const origin = (/** @type {any} */ known) => new URL(known).origin;
    return url && [origin(this.#client.imageUrl("/")), location.origin].includes(origin(url)) ? url : null;
  }

  /** @param {string} sessionId */
  #enter(sessionId) {
    this.#conversation?.dispose();
    this.#conversation = new Conversation(this.#client, sessionId, (act) => this.#attempt(act), this.#hooks.consult);
    this.#place.replaceChildren(this.#conversation.element);
    this.#conversation.focus();
  }

  /** @param {() => Promise<unknown>} act */
  async #attempt(act) {
    this.#say("");
    try {
      await act();
    } catch (error) {
      this.refused(/** @type {any} */ (error));
    }
  }

  /** @param {string} text */
  #say(text) {
    this.#error.textContent = text;
    this.#error.hidden = text === "";
  }

  #toggleSound() {
    if (storage.getItem(SOUND)) storage.removeItem(SOUND);
    else storage.setItem(SOUND, "on");
    this.#showSound();
  }

  #showSound() {
    this.#sound.setAttribute("aria-pressed", String(storage.getItem(SOUND) !== null));
  }

  #switchLanguage() {
    setLanguage(language() === "en" ? "zh-CN" : "en");
    this.#hooks.rebuild();
  }
}
