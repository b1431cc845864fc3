// One message on screen: who said it, what, when, and how far it has come.
import { el, linked } from "../dom.js";
import { agentName } from "./agent-name.js";
import { errorText, language, t } from "./i18n.js";

/**
 * @typedef {import("../client.js").Client} Client
 * @typedef {import("../client.js").Message} Message
 * @typedef {import("../client.js").Session} Session
 */

/** So long a message may be under way before its writer is told (B59). */
export const LATE_MS = 10_000;
/** @type {Record<string, string>} */
const MARKS = { sending: "◌", stored: "✓", delivered: "✓✓", read: "✓✓" };

export class MessageView {
  #client;
  #message;
  #rev = -1;
  #name = "";
  #late = false;
  #sender = el("span", { className: "sender" });
  #body = el("div", { className: "body" });
  #time = el("time");
  #receipt = el("span", { className: "receipt", role: "img" });
  #retry = el("button", { type: "button", className: "quiet", hidden: true, "data-testid": "retry", onclick: () => this.#client.retry(this.#message) }, t("retry"));
  #discard = el("button", { type: "button", className: "quiet", hidden: true, "data-testid": "discard", onclick: () => this.#client.discard(this.#message) }, t("discard"));
  #refreshed = false;
  /** @type {string | undefined} */
  #shown;

  /** @param {Client} client @param {Message} message */
  constructor(client, message) {
    this.#client = client;
    this.#message = message;
    this.#receipt.hidden = message.incoming;
    this.element = el(
      "article",
      { className: message.incoming ? "message" : "message own", "data-testid": "message", "data-sender": message.senderType },
      this.#sender,
      this.#body,
      el("div", { className: "meta" }, this.#time, this.#receipt, this.#retry, this.#discard),
    );
  }

  /** Cheap when nothing changed. @param {Session | null} session */
  update(session) {
    const { msgId, seq, state, time, content, error, rev } = this.#message;
    const name = this.#whose(session);
    const late = state === "sending" && Date.now() - (time ?? 0) >= LATE_MS;
    if (rev === this.#rev && name === this.#name && late === this.#late && content === this.#shown) return;
    [this.#rev, this.#name, this.#late] = [rev, name, late];
    const { dataset } = this.element;
    dataset.state = state;
    if (msgId) dataset.msgId = msgId;
    if (seq) dataset.seq = String(seq);
    this.#sender.textContent = name;
    if (time) this.#time.textContent = clock(time);
    if (content !== this.#shown) this.#draw(content);
    const failed = state === "failed";
    const label = failed ? t("failed", { reason: errorText(error, { max: this.#client.limits.maxChars }) }) : t(late ? "late" : state);
    this.#receipt.textContent = failed || late ? label : MARKS[state];
    this.#receipt.setAttribute("aria-label", label);
    this.#receipt.title = label;
    this.#retry.hidden = !failed && !late;
    this.#discard.hidden = !failed;
  }

  /** @param {Session | null} session */
  #whose(session) {
    const { senderType, senderId, incoming } = this.#message;
    if (senderType === "system" || senderType === "bot") return t(senderType);
    if (!incoming && (!senderId || senderId === this.#client.me.id)) return t("you");
    const { userInfo, agentInfo } = session ?? {};
    if (senderType === "user") return userInfo?.name || senderId || "";
    return (senderId && agentName(senderId, agentInfo)) || t("agent");
  }

  /** @param {string} content */
  #draw(content) {
    this.#shown = content;
    const url = this.#message.msgType === "image" ? this.#client.imageUrl(content) : null;
    this.#body.replaceChildren(url ? this.#image(url) : linked(content));
  }

  /** @param {string} url */
  #image(url) {
    // A signed link lives minutes; reading the message again signs it anew. Once, or a lost image would loop.
    const refresh = () => {
      if (this.#refreshed) return;
      this.#refreshed = true;
      this.#client.refresh(this.#message).catch(() => (this.#refreshed = false));
    };
    return el("a", { href: url, target: "_blank", rel: "noopener noreferrer" }, el("img", { src: url, alt: t("image"), "data-testid": "image", onerror: refresh }));
  }
}

/** Making one takes longer than everything else of a message. @type {Record<string, Intl.DateTimeFormat>} */
const clocks = {};

/** @param {number} time */
function clock(time) {
  clocks[language()] ??= new Intl.DateTimeFormat(language(), { hour: "2-digit", minute: "2-digit" });
  return clocks[language()].format(time);
}
