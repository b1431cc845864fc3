// One message on screen: who said it, what, when, and how far it has come.
import { el, linked } from "./dom.js";
import { errorText, language, t } from "./i18n.js";

/**
 * @typedef {import("./client.js").Client} Client
 * @typedef {import("./client.js").Message} Message
 * @typedef {import("./client.js").SessionStore} SessionStore
 */

const MARKS = { sending: "◌", stored: "✓", delivered: "✓✓", read: "✓✓", failed: "!" };
const CLOCK = new Intl.DateTimeFormat(language, { hour: "2-digit", minute: "2-digit" });

export class MessageView {
  #client;
  #message;
  #sender = el("span", { className: "sender" });
  #body = el("div", { className: "body" });
  #time = el("time");
  #receipt = el("span", { className: "receipt", role: "img" });
  #retry = el("button", { type: "button", className: "quiet", hidden: true, "data-testid": "retry" }, t("retry"));
  #refreshed = false;
  /** @type {string | null} */
  #shown = null;

  /** @param {Client} client @param {Message} message */
  constructor(client, message) {
    this.#client = client;
    this.#message = message;
    this.#retry.addEventListener("click", () => client.retry(message));
    this.#receipt.hidden = message.incoming;
    this.element = el(
      "article",
      { className: message.incoming ? "message" : "message own", "data-testid": "message", "data-sender": message.senderType },
      this.#sender,
      this.#body,
      el("div", { className: "meta" }, this.#time, this.#receipt, this.#retry),
    );
  }

  /** @param {SessionStore | null} session */
  update(session) {
    const { msgId, seq, state, time, content, error } = this.#message;
    const { dataset } = this.element;
    dataset.state = state;
    if (msgId) dataset.msgId = msgId;
    if (seq) dataset.seq = String(seq);
    this.#sender.textContent = this.#name(session);
    if (time) this.#time.textContent = CLOCK.format(time);
    if (content !== this.#shown) this.#draw(content);
    const max = this.#client.limits.maxChars;
    const label = state === "failed" ? t("failed", { reason: errorText(error ?? "", { max }) }) : t(state);
    this.#receipt.textContent = state === "failed" ? label : MARKS[state];
    this.#receipt.setAttribute("aria-label", label);
    this.#receipt.title = label;
    this.#retry.hidden = state !== "failed";
  }

  /** @param {SessionStore | null} session */
  #name(session) {
    const { senderType, senderId, incoming } = this.#message;
    if (senderType === "system") return t("system");
    if (!incoming && (senderId === null || senderId === this.#client.me.id)) return t("you");
    const known = { [session?.userInfo?.userId ?? ""]: session?.userInfo?.name, [session?.agentInfo?.adminId ?? ""]: session?.agentInfo?.name };
    // A former agent of the session is known by id only, which tells a person nothing.
    return known[senderId ?? ""] || (senderType === "user" ? (senderId ?? "") : t("agent"));
  }

  /** @param {string} content */
  #draw(content) {
    this.#shown = content;
    const url = this.#message.msgType === "image" ? this.#client.imageUrl(content) : null;
    this.#body.replaceChildren(url ? this.#image(url) : linked(content));
  }

  /** @param {string} url */
  #image(url) {
    const image = el("img", { src: url, alt: t("image"), "data-testid": "image" });
    image.addEventListener("error", () => {
      // A signed link lives minutes; reading the message again signs it anew. Once, or a lost image would loop.
      if (this.#refreshed) return;
      this.#refreshed = true;
      this.#client.refresh(this.#message).catch(() => (this.#refreshed = false));
    });
    return el("a", { href: url, target: "_blank", rel: "noopener noreferrer" }, image);
  }
}
