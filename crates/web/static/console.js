// <kefu-console>: an agent's desk: availability, own sessions, the waiting line, the conversation.
import { ChatError, connect } from "./client.js";
import "./connection.js";
import { demoIdentity } from "./demo.js";
import { coalesced, el } from "./dom.js";
import { errorText, language, t } from "./shared/i18n.js";
import "./console-strings.js";
import { SessionList, WaitingLine } from "./desk-lists.js";
import { storage } from "./storage.js";
import "./thread.js";
import { TransferForm } from "./transfer-form.js";

/** @typedef {import("./client.js").Client} Client */

const SELECTED = "kefu.console.selected";
const query = new URLSearchParams(location.search);
const role = query.get("role") === "supervisor" ? "supervisor" : "agent";

export class KefuConsole extends HTMLElement {
  #identity = demoIdentity(role);
  /** @type {Client | null} */
  #client = null;
  /** @type {string | null} */
  #selected = storage.getItem(SELECTED);
  #opening = false;
  #render = coalesced(() => this.#draw());

  #name = el("input", { type: "text", maxLength: 64, required: true, autocomplete: "nickname", value: query.get("name") ?? "", "data-testid": "name" });
  #login = el("form", { className: "welcome" }, el("label", { className: "field" }, t("name"), this.#name), el("button", { type: "submit", className: "primary", "data-testid": "login" }, t("login")));
  #connection = el("kefu-connection");
  #status = el("strong", { role: "status", "data-testid": "status" });
  #cap = el("input", { type: "number", min: "1", max: "10", value: "10", "data-testid": "cap" });
  #online = el("button", { type: "button", "data-testid": "online", onclick: () => this.#goOnline() }, t("goOnline"));
  #offline = el("button", { type: "button", "data-testid": "offline", onclick: () => this.#act((client) => client.offline()) }, t("goOffline"));
  #notice = el("p", { className: "notice", role: "alert", hidden: true, "data-testid": "error" });
  #sessions = new SessionList((sessionId) => this.#select(sessionId));
  #line = new WaitingLine((sessionId) => this.#claim(sessionId));
  #thread = /** @type {import("./thread.js").KefuThread} */ (el("kefu-thread"));
  #visitor = el("h2", { "data-testid": "visitor" });
  #note = el("p", { className: "state", hidden: true, "data-testid": "note" });
  #ended = el("p", { className: "state", role: "status", hidden: true, "data-testid": "ended" }, t("ended"));
  #transfer = new TransferForm(() => this.#targets(), (target, note) => this.#moveTo(target, note));
  #end = el("button", { type: "button", "data-testid": "end", onclick: () => this.#act((client, id) => client.end({ sessionId: id })) }, t("end"));
  #dismiss = el("button", { type: "button", "data-testid": "dismiss", onclick: () => this.#forget() }, t("dismiss"));
  #empty = el("p", { className: "empty" }, t("choose"));
  #conversation = el("section", { className: "conversation" }, el("header", {}, this.#visitor, this.#transfer.toggle, this.#end, this.#dismiss), this.#note, this.#transfer.element, this.#thread, this.#ended);
  #desk = el(
    "div",
    { className: "columns" },
    el("nav", {}, this.#sessions.element, this.#line.element),
    el("div", { className: "pane" }, this.#empty, this.#conversation),
  );
  #availability = el("div", { className: "availability" }, this.#status, el("label", {}, t("cap"), " ", this.#cap), this.#online, this.#offline);

  connectedCallback() {
    if (this.#connection.isConnected) return;
    this.replaceChildren(el("header", { className: "bar" }, el("h1", {}, t("console")), this.#availability, this.#connection), this.#notice, this.#login, this.#desk);
    this.#login.addEventListener("submit", (/** @type {Event} */ event) => {
      event.preventDefault();
      this.#signIn();
    });
    if (this.#identity.known()) this.#connect();
    this.#draw();
  }

  async #signIn() {
    try {
      await this.#identity.mint(this.#name.value.trim());
      this.#connect();
      this.#draw();
    } catch (error) {
      this.#refused(error);
    }
  }

  #connect() {
    const client = connect({ getToken: this.#identity.getToken, source: "console", role, locale: language() });
    this.#client = client;
    this.#connection.client = client;
    for (const type of ["state", "change", "sessions", "agent", "line"]) client.addEventListener(type, this.#render);
    client.addEventListener("agent", () => this.#takeCap(client));
    client.addEventListener("chat.session.removed", (event) => {
      if (/** @type {CustomEvent} */ (event).detail.sessionId === this.#selected) this.#select(null);
    });
  }

  #draw() {
    const client = this.#client;
    this.#login.hidden = client !== null;
    this.#desk.hidden = client === null;
    this.#availability.hidden = client === null || role !== "agent";
    if (!client) return;
    this.#drawAvailability(client);
    this.#restoreSelected(client);
    this.#sessions.update([...client.sessions.values()], this.#selected);
    this.#line.update(client.line);
    this.#drawConversation(client);
    const unread = [...client.sessions.values()].reduce((sum, store) => sum + store.unreadCount, 0);
    document.title = unread ? `(${unread}) ${t("console")}` : t("console");
  }

  /** @param {Client} client */
  #drawAvailability(client) {
    const { status = "offline", maxSessions = 0 } = client.agent ?? {};
    const online = status === "online";
    // The status tells the load of its own moment only; the sessions here are always those of now.
    const active = [...client.sessions.values()].filter((store) => store.status === "active").length;
    this.#status.dataset.status = status;
    this.#status.textContent = online ? t("online", { active, max: maxSessions }) : t("offlineStatus");
    // Still there while online: a higher cap is told by going online again.
    this.#offline.disabled = !online;
  }

  /** After a reload the chosen cap is in its field again; what is being typed there stays. @param {Client} client */
  #takeCap({ agent }) {
    if (agent?.maxSessions && document.activeElement !== this.#cap) this.#cap.value = String(agent.maxSessions);
  }

  /** @param {Client} client */
  #drawConversation(client) {
    const store = client.sessions.get(this.#selected ?? "") ?? null;
    this.#empty.hidden = store !== null;
    this.#conversation.hidden = store === null;
    this.#thread.show(client, store?.sessionId ?? null);
    if (!store) return;
    const ended = store.status === "ended";
    this.#visitor.textContent = store.userInfo?.name || store.userInfo?.userId || store.sessionId;
    this.#note.hidden = !store.note;
    this.#note.textContent = store.note ? t("note", { note: store.note }) : "";
    this.#end.hidden = this.#transfer.toggle.hidden = this.#transfer.element.hidden = ended;
    this.#ended.hidden = this.#dismiss.hidden = !ended;
  }

  /** After a reload an ended session that was being looked at is not among the open ones. @param {Client} client */
  async #restoreSelected(client) {
    const sessionId = this.#selected;
    if (!sessionId || this.#opening || client.state !== "ready" || client.sessions.has(sessionId)) return;
    this.#opening = true;
    try {
      await client.open(sessionId);
    } catch (error) {
      const gone = error instanceof ChatError && !error.retryable;
      if (gone && this.#selected === sessionId) this.#select(null);
    } finally {
      this.#opening = false;
    }
  }

  /** @param {string | null} sessionId */
  #select(sessionId) {
    this.#selected = sessionId;
    if (sessionId) storage.setItem(SELECTED, sessionId);
    else storage.removeItem(SELECTED);
    this.#transfer.close();
    this.#draw();
    if (sessionId) this.#thread.focusComposer();
  }

  #forget() {
    const sessionId = this.#selected;
    this.#select(null);
    if (sessionId) this.#client?.forget(sessionId);
  }

  #goOnline() {
    this.#act((client) => client.online({ maxSessions: Number(this.#cap.value) }));
  }

  /** @param {string} sessionId */
  async #claim(sessionId) {
    if (await this.#act((client) => client.claim({ sessionId }))) this.#select(sessionId);
  }

  async #targets() {
    const { agents } = (await this.#client?.agents()) ?? { agents: [] };
    return agents.filter((agent) => agent.status === "online" && agent.adminId !== this.#client?.me.id);
  }

  /** @param {string} target @param {string} note */
  async #moveTo(target, note) {
    if (await this.#act((client, sessionId) => client.transfer({ sessionId, targetAdminId: target, ...(note ? { note } : {}) }))) this.#transfer.close();
  }

  /** @param {(client: Client, selected: string) => Promise<unknown>} act @returns {Promise<boolean>} whether it was done */
  async #act(act) {
    this.#say("");
    try {
      if (this.#client) await act(this.#client, this.#selected ?? "");
      return true;
    } catch (error) {
      this.#refused(error);
      return false;
    }
  }

  /** @param {unknown} error */
  #refused(error) {
    this.#say(errorText(error instanceof ChatError ? error.code : "disconnected", { max: this.#client?.limits.maxChars }));
  }

  /** @param {string} text */
  #say(text) {
    this.#notice.textContent = text;
    this.#notice.hidden = text === "";
  }
}

document.documentElement.lang = language();
document.title = t("console");
customElements.define("kefu-console", KefuConsole);
