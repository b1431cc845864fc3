// The agent's own availability: on or off, and how many sessions at once.
import { w } from "./console-strings.js";
import { setText } from "./desk-kit.js";
import { el } from "./dom.js";

/** Until the gateway has told another one. */
const FIRST_CAP = 10;

export class Availability {
  #client;
  #status = el("strong", { role: "status", "data-testid": "status" });
  #cap = el("input", { type: "number", min: "1", value: String(FIRST_CAP), inputMode: "numeric", "data-testid": "cap", oninput: () => this.update() });
  #online = el("button", { type: "submit", className: "primary", "data-testid": "online" });
  #offline = el("button", { type: "button", "data-testid": "offline" }, w("goOffline"));
  #hint = el("p", { className: "hint" }, w("offlineHint"));
  element = el(
    "form",
    { className: "availability", "aria-label": w("availability") },
    this.#status,
    el("label", {}, w("cap"), " ", this.#cap),
    this.#online,
    this.#offline,
    this.#hint,
  );

  /** @param {import("./client.js").Client} client @param {(cap: number) => void} goOnline @param {() => void} goOffline */
  constructor(client, goOnline, goOffline) {
    this.#client = client;
    this.element.addEventListener("submit", (/** @type {Event} */ event) => {
      event.preventDefault();
      if (Number(this.#cap.value) >= 1) return goOnline(this.cap);
      // Nothing was chosen: the number of before stands again.
      this.#cap.value = String(client.agent?.maxSessions || FIRST_CAP);
      this.update();
    });
    this.#offline.addEventListener("click", goOffline);
    client.on("agent", () => this.#takeCap());
  }

  get cap() {
    return Number(this.#cap.value) || FIRST_CAP;
  }

  get online() {
    return this.#client.agent?.status === "online";
  }

  update() {
    const { maxSessions = 0 } = this.#client.agent ?? {};
    const { online } = this;
    // The status tells the load of its own moment only; the sessions here are always those of now.
    const active = [...this.#client.sessions.values()].filter((session) => session.status === "active" && !session.readOnly).length;
    this.#status.dataset.status = online ? "online" : "offline";
    setText(this.#status, online ? w("online", { active, max: maxSessions }) : w("offline"));
    setText(this.#online, w(online ? "capApply" : "goOnline"));
    this.#online.hidden = online && Number(this.#cap.value) === maxSessions;
    this.#offline.hidden = !online;
    this.#hint.hidden = online || this.#client.state !== "ready";
  }

  /** After a reload the chosen cap is in its field again; what is being typed there stays. */
  #takeCap() {
    const max = this.#client.agent?.maxSessions;
    if (max && document.activeElement !== this.#cap) this.#cap.value = String(max);
    this.update();
  }
}
