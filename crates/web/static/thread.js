// <kefu-thread>: the messages of one session and the place to write the next one, for both sides.
import { ChatError } from "./client.js";
import { coalesced, el } from "./dom.js";
import { errorText, t } from "./i18n.js";
import { MessageView } from "./message-view.js";
import { storage } from "./storage.js";

/**
 * @typedef {import("./client.js").Client} Client
 * @typedef {import("./client.js").Message} Message
 */

const NEAR_PX = 60;

export class KefuThread extends HTMLElement {
  /** @type {Client | null} */
  #client = null;
  /** @type {string | null} */
  #sessionId = null;
  /** @type {Map<Message, MessageView>} */
  #views = new Map();
  /** @type {Set<Element>} */
  #onScreen = new Set();
  #loadingOlder = false;
  /** Whether the end is in sight, and is to stay so. */
  #atEnd = true;

  #older = el("button", { type: "button", className: "quiet", "data-testid": "older", onclick: () => this.#loadOlder() }, t("older"));
  #list = el("div", { role: "log", "aria-live": "polite", "aria-label": t("messages"), tabIndex: 0, "data-testid": "messages" });
  #typing = el("p", { className: "typing", role: "status", hidden: true, "data-testid": "typing" }, t("typing"));
  #notice = el("p", { className: "notice", role: "alert", hidden: true, "data-testid": "notice" });
  #composer = el("textarea", { rows: 2, "data-testid": "composer", "aria-label": t("composer"), placeholder: t("composer") });
  #file = el("input", { type: "file", accept: "image/jpeg,image/png,image/gif", "data-testid": "attach", "aria-label": t("attach") });
  #send = el("button", { type: "submit", "data-testid": "send" }, t("send"));
  #form = el("form", { className: "composer" }, this.#composer, el("label", { className: "attach", title: t("attach") }, this.#file, el("span", { "aria-hidden": "true" }, "+")), this.#send);
  // Read is what was really on screen: in the visible part of the list, in a visible page.
  #watcher = new IntersectionObserver((entries) => this.#seen(entries), { root: this.#list, threshold: [0, 0.1, 0.2, 0.4, 0.6] });
  #render = coalesced(() => this.#draw());

