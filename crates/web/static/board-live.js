// Sessions that go on now, all agents' and the waiting ones, to be looked into.
import { w } from "./console-strings.js";
import { Rows, setText, visitorName } from "./desk-kit.js";
import { snippet } from "./desk-visitor.js";
import { el } from "./dom.js";

/** The list is read anew at most this often, however much happens. */
const AGAIN_MS = 2_000;
/** Pages that one reading goes through at most: the newest sessions come first. */
const MOST_PAGES = 4;

export class LiveSessions {
  /** @type {any[]} */
  sessions = [];
  #client;
  #list = el("ul", { className: "rows" });
  #none = el("p", { className: "empty" }, w("liveNone"));
  #count = el("span", { className: "count" });
  #rows;
  #reading = false;
  #due = false;
  /** @type {string | null} */
  #selected = null;
  element = el("section", { "aria-labelledby": "board-live", "data-testid": "live" }, el("h2", { id: "board-live" }, w("live"), " ", this.#count), this.#list, this.#none);

  /** @param {import("./client.js").Client} client @param {(session: any) => void} look */
  constructor(client, look) {
    this.#client = client;
    this.#rows = new Rows(this.#list, (sessionId) => {
      const name = el("span", { className: "who" });
      const agent = el("span", { className: "tag" });
      const last = el("span", { className: "last" });
      const onclick = () => look(this.sessions.find((session) => session.sessionId === sessionId));
      const button = el("button", { type: "button", "data-testid": "live-session", "data-session-id": sessionId, onclick }, name, agent, last);
      return { element: el("li", {}, button), button, name, agent, last };
    });
  }

  /** Reads the list; several wishes while it is being read are one. */
  async refresh() {
    this.#due = true;
    if (this.#reading) return;
    this.#reading = true;
    while (this.#due) {
      this.#due = false;
      await this.#read();
      // A busy house changes many times a second: the list need not.
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
    this.#reading = false;
  }

  /** @param {string | null} selected the session that is looked into */
  mark(selected) {
    this.#selected = selected;
    this.#draw();
  }

  async #read() {
    /** @type {any[]} */
    const found = [];
    let cursor;
    try {
      for (let page = 0; page < MOST_PAGES; page++) {
        const answer = await this.#client.listSessions({ scope: "all", ...(cursor ? { cursor } : {}) });
        found.push(...answer.sessions.filter((/** @type {any} */ { status }) => status !== "ended"));
        cursor = answer.nextCursor;
        if (!cursor) break;
      }
    } catch {
      // Without an answer the list of before stays; the next figures ask again.
      return;
    }
    this.sessions = found;
    this.#draw();
  }

  #draw() {
    const { sessions } = this;
    this.#none.hidden = sessions.length > 0;
    setText(this.#count, sessions.length ? String(sessions.length) : "");
    const rows = this.#rows.show(sessions.map(({ sessionId }) => sessionId));
    sessions.forEach(({ sessionId, userInfo, status, agentInfo, lastMessage }, index) => {
      const { button, name, agent, last } = rows[index];
      button.setAttribute("aria-current", String(sessionId === this.#selected));
      button.dataset.status = status;
      setText(name, visitorName(userInfo, sessionId));
      setText(agent, status === "waiting" ? w("status_waiting") : agentInfo?.name || agentInfo?.adminId || "–");
      setText(last, snippet(lastMessage));
    });
  }
}
