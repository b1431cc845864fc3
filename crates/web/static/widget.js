// The embeddable widget: <script type="module" src="…/widget.js" data-token="…" data-source="…"></script>,
// or <kefu-widget data-token="…">. Nothing is sent or stored before the visitor opens it.
import { el } from "./dom.js";
import { t } from "./i18n.js";
import "./visitor.js";

export class KefuWidget extends HTMLElement {
  #root = this.attachShadow({ mode: "open" });
  #visitor = /** @type {import("./visitor.js").KefuVisitor} */ (el("kefu-visitor"));
  #panel = el("section", { className: "panel", "aria-label": t("title"), hidden: true, "data-testid": "panel" }, this.#visitor);
  #launcher = el("button", { type: "button", className: "launcher primary", "aria-expanded": "false", "data-testid": "launcher", onclick: () => this.#toggle() }, t("open"));

  connectedCallback() {
    if (this.#launcher.isConnected) return;
    this.#visitor.getToken = () => this.dataset.token ?? "";
    this.#visitor.source = this.dataset.source ?? location.hostname;
    this.#root.append(el("link", { rel: "stylesheet", href: new URL("./demo.css", import.meta.url).href }), this.#panel, this.#launcher);
  }

  #toggle() {
    const opens = this.#panel.hidden;
    this.#panel.hidden = !opens;
    this.#launcher.setAttribute("aria-expanded", String(opens));
    this.#launcher.textContent = opens ? t("minimize") : t("open");
    // Opening is the visitor's act. An ended conversation stays until "start again".
    if (opens && this.#visitor.dataset.status === "none") this.#visitor.begin();
  }
}

customElements.define("kefu-widget", KefuWidget);

function mount() {
  const tag = [...document.querySelectorAll("script[data-token]")].find((script) => /** @type {HTMLScriptElement} */ (script).src === import.meta.url);
  if (!tag) return;
  const widget = el("kefu-widget");
  Object.assign(widget.dataset, /** @type {HTMLElement} */ (tag).dataset);
  document.body.append(widget);
}

// An async tag in <head> runs before there is a body.
if (document.body) mount();
else addEventListener("DOMContentLoaded", mount);
