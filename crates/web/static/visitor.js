// <kefu-visitor>: a visitor's whole conversation, from asking for somebody to rating it.
import { ChatError, connect } from "./client.js";
import "./connection.js";
import { coalesced, el } from "./dom.js";
import { errorText, language, t } from "./i18n.js";
import { RatingForm } from "./rating-form.js";
import { storage } from "./storage.js";
import "./thread.js";

/** @typedef {import("./client.js").Client} Client */

export class KefuVisitor extends HTMLElement {
  /** Gives the visitor's token. @type {(ask: {refresh: boolean}) => string | Promise<string>} */
  getToken = () => "";
  /** Where the visitor comes from, shown to the agent. */
  source = "web";

  /** @type {Client | null} */
  #client = null;
  #starting = false;
  #render = coalesced(() => this.#draw());
  /** @type {((name: string) => Promise<unknown>) | null} */
  #introduce = null;

  #connection = el("kefu-connection");
  #agentName = el("p", { className: "agent", hidden: true, "data-testid": "agent-name" });
  #waiting = el("p", { className: "state", role: "status", hidden: true, "data-testid": "waiting" });
  #offline = el("p", { className: "state", role: "status", hidden: true, "data-testid": "offline" });
  #ended = el("p", { className: "state", role: "status", hidden: true, "data-testid": "ended" }, t("ended"));
  #thread = /** @type {import("./thread.js").KefuThread} */ (el("kefu-thread", { hidden: true }));
  #name = el("input", { type: "text", maxLength: 64, autocomplete: "nickname", "data-testid": "name" });
  #nameLabel = el("label", { className: "field", hidden: true }, t("name"), this.#name);
  #start = el("button", { type: "button", className: "primary", "data-testid": "start", onclick: () => this.begin() }, t("start"));
  #restart = el("button", { type: "button", className: "primary", "data-testid": "restart", onclick: () => this.begin() }, t("restart"));
  #end = el("button", { type: "button", "data-testid": "end", onclick: () => this.#finish() }, t("end"));
  #notice = el("p", { className: "notice", role: "alert", hidden: true, "data-testid": "error" });
  #welcome = el("div", { className: "welcome" }, this.#nameLabel, this.#start);
  #rating = new RatingForm((rating, comment) => this.#rate(rating, comment));

  connectedCallback() {
    if (this.#connection.isConnected) return;
    this.replaceChildren(
      el("header", {}, el("h1", {}, t("title")), this.#connection, this.#agentName),
      this.#welcome,
      this.#waiting,
      this.#offline,
      this.#thread,
      this.#notice,
      this.#ended,
      el("footer", {}, this.#end, this.#rating.element, this.#restart),
    );
    this.#draw();
  }

  /**
   * Lets the visitor say a name before the first conversation.
   * @param {(name: string) => Promise<unknown>} introduce @param {string} [suggestion]
   */
  askName(introduce, suggestion = "") {
    this.#introduce = introduce;
    this.#name.value = suggestion;
    this.#nameLabel.hidden = false;
  }

  /** Takes up where the visitor was; opens no session. */
  resume() {
    this.#connect();
    this.#draw();
  }

  /** The visitor's act: asks for somebody. */
  async begin() {
    if (this.#starting) return;
    this.#starting = true;
    this.#say("");
    this.#draw();
    try {
      await this.#introduce?.(this.#name.value.trim());
      this.#introduce = null;
      await this.#connect().consult();
      this.#thread.focusComposer();
    } catch (error) {
      this.#refused(error);
    } finally {
      this.#starting = false;
      this.#draw();
    }
  }

  #connect() {
    if (this.#client) return this.#client;
    const client = connect({ getToken: (ask) => this.getToken(ask), source: this.source, role: "user", locale: language, storage });
    this.#client = client;
    this.#connection.client = client;
    for (const type of ["state", "change", "sessions"]) client.addEventListener(type, this.#render);
    return client;
  }

  #draw() {
    const session = this.#client?.current ?? null;
    const { status = "none", agentInfo = null, offline = false } = session ?? {};
    const waiting = status === "waiting";
    this.dataset.status = status;
    this.#welcome.hidden = session !== null || (this.#client !== null && this.#client.state === "connecting" && !this.#starting);
    this.#start.disabled = this.#restart.disabled = this.#starting;
    this.#start.textContent = this.#starting ? t("starting") : t("start");
    this.#agentName.hidden = !agentInfo || status === "ended";
    this.#agentName.textContent = agentInfo ? t("talkingTo", { name: agentInfo.name }) : "";
    this.#waiting.hidden = !waiting || offline;
    this.#waiting.textContent = session?.position ? t("waiting", { position: session.position, total: session.total ?? session.position }) : t("waitingSoon");
    this.#waiting.dataset.position = String(session?.position ?? "");
    this.#offline.hidden = !waiting || !offline;
    this.#offline.textContent = session?.offlineMessage ?? t("offline");
    this.#ended.hidden = this.#restart.hidden = status !== "ended";
    this.#end.hidden = session === null || status === "ended";
    this.#thread.hidden = session === null;
    this.#rating.update(session);
    if (this.#client) this.#thread.show(this.#client, session?.sessionId ?? null);
  }

  async #finish() {
    const session = this.#client?.current;
    if (!session) return;
    await this.#attempt(() => this.#client?.end(session.sessionId));
  }

  /** @param {number} rating @param {string} comment */
  async #rate(rating, comment) {
    const session = this.#client?.current;
    if (!session) return;
    await this.#attempt(() => this.#client?.rate(session.sessionId, rating, comment));
  }

  /** @param {() => Promise<unknown> | undefined} act */
  async #attempt(act) {
    this.#say("");
    try {
      await act();
    } catch (error) {
      this.#refused(error);
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

customElements.define("kefu-visitor", KefuVisitor);