  constructor() {
    super();
    this.#form.addEventListener("submit", (/** @type {Event} */ event) => {
      event.preventDefault();
      this.#submit();
    });
    this.#composer.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => this.#key(event));
    this.#composer.addEventListener("input", () => this.#written());
    this.#file.addEventListener("change", () => this.#attach());
    // An image has its height only when it has come; `load` does not bubble.
    this.#list.addEventListener("load", () => this.#keepEnd(), true);
    this.#list.addEventListener("scroll", () => {
      const { scrollTop, scrollHeight, clientHeight } = this.#list;
      this.#atEnd = scrollHeight - scrollTop - clientHeight < NEAR_PX;
      if (this.#list.scrollTop < NEAR_PX) this.#loadOlder();
    });
    document.addEventListener("visibilitychange", () => this.#markRead());
  }

  connectedCallback() {
    if (!this.#form.isConnected) this.replaceChildren(this.#older, this.#list, this.#typing, this.#notice, this.#form);
  }

  /** Shows a session; null shows none. @param {Client} client @param {string | null} sessionId */
  show(client, sessionId) {
    if (client !== this.#client) {
      this.#client = client;
      client.addEventListener("change", (event) => {
        if (/** @type {CustomEvent} */ (event).detail.sessionId === this.#sessionId) this.#render();
      });
    }
    if (sessionId !== this.#sessionId) this.#switch(sessionId);
    this.#render();
  }

  focusComposer() {
    this.#composer.focus();
  }

  get #store() {
    return this.#client?.sessions.get(this.#sessionId ?? "") ?? null;
  }

  /** @param {string | null} sessionId */
  #switch(sessionId) {
    this.#sessionId = sessionId;
    this.#watcher.disconnect();
    this.#onScreen.clear();
    this.#views.clear();
    this.#list.replaceChildren();
    this.#say("");
    this.#composer.value = storage.getItem(this.#draftKey()) ?? "";
    this.#atEnd = true;
  }

  #keepEnd() {
    if (this.#atEnd) this.#list.scrollTop = this.#list.scrollHeight;
  }

  #draftKey() {
    return `kefu.draft.${this.#sessionId}`;
  }

  #draw() {
    const store = this.#store;
    const messages = store?.messages ?? [];
    const ownIsNew = messages.length > 0 && !this.#views.has(messages[messages.length - 1]) && !messages[messages.length - 1].incoming;
    this.#place(messages);
    this.#older.hidden = !store?.hasOlder;
    this.#typing.hidden = !store?.typing;
    this.#form.hidden = !store || store.status === "ended";
    this.#atEnd ||= ownIsNew;
    this.#keepEnd();
    this.#markRead();
  }

  /** Each message has one element, moved rather than made again. @param {Message[]} messages */
  #place(messages) {
    const present = new Set(messages);
    for (const [message, view] of this.#views) {
      if (present.has(message)) continue;
      this.#watcher.unobserve(view.element);
      this.#onScreen.delete(view.element);
      view.element.remove();
      this.#views.delete(message);
    }
    messages.forEach((message, index) => {
      const view = this.#views.get(message) ?? this.#newView(message);
      view.update(this.#store);
      if (this.#list.children[index] !== view.element) this.#list.insertBefore(view.element, this.#list.children[index] ?? null);
    });
  }

  /** @param {Message} message */
  #newView(message) {
    const view = new MessageView(/** @type {Client} */ (this.#client), message);
    this.#views.set(message, view);
    this.#watcher.observe(view.element);
    return view;
  }

  async #loadOlder() {
    const store = this.#store;
    if (!store?.hasOlder || this.#loadingOlder) return;
    this.#loadingOlder = true;
    const fromEnd = this.#list.scrollHeight - this.#list.scrollTop;
    try {
      await this.#client?.loadOlder(store.sessionId);
      this.#draw();
      // What was on screen stays where it was.
      this.#list.scrollTop = this.#list.scrollHeight - fromEnd;
    } catch (error) {
      this.#refused(error);
    } finally {
      this.#loadingOlder = false;
    }
  }

  /** @param {IntersectionObserverEntry[]} entries */
  #seen(entries) {
    for (const { target, isIntersecting, intersectionRatio, intersectionRect } of entries) {
      const filled = intersectionRect.height > this.#list.clientHeight / 2;
      if (isIntersecting && (intersectionRatio >= 0.6 || filled)) this.#onScreen.add(target);
      else this.#onScreen.delete(target);
    }
    this.#markRead();
  }

  #markRead() {
    const store = this.#store;
    if (!store || document.visibilityState !== "visible") return;
    let newest = null;
    for (const [message, { element }] of this.#views) {
      if (message.incoming && this.#onScreen.has(element)) newest = message;
    }
    if (newest?.msgId && newest.seq && newest.seq > (store.readUpTo?.seq ?? 0)) this.#client?.markRead(store.sessionId, newest.msgId);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    // 229: Safari tells the Enter that ends a composition after it has ended.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    this.#submit();
  }

  #written() {
    storage.setItem(this.#draftKey(), this.#composer.value);
    if (this.#sessionId) this.#client?.typing(this.#sessionId, this.#composer.value !== "");
  }

  #submit() {
    const client = this.#client;
    const content = this.#composer.value;
    if (!client || !this.#sessionId || content.trim() === "") return;
    const max = client.limits.maxChars;
    if ([...content].length > max) return this.#say(errorText("content_too_long", { max }));
    this.#say("");
    this.#composer.value = "";
    storage.removeItem(this.#draftKey());
    client.send({ sessionId: this.#sessionId, content });
  }

  async #attach() {
    const client = this.#client;
    const sessionId = this.#sessionId;
    const [file] = this.#file.files;
    this.#file.value = "";
    if (!client || !sessionId || !file) return;
    if (file.size > client.limits.maxUploadBytes) return this.#say(errorText("payload_too_large"));
    const onProgress = (/** @type {number} */ share) => this.#say(t("uploading", { percent: Math.round(share * 100) }));
    try {
      const { url } = await client.upload(file, { sessionId, onProgress });
      this.#say("");
      client.send({ sessionId, content: url, msgType: "image" });
    } catch (error) {
      this.#refused(error);
    }
  }

  /** @param {unknown} error */
  #refused(error) {
    this.#say(errorText(error instanceof ChatError ? error.code : "disconnected"));
  }

  /** @param {string} text */
  #say(text) {
    this.#notice.textContent = text;
    this.#notice.hidden = text === "";
  }
}

customElements.define("kefu-thread", KefuThread);
