// What wants the agent's attention: sessions just assigned (B81), desktop notifications, the window's title.
import { w } from "./console-strings.js";
import { view, visitorName } from "./desk-kit.js";
import { t } from "./shared/i18n.js";

/**
 * @typedef {import("./client.js").Client} Client
 * @typedef {import("./client.js").Session} Session
 */

const SHORT = 120;

/** Whether this browser can show notifications, and may. */
export function notificationState() {
  return "Notification" in globalThis ? Notification.permission : "unsupported";
}

export class Notices {
  #client;
  #select;
  #changed;
  /** Sessions that were assigned and neither opened nor answered yet, with their last `seq` of then. @type {Map<string, number>} */
  #fresh = new Map(Object.entries(view.get("fresh") ?? {}));
  /** @type {Map<string, Notification>} */
  #shown = new Map();

  /** @param {Client} client @param {(sessionId: string) => void} select @param {() => void} changed */
  constructor(client, select, changed) {
    this.#client = client;
    this.#select = select;
    this.#changed = changed;
    client.on("chat.session.new", (payload) => this.#assigned(payload));
    client.on("chat.message.new", (message) => this.#message(message));
    client.on("chat.session.read", ({ sessionId }) => this.clear(sessionId));
    client.on("chat.session.removed", ({ sessionId }) => this.clear(sessionId));
    client.on("chat.session.ended", ({ sessionId }) => this.clear(sessionId));
    client.on("change", (session) => this.#answered(session));
    client.on("sessions", () => this.#forgetGone());
  }

  /** Whether this session is new to the agent. @param {string} sessionId */
  fresh(sessionId) {
    return this.#fresh.has(sessionId);
  }

  /** The agent has seen to it: opened or answered, here or on another device. @param {string} sessionId */
  clear(sessionId) {
    this.#shown.get(sessionId)?.close();
    this.#shown.delete(sessionId);
    if (!this.#fresh.delete(sessionId)) return;
    this.#keep();
    this.#changed();
  }

  /** The title tells how much waits, so that a tab in the background does. @param {number} count @param {string} name */
  title(count, name) {
    const title = count ? `(${count}) ${name}` : name;
    if (document.title !== title) document.title = title;
  }

  /** @param {{sessionId: string, userInfo: any, lastSeq?: number}} payload */
  #assigned({ sessionId, userInfo, lastSeq = 0 }) {
    this.#fresh.set(sessionId, lastSeq);
    this.#keep();
    this.#changed();
    this.#notify(sessionId, w("noticeNew", { name: visitorName(userInfo, sessionId) }), "");
  }

  /** @param {any} message */
  #message({ sessionId, senderType, msgType, content, attempt }) {
    const session = this.#client.sessions.get(sessionId);
    // A push that comes again is no second message.
    if (senderType !== "user" || (attempt ?? 1) > 1 || !session) return;
    const text = msgType === "image" ? t("image") : [...content].slice(0, SHORT).join("");
    this.#notify(sessionId, visitorName(session.userInfo, sessionId), text);
  }

  /** A reply, of whichever device, is the answer to an assignment. @param {Session} session */
  #answered({ sessionId, messages }) {
    const assignedAt = this.#fresh.get(sessionId);
    if (assignedAt === undefined) return;
    const mine = messages.findLast(({ senderType, senderId }) => senderType === "agent" && senderId === this.#client.me.id);
    if (mine && (mine.seq ?? Infinity) > assignedAt) this.clear(sessionId);
  }

  #forgetGone() {
    if (this.#client.state !== "ready") return;
    for (const sessionId of this.#fresh.keys()) if (!this.#client.sessions.has(sessionId)) this.clear(sessionId);
  }

  #keep() {
    view.set("fresh", Object.fromEntries(this.#fresh));
  }

  /** @param {string} sessionId @param {string} title @param {string} body */
  #notify(sessionId, title, body) {
    if (document.visibilityState === "visible" || notificationState() !== "granted") return;
    this.#shown.get(sessionId)?.close();
    let notification;
    try {
      notification = new Notification(title, { body, tag: sessionId, icon: "/favicon.svg" });
    } catch {
      // Some phones allow them to service workers only; the title tells it all the same.
      return;
    }
    notification.onclick = () => {
      window.focus();
      this.#select(sessionId);
      notification.close();
    };
    this.#shown.set(sessionId, notification);
  }
}
