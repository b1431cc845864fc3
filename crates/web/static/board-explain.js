// Why a visitor waited: the records of who was chosen, when, by which rule, and who else there was.
import { w } from "./console-strings.js";
import { dateAndTime, duration, serverNow } from "./desk-clock.js";
import { refusal } from "./desk-kit.js";
import { el } from "./dom.js";

/**
 * @typedef {object} DecisionRecord
 * @property {string} id
 * @property {number} time
 * @property {string} result
 * @property {string} reason
 * @property {string} rule
 * @property {string | null} adminId
 * @property {string | null} fromAdminId
 * @property {{adminId: string, activeSessions: number, maxSessions: number}[]} candidates
 * @property {string} [note]
 */

const RESULTS = new Set(["assigned", "transferred", "requeued", "ended"]);
const REASONS = new Set(["drain", "claim", "transfer", "agent_gone", "agent_offline", "end"]);

export class Explain {
  #client;
  #nameOf;
  /** @type {import("./client.js").Session | null} */
  #session = null;
  /** State of the session that the records were read for. */
  #read = "";
  #summary = el("p", { "data-testid": "explain-summary" });
  #list = el("ol", { className: "records", "data-testid": "explain-records" });
  element = el("section", { "aria-labelledby": "board-explain", "data-testid": "explain" }, el("h3", { id: "board-explain" }, w("explain")), this.#summary, this.#list);

  /** @param {import("./client.js").Client} client @param {(adminId: string | null) => string} nameOf */
  constructor(client, nameOf) {
    this.#client = client;
    this.#nameOf = (/** @type {string | null} */ adminId) => {
      const { agentInfo } = this.#session ?? {};
      return (agentInfo?.adminId === adminId && agentInfo?.name) || nameOf(adminId);
    };
  }

  /** Reads the records of a session, anew when something was decided since. @param {import("./client.js").Session} session */
  async show(session) {
    const { sessionId, status, agentInfo } = session;
    const state = [sessionId, status, agentInfo?.adminId].join();
    if (state === this.#read || this.#client.state !== "ready") return;
    if (session !== this.#session) this.#list.replaceChildren();
    this.#session = session;
    this.#read = state;
    try {
      const { records } = await this.#client.explain({ sessionId });
      if (session === this.#session) this.#draw(session, records);
    } catch (error) {
      if (session === this.#session) this.#summary.textContent = refusal(error);
    }
  }

  /** @param {import("./client.js").Session} session @param {DecisionRecord[]} records */
  #draw({ startedAt, status }, records) {
    const first = records.find(({ result }) => result === "assigned");
    const until = first?.time ?? (status === "waiting" ? serverNow() : null);
    const time = startedAt && until ? duration(until - startedAt) : "–";
    if (first) this.#summary.textContent = w("explainWaited", { time, name: this.#nameOf(first.adminId) });
    else this.#summary.textContent = w(status === "waiting" ? "explainWaits" : "explainNever", { time });
    this.#list.replaceChildren(...records.map((record) => this.#record(record)));
  }

  /** @param {DecisionRecord} record */
  #record({ time, result, reason, rule, adminId, fromAdminId, candidates, note }) {
    // Words that came with a later gateway are shown as they are.
    const what = RESULTS.has(result) ? w(/** @type {any} */ (`result_${result}`), { name: this.#nameOf(adminId), from: this.#nameOf(fromAdminId) }) : result;
    const why = REASONS.has(reason) ? w(/** @type {any} */ (`reason_${reason}`)) : reason;
    const others = candidates.map((one) => w("candidate", { name: this.#nameOf(one.adminId), active: one.activeSessions, max: one.maxSessions }));
    return el(
      "li",
      { "data-testid": "explain-record", "data-result": result },
      el("time", {}, dateAndTime(time)),
      el("strong", {}, what),
      el("span", {}, why),
      rule ? el("span", { className: "last" }, w("rule", { rule })) : null,
      others.length ? el("span", { className: "last" }, w("candidates", { list: others.join(", ") })) : null,
      note ? el("span", { className: "last" }, w("note", { note })) : null,
    );
  }
}
