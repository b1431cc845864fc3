// The board's figures: who waits and how long, who serves how many, arrivals and first responses as charts.
import { BarChart, LineChart, loadBar } from "./board-charts.js";
import { w } from "./console-strings.js";
import { clockOf, duration, serverNow } from "./desk-clock.js";
import { Rows, setText } from "./desk-kit.js";
import { el } from "./dom.js";

/**
 * @typedef {object} BoardData payload of `chat.board`
 * @property {number} time
 * @property {number} waiting
 * @property {number} longestWaitMs
 * @property {{adminId: string, name: string, status: string, activeSessions: number, maxSessions: number}[]} agents
 * @property {number[]} arrivalsPerMinute
 * @property {{p50: number | null, p90: number | null}} firstResponseMs
 *
 * @typedef {import("./board-charts.js").Point} Point
 */

const MINUTE = 60_000;
/** Two seconds apart at the closest: the last ten minutes at least. */
const MOST_POINTS = 300;

export class Figures {
  /** @type {BoardData | null} */
  #data = null;
  /** @type {Point[]} */
  #waits = [];
  /** @type {Point[]} */
  #responses = [];

  #waiting = figure("figure-waiting", w("figureWaiting"));
  #longest = figure("figure-longest", w("figureLongest"));
  #online = figure("figure-online", w("figureOnline"));
  #room = figure("figure-room", w("figureRoom"));
  #response = figure("figure-response", w("figureResponse"));
  #arrivals = new BarChart("chart-arrivals", { title: w("chartArrivals"), from: w("hourAgo"), to: w("now"), table: w("asTable"), columns: [w("minute"), w("arrivals")] });
  #firstResponse = new LineChart("chart-response", { title: w("chartResponse"), from: w("opened"), to: w("now"), table: w("asTable"), columns: [w("time"), w("half"), w("nineTenths")] }, [w("half"), w("nineTenths")]);
  #wait = new LineChart("chart-wait", { title: w("chartWait"), from: w("opened"), to: w("now"), table: w("asTable"), columns: [w("time"), w("figureLongest")] }, [w("figureLongest")]);
  #agents = el("tbody", {});
  #nobody = el("p", { className: "empty" }, w("agentsNone"));
  #rows = new Rows(this.#agents, agentRow);
  element = el(
    "div",
    { className: "figures", "data-testid": "board" },
    el("div", { className: "tiles" }, this.#waiting.element, this.#longest.element, this.#online.element, this.#room.element, this.#response.element),
    el(
      "section",
      { "aria-labelledby": "board-load" },
      el("h2", { id: "board-load" }, w("loads")),
      el("table", { className: "loads" }, el("thead", {}, el("tr", {}, ...[w("agentName"), w("availability"), w("load")].map((name) => el("th", { scope: "col" }, name)))), this.#agents),
      this.#nobody,
    ),
    el("div", { className: "charts" }, this.#arrivals.element, this.#firstResponse.element, this.#wait.element),
  );

  /** Names of the agents, for where only an id is told. @param {string | null} adminId */
  nameOf(adminId) {
    return this.#data?.agents.find((agent) => agent.adminId === adminId)?.name || adminId || "–";
  }

  /** @param {BoardData} data */
  update(data) {
    this.#data = data;
    this.#waits = [...this.#waits, { time: data.time, values: [data.longestWaitMs] }].slice(-MOST_POINTS);
    const { p50, p90 } = data.firstResponseMs;
    this.#responses = [...this.#responses, { time: data.time, values: [p50, p90] }].slice(-MOST_POINTS);
    this.#drawFigures(data);
    this.#drawAgents(data);
    this.#drawCharts(data);
    this.tick();
  }

  /** The longest wait grows by itself. */
  tick() {
    const data = this.#data;
    if (!data) return;
    const wait = data.waiting > 0 ? data.longestWaitMs + Math.max(0, serverNow() - data.time) : 0;
    setText(this.#longest.value, duration(wait));
  }

  /** @param {BoardData} data */
  #drawFigures({ waiting, agents, firstResponseMs }) {
    const online = agents.filter(({ status }) => status === "online");
    const room = online.reduce((sum, { activeSessions, maxSessions }) => sum + Math.max(0, maxSessions - activeSessions), 0);
    setText(this.#waiting.value, String(waiting));
    setText(this.#online.value, String(online.length));
    setText(this.#room.value, String(room));
    setText(this.#response.value, firstResponseMs.p50 === null ? "–" : duration(firstResponseMs.p50));
    this.element.dataset.waiting = String(waiting);
  }

  /** @param {BoardData} data */
  #drawAgents({ agents }) {
    this.#nobody.hidden = agents.length > 0;
    const rows = this.#rows.show(agents.map(({ adminId }) => adminId));
    agents.forEach((agent, index) => rows[index].update(agent));
  }

  /** @param {BoardData} data */
  #drawCharts({ time, arrivalsPerMinute: arrivals, firstResponseMs }) {
    const total = arrivals.reduce((sum, count) => sum + count, 0);
    const minute = (/** @type {number} */ index) => clockOf(time - (arrivals.length - 1 - index) * MINUTE);
    this.#arrivals.update(arrivals, minute, w("arrivalsSummary", { total, most: Math.max(...arrivals, 0) }));
    const { p50, p90 } = firstResponseMs;
    const said = p50 === null || p90 === null ? w("responseNone") : w("responseSummary", { half: duration(p50), most: duration(p90) });
    this.#firstResponse.update(this.#responses, duration, clockOf, said);
    const most = Math.max(...this.#waits.map(({ values }) => values[0] ?? 0));
    this.#wait.update(this.#waits, duration, clockOf, w("waitSummary", { most: duration(most) }));
  }
}

/** @param {string} id @param {string} name */
function figure(id, name) {
  const value = el("strong", { "data-testid": id }, "–");
  return { value, element: el("p", { className: "tile" }, value, el("span", {}, name)) };
}

/** @param {string} adminId */
function agentRow(adminId) {
  const name = el("th", { scope: "row" });
  const status = el("td", {});
  const load = el("td", {});
  const text = el("span", {});
  let shown = "";
  const element = el("tr", { "data-testid": "agent-load", "data-admin-id": adminId }, name, status, load);
  const update = (/** @type {BoardData["agents"][number]} */ agent) => {
    const { status: state, activeSessions, maxSessions } = agent;
    setText(name, agent.name || adminId);
    setText(status, w(state === "online" ? "isOnline" : "isOffline"));
    status.dataset.status = state;
    element.dataset.active = String(activeSessions);
    const key = `${activeSessions}/${maxSessions}`;
    if (key === shown) return;
    shown = key;
    text.textContent = w("loadOf", { active: activeSessions, max: maxSessions });
    load.replaceChildren(loadBar(activeSessions, maxSessions), text);
  };
  return { element, update };
}
