// <kefu-console>: signing in, and then the agent's desk or the supervisor's board.
import { Board } from "./board.js";
import { connect } from "./client.js";
import { w } from "./console-strings.js";
import { NoDemo, identity } from "./desk-identity.js";
import { refusal, view } from "./desk-kit.js";
import { Desk } from "./desk.js";
import { el } from "./dom.js";
import { language, setLanguage } from "./shared/i18n.js";

const LANGUAGE_KEPT = "kefu.console.language";
/** Closes, and codes, that say that the token is not good any more. */
const TOKEN_REASONS = new Set([4001, 4002, "unauthenticated", "token_expired"]);

export class KefuConsole extends HTMLElement {
  #query = new URLSearchParams(location.search);
  #name = el("input", { type: "text", maxLength: 64, required: true, autocomplete: "nickname", value: this.#query.get("name") ?? "", "data-testid": "name" });
  #agent = el("input", { type: "radio", name: "role", value: "agent", checked: true, "data-testid": "role-agent" });
  #supervisor = el("input", { type: "radio", name: "role", value: "supervisor", "data-testid": "role-supervisor" });
  #token = el("textarea", { rows: 4, autocomplete: "off", spellcheck: false, "data-testid": "token" });
  #demo = el(
    "div",
    { className: "stack" },
    el("label", { className: "field" }, w("yourName"), this.#name),
    el("fieldset", { className: "roles" }, el("legend", {}, w("role")), el("label", {}, this.#agent, " ", w("roleAgent")), el("label", {}, this.#supervisor, " ", w("roleSupervisor"))),
  );
  #real = el("label", { className: "field", hidden: true }, w("token"), this.#token, el("span", { className: "hint" }, w("tokenHint")));
  #notice = el("p", { className: "notice", role: "alert", hidden: true, "data-testid": "error" });
  #submit = el("button", { type: "submit", className: "primary", "data-testid": "login" }, w("login"));
  #login = el("form", { className: "welcome stack" }, el("h1", {}, w("console")), el("p", {}, w("welcome")), this.#demo, this.#real, this.#notice, this.#submit);

  connectedCallback() {
    if (this.childElementCount > 0) return;
    identity.adopt();
    const { kept } = identity;
    if (kept) this.#start(kept);
    else this.#ask();
  }

  #ask() {
    this.#supervisor.checked = this.#query.get("role") === "supervisor";
    if (view.get("signedOut")) this.#say(w("signedOut"));
    this.#login.addEventListener("submit", (/** @type {Event} */ event) => {
      event.preventDefault();
      this.#signIn();
    });
    this.replaceChildren(el("main", {}, this.#login));
    (this.#name.value ? this.#submit : this.#name).focus();
  }

  async #signIn() {
    this.#say("");
    if (!this.#real.hidden) return this.#useToken();
    this.#submit.disabled = true;
    try {
      await identity.mint(this.#supervisor.checked ? "supervisor" : "agent", this.#name.value.trim());
      this.#begin();
    } catch (error) {
      if (error instanceof NoDemo) this.#askToken();
      else this.#say(refusal(error));
    }
    this.#submit.disabled = false;
  }

  #askToken() {
    this.#demo.hidden = true;
    this.#name.required = false;
    this.#real.hidden = false;
    this.#token.required = true;
    this.#token.focus();
  }

  #useToken() {
    if (identity.use(this.#token.value)) this.#begin();
    else this.#say(w("tokenBad"));
  }

  #begin() {
    view.set("signedOut", null);
    if (identity.kept) this.#start(identity.kept);
  }

  /** @param {import("./desk-identity.js").Kept} kept */
  #start({ role, name = "" }) {
    const client = connect({ getToken: identity.getToken, source: "console", role, locale: language() });
    const host = { name, signOut: () => this.#leave(client), speak };
    const desk = role === "supervisor" ? new Board(client, host) : new Desk(client, host);
    this.replaceChildren(desk.element);
    client.on("state", ({ state, reason }) => {
      if (state === "closed" && TOKEN_REASONS.has(reason ?? "")) this.#expired();
    });
  }

  /** What is being written is kept: the same person signs in again. */
  #expired() {
    identity.forget();
    view.set("signedOut", true);
    location.reload();
  }

  /** Nothing of this person stays on the machine. @param {import("./client.js").Client} client */
  async #leave(client) {
    await client.clear();
    view.forget();
    location.reload();
  }

  /** @param {string} text */
  #say(text) {
    this.#notice.textContent = text;
    this.#notice.hidden = text === "";
  }
}

/** Another language: the page is built anew, and everything in it comes back. @param {string} tag */
function speak(tag) {
  try {
    localStorage.setItem(LANGUAGE_KEPT, tag);
  } catch {
    return;
  }
  location.reload();
}

function spokenBefore() {
  try {
    return localStorage.getItem(LANGUAGE_KEPT);
  } catch {
    return null;
  }
}

setLanguage(spokenBefore() ?? language());
document.documentElement.lang = language();
document.title = w("console");
customElements.define("kefu-console", KefuConsole);
