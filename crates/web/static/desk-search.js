// Searching in one's sessions, or a supervisor in all: words of messages, names, user ids.
import { w } from "./console-strings.js";
import { dateAndTime } from "./desk-clock.js";
import { refusal, view, visitorName } from "./desk-kit.js";
import { snippet } from "./desk-visitor.js";
import { el } from "./dom.js";

/** Between the last key stroke and asking. */
const SETTLE_MS = 250;

export class Search {
  #client;
  #scope;
  #open;
  #changed;
  /** @type {any} */
  #timer = null;
  /** Answers of an older question are dropped. */
  #asked = 0;
  /** @type {string | null} */
  #cursor = null;

  #input = el("input", { type: "search", maxLength: 128, placeholder: w("searchHint"), "aria-label": w("search"), autocomplete: "off", "data-testid": "search" });
  #list = el("ul", { className: "rows", "data-testid": "found" });
  #state = el("p", { className: "empty", role: "status", "data-testid": "found-count" });
  #more = el("button", { type: "button", className: "quiet", hidden: true, onclick: () => this.#ask(true) }, w("searchMore"));
  results = el("section", { hidden: true, "aria-label": w("found") }, this.#state, this.#list, this.#more);
  element = el("search", {}, this.#input);

  /**
   * @param {import("./client.js").Client} client @param {"mine" | "all"} scope
   * @param {(session: any) => void} open shows one that was found @param {() => void} changed results came or went
   */
  constructor(client, scope, open, changed) {
    this.#client = client;
    this.#scope = scope;
    this.#open = open;
    this.#changed = changed;
    this.#input.value = view.get("search") ?? "";
    this.#input.addEventListener("input", () => this.#typed());
    this.#input.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      if (event.key === "Escape") this.clear();
    });
    client.on("state", ({ state }) => {
      if (state === "ready" && this.query) this.#ask(false);
    });
  }

  get query() {
    return this.#input.value.trim();
  }

  focus() {
    this.#input.focus();
    this.#input.select();
  }

  clear() {
    this.#input.value = "";
    this.#typed();
  }

  #typed() {
    view.set("search", this.query || null);
    clearTimeout(this.#timer);
    this.#asked++;
    this.results.hidden = this.query === "";
    // What was found for another question is no answer to this one.
    this.#list.replaceChildren();
    this.#more.hidden = true;
    this.#state.textContent = w("searching");
    if (this.query) this.#timer = setTimeout(() => this.#ask(false), SETTLE_MS);
    this.#changed();
  }

  /** @param {boolean} more the next page of what was found */
  async #ask(more) {
    const asked = ++this.#asked;
    const cursor = more && this.#cursor ? { cursor: this.#cursor } : {};
    try {
      const page = await this.#client.listSessions({ scope: this.#scope, query: this.query, limit: 20, ...cursor });
      if (asked !== this.#asked) return;
      if (!more) this.#list.replaceChildren();
      this.#list.append(...page.sessions.map((/** @type {any} */ session) => this.#row(session)));
      this.#cursor = page.nextCursor;
      this.#state.textContent = this.#list.childElementCount ? w("foundCount", { count: `${this.#list.childElementCount}${this.#cursor ? "+" : ""}` }) : w("foundNone");
    } catch (error) {
      if (asked !== this.#asked) return;
      this.#list.replaceChildren();
      this.#cursor = null;
      this.#state.textContent = refusal(error, { bad_request: w("searchBad") });
    }
    this.#more.hidden = !this.#cursor;
    this.results.hidden = false;
    this.#changed();
  }

  /** @param {any} session */
  #row(session) {
    const { sessionId, userInfo, status, startedAt, lastMessage } = session;
    return el(
      "li",
      {},
      el(
        "button",
        { type: "button", "data-testid": "found-session", "data-session-id": sessionId, onclick: () => this.#open(session) },
        el("span", { className: "who" }, visitorName(userInfo, sessionId)),
        el("span", { className: "tag" }, w(`status_${status}`)),
        el("span", { className: "last" }, dateAndTime(startedAt)),
        el("span", { className: "last" }, snippet(lastMessage)),
      ),
    );
  }
}
