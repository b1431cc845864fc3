// The embeddable widget: <script type="module" src="…/widget.js" data-token="…" data-source="…"></script>,
// or <kefu-widget data-token="…">. Nothing is sent or stored before the visitor opens it (B78).
import { connect } from "./client.js";
import { coalesced, el } from "./dom.js";
import { setLanguage, t } from "./shared/i18n.js";
import { storage } from "./storage.js";
import { Panel, SOUND } from "./widget/panel.js";
import { style } from "./widget/style.js";

/** `open` or `closed`, once the visitor has opened it in this tab: then the next page takes up where this one was. */
const OPENED = "kefu.opened";
const MAX_URL = 1_024;
const MAX_TITLE = 256;
/** By then a tone has sounded. */
const TONE_GONE_MS = 1_000;

export class KefuWidget extends HTMLElement {
  #root = this.attachShadow({ mode: "open" });
  /** @type {{token?: string, getToken?: (ask: {refresh: boolean}) => string | Promise<string>}} */
  #identity = {};
  /** @type {import("./client.js").Client | null} */
  #client = null;
  /** @type {Panel | null} */
  #panel = null;
  #badge = el("span", { className: "badge", hidden: true, "aria-hidden": "true", "data-testid": "badge" });
  #label = el("span");
  #launcher = el("button", { type: "button", className: "launcher primary", "aria-expanded": "false", "data-testid": "launcher", onclick: () => (this.#panel ? this.close() : this.open()) }, this.#label, this.#badge);
  #update = coalesced(() => this.#draw());

  connectedCallback() {
    if (this.#launcher.isConnected) return;
    if (this.dataset.lang) setLanguage(this.dataset.lang);
    this.#root.adoptedStyleSheets = [style];
    this.#root.append(this.#launcher);
    this.addEventListener("keydown", (event) => event.key === "Escape" && this.#panel && this.close());
    /** @type {any} */ (globalThis).kefu ??= this;
    this.#resume();
    this.#draw();
  }

  /** The visitor's act, or the host page's: asks for somebody. An ended conversation stays until "start again". */
  open() {
    storage.setItem(OPENED, "open");
    const client = this.#connect();
    this.#show();
    this.#focus();
    if (client.current === null) client.consult();
  }

  /** Only out of sight: the conversation goes on. */
  close() {
    if (this.#client) storage.setItem(OPENED, "closed");
    this.#panel?.dispose();
    this.#panel = null;
    this.#draw();
    this.#launcher.focus();
  }

  /** Says who the visitor is; `token`, or `getToken` for tokens that expire. @param {{token?: string, getToken?: (ask: {refresh: boolean}) => string | Promise<string>}} identity */
  identify(identity) {
    if (identity.token && identity.token === this.#identity.token) return;
    this.#identity = identity;
    this.#leave();
    this.#resume();
  }

  /** The visitor logs out: the connection closes and every trace goes. */
  async reset() {
    const client = this.#client;
    this.#leave();
    this.#identity = {};
    delete this.dataset.token;
    storage.clear();
    await client?.clear();
  }

  /** Takes up where the visitor was in this tab; opens no session. */
  #resume() {
    const opened = storage.getItem(OPENED);
    const { token, getToken } = { ...this.dataset, ...this.#identity };
    if (!opened || !(token || getToken)) return;
    this.#connect();
    if (opened === "open") this.#show();
  }

  #connect() {
    if (this.#client) return this.#client;
    const { token, source = location.hostname, url } = this.dataset;
    const client = connect({ token, source, url, role: "user", locale: document.documentElement.lang || undefined, ...this.#identity });
    this.#client = client;
    for (const type of ["state", "change", "sessions"]) client.on(type, this.#update);
    // Any other refusal has a place of its own, or is for nobody but the log.
    client.on("error", (error) => error.retryable && this.#panel?.refused(error));
    // A push that comes again is no second message.
    client.on("chat.message.new", ({ senderType, attempt = 1 }) => senderType !== "user" && attempt === 1 && this.#ring());
    this.#tellPage();
    return client;
  }

  #leave() {
    this.#client?.close();
    this.#client = null;
    this.#panel?.dispose();
    this.#panel = null;
    this.#draw();
  }

  #show() {
    const client = this.#client;
    if (!client || this.#panel) return;
    this.#panel = new Panel(client, { close: () => this.close(), consult: () => client.consult(), rebuild: () => this.#rebuild() });
    this.#root.prepend(this.#panel.element);
    this.#draw();
  }

  #rebuild() {
    this.#panel?.dispose();
    this.#panel = null;
    this.#show();
    this.#focus();
  }

  #focus() {
    this.#panel?.focus();
  }

  #draw() {
    const session = this.#client?.current;
    const count = session?.unreadCount ?? 0;
    this.dataset.status = session?.status ?? "none";
    this.classList.toggle("open", this.#panel !== null);
    this.#launcher.setAttribute("aria-expanded", String(this.#panel !== null));
    const label = t(this.#panel ? "minimize" : count ? "openUnread" : "open", { count });
    this.#launcher.setAttribute("aria-label", label);
    this.#label.textContent = t(this.#panel ? "minimize" : "open");
    this.#badge.hidden = this.#panel !== null || count === 0;
    this.#badge.textContent = String(count);
    this.#panel?.update();
  }

  /** The agent sees which page the visitor is on, also when it changes without a new document. */
  #tellPage() {
    const tell = () => {
      const { href, origin, pathname } = location;
      const url = href.length > MAX_URL ? (origin + pathname).slice(0, MAX_URL) : href;
      if (/^http/.test(url)) this.#client?.page({ url, title: document.title.slice(0, MAX_TITLE), language: navigator.language });
    };
    tell();
    /** @type {any} */ (globalThis).navigation?.addEventListener("navigatesuccess", tell);
  }

  /** A short tone, only when the visitor wants it and does not look. */
  #ring() {
    if (!storage.getItem(SOUND) || (this.#panel && document.visibilityState === "visible")) return;
    const audio = new AudioContext();
    const tone = audio.createOscillator();
    tone.connect(audio.destination);
    tone.start();
    tone.stop(audio.currentTime + 0.15);
    // Not when the tone has ended: before the page's first click browsers start none.
    setTimeout(() => audio.close(), TONE_GONE_MS);
  }
}

customElements.define("kefu-widget", KefuWidget);

/** `document.currentScript` is null in modules: the tag is the one with our address. */
function mount() {
  const tag = [...document.scripts].find((script) => script.src === import.meta.url);
  if (!tag || document.querySelector("kefu-widget")) return;
  const widget = el("kefu-widget");
  Object.assign(widget.dataset, tag.dataset);
  document.body.append(widget);
}

// A module in <head> is run when there is a body; an async one may come before.
if (document.body) mount();
else addEventListener("DOMContentLoaded", mount);
