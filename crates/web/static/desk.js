// The agent's desk: three panes that follow what the client library knows.
import { w } from "./console-strings.js";
import { Availability } from "./desk-availability.js";
import { Bar } from "./desk-bar.js";
import { CannedBook } from "./desk-canned.js";
import { CannedDialog } from "./desk-canned-dialog.js";
import { dateOf, everySecond, serverNow, setClock } from "./desk-clock.js";
import { Compose } from "./desk-compose.js";
import { Conversation } from "./desk-conversation.js";
import { Ended } from "./desk-ended.js";
import { HelpDialog, Palette, alt, ctrl, listenForKeys } from "./desk-keys.js";
import { framed, givenName, refusal, view, visitorName } from "./desk-kit.js";
import { SessionList, WaitingLine } from "./desk-lists.js";
import { Notices } from "./desk-notices.js";
import { Notes } from "./desk-notes.js";
import { Search } from "./desk-search.js";
import { TransferForm } from "./desk-transfer.js";
import { PastSessions, VisitorPane } from "./desk-visitor.js";
import { el } from "./dom.js";
import { errorText } from "./shared/i18n.js";

/**
 * @typedef {import("./client.js").Client} Client
 * @typedef {import("./client.js").Session} Session
 * @typedef {import("./desk-keys.js").Command} Command
 *
 * @typedef {object} Host what surrounds a desk or a board
 * @property {string} name the agent's own
 * @property {() => void} signOut
 * @property {(tag: string) => void} speak another language
 */

export class Desk {
  #client;
  #host;
  /** @type {string | null} */
  #selected = view.get("selected") ?? null;
  /** Where to go back to after a look at another session. @type {string | null} */
  #before = null;
  #position = view.get("position") ?? null;
  /** The focus was in the text field before a reload. */
  #wasWriting = view.get("writing") === true;
  /** What is said at the top is about a message that will be sent again by itself. */
  #sending = false;
  #update = framed(() => this.#draw());
  /** @type {Command[]} */
  #commands;

  #bar;
  #availability;
  #search;
  #sessions;
  #line;
  #notes;
  #notices;
  #ended;
  #canned;
  #cannedDialog;
  /** @type {Compose} */
  #compose;
  /** @type {Conversation} */
  #conversation;
  #transfer;
  #past;
  #visitor;
  #help = new HelpDialog();
  #palette = new Palette(() => this.#possible());
  #notice = el("p", { className: "notice", role: "alert", hidden: true, "data-testid": "error" });
  #news = el("p", { className: "news", role: "status", hidden: true, "data-testid": "news" });
  #end = el("button", { type: "button", className: "danger", "data-testid": "end", onclick: () => this.#endSession() }, w("end"));
  /** @type {string | null} */
  #ending = null;
  /** The next press of "Sign out" is meant. */
  #leaving = false;
  #toTalk = el("button", { type: "button", className: "flat not-wide", "data-testid": "to-talk", onclick: () => this.#showPane("talk") }, w("toTalk"));
  #panes;
  element;

  /** @param {Client} client @param {Host} host */
  constructor(client, host) {
    this.#client = client;
    this.#host = host;
    this.#commands = this.#allCommands();
    this.#availability = new Availability(client, (cap) => this.#do(() => client.online({ maxSessions: cap }), { bad_request: w("capBad") }), () => this.#do(() => client.offline({})));
    this.#search = new Search(client, "mine", (session) => this.#look(session), this.#update);
    this.#sessions = new SessionList(client, (sessionId) => this.select(sessionId));
    this.#line = new WaitingLine(client, (sessionId) => this.#claim(sessionId));
    this.#notes = new Notes(client, (sessionId) => sessionId === this.#selected && this.#conversation.updateNotes());
    this.#notices = new Notices(client, (sessionId) => this.select(sessionId), this.#update);
    this.#ended = new Ended(client, this.#update);
    this.#canned = new CannedBook(client);
    this.#cannedDialog = new CannedDialog(this.#canned, "mine");
    this.#compose = new Compose({
      client,
      canned: this.#canned,
      values: () => this.#values(),
      manage: () => this.#cannedDialog.open(),
      addNote: (sessionId, content, key) => this.#notes.add(sessionId, content, key),
      dropPlace: () => this.#conversation.element,
      mayReply: true,
      drafted: this.#update,
    });
    this.#conversation = new Conversation({
      client,
      notes: this.#notes,
      compose: this.#compose,
      readOnly: false,
      empty: w("choose"),
      back: () => this.#showPane("list"),
      details: () => this.#showPane("details"),
      leave: () => this.#leave(),
    });
    this.#transfer = new TransferForm(() => this.#colleagues(), (target, note) => this.#moveTo(target, note));
    this.#past = new PastSessions(client, (session) => this.#look(session), (session) => this.#told(session));
    this.#visitor = new VisitorPane(client, [this.#transfer.toggle, this.#end, this.#transfer.element], this.#past.element);
    this.#bar = new Bar(client, host.name, {
      title: w("console"),
      notifies: true,
      palette: () => this.#palette.open(),
      canned: () => this.#cannedDialog.open(),
      help: () => this.#help.open(this.#commands),
      signOut: () => this.#signOut(),
      speak: host.speak,
    });
    const left = el("div", { className: "pane lists" }, this.#availability.element, this.#search.element, this.#search.results, this.#sessions.element, this.#line.element);
    const right = el("aside", { className: "pane details", "aria-label": w("visitorPane") }, this.#toTalk, this.#visitor.element);
    this.#panes = el("main", { className: "panes", "data-testid": "panes" }, left, this.#conversation.element, right);
    this.element = el("div", { className: "desk" }, this.#bar.element, this.#notice, this.#news, this.#panes, this.#cannedDialog.element, this.#help.element, this.#palette.element);
    this.#listen();
    this.#showPane(view.get("pane") ?? "list");
    this.#draw();
  }

  /** @param {string | null} sessionId */
  select(sessionId) {
    if (this.#selected && this.#selected !== sessionId) this.#leaveLooked(this.#selected);
    this.#selected = sessionId;
    this.#position = null;
    view.set("selected", sessionId);
    this.#transfer.reset();
    this.#askEnd(null);
    this.#leaving = false;
    this.#say("");
    if (sessionId) this.#notices.clear(sessionId);
    this.#showPane(sessionId ? "talk" : "list");
    this.#show();
    this.#draw();
    // On a touch screen the keyboard would cover what one wants to read first.
    if (sessionId && !matchMedia("(pointer: coarse)").matches) this.#compose.focus();
  }

  #listen() {
    const client = this.#client;
    client.on("chat.connected", ({ serverTime }) => setClock(serverTime));
    for (const type of ["state", "change", "sessions", "agent", "line"]) client.on(type, this.#update);
    client.on("chat.session.removed", (removed) => this.#removed(removed));
    client.on("error", ({ code, retryAfterMs = 0 }) => {
      this.#sending = true;
      this.#say(errorText(code, { seconds: Math.ceil(retryAfterMs / 1_000) }));
    });
    client.on("chat.message.server_ack", () => {
      if (this.#sending) this.#say("");
    });
    everySecond(() => {
      this.#sessions.tick();
      this.#line.tick();
    });
    listenForKeys(this.#commands);
    addEventListener("pagehide", () => {
      view.set("position", this.#conversation.position);
      view.set("writing", this.#compose.element.contains(document.activeElement));
      this.#sessions.keep();
    });
  }

  get #session() {
    return this.#client.sessions.get(this.#selected ?? "") ?? null;
  }

  #draw() {
    const client = this.#client;
    this.#availability.update();
    const searching = this.#search.query !== "";
    this.#sessions.element.hidden = this.#line.element.hidden = searching;
    this.#sessions.update(this.#ended.listed(), { selected: this.#selected, fresh: (sessionId) => this.#notices.fresh(sessionId), online: this.#availability.online });
    this.#line.update();
    this.#notices.title(this.#sessions.attention, w("console"));
    if (client.state === "ready") this.#restore();
    this.#show();
  }

  /** Puts the chosen session into the panes; cheap when it is there already. */
  #show() {
    const session = this.#session;
    if (session !== this.#shown) {
      this.#shown = session;
      this.#conversation.show(session, this.#position);
      if (session && this.#wasWriting) this.#compose.focus();
      if (session) this.#wasWriting = false;
    } else this.#conversation.update();
    this.#visitor.element.hidden = session === null;
    if (!session) return;
    this.#visitor.update(session);
    this.#notes.look(session.sessionId);
    this.#past.show(session.sessionId);
    const over = session.status === "ended" || session.readOnly;
    this.#end.hidden = this.#transfer.toggle.hidden = over;
    if (over) this.#transfer.close();
  }
  /** @type {Session | null | undefined} */
  #shown;

  /** After a reload an ended session that was being looked at is not among the open ones. */
  async #restore() {
    const sessionId = this.#selected;
    if (!sessionId || this.#client.sessions.has(sessionId) || this.#ended.opening(sessionId)) return;
    const found = await this.#ended.open(sessionId);
    if (!found && this.#selected === sessionId && this.#client.state === "ready") this.select(null);
    else this.#update();
  }

  /** @param {"list" | "talk" | "details"} pane the one that is shown where there is no room for all */
  #showPane(pane) {
    this.#panes.dataset.pane = pane;
    view.set("pane", pane);
  }

  /** @param {any} session */
  #told(session) {
    this.#visitor.told(session);
    this.#update();
  }

  /** Looks at a session that was found or is past. @param {any} session */
  async #look(session) {
    const { sessionId } = session;
    const from = this.#session?.readOnly ? this.#before : this.#selected;
    if (await this.#do(() => this.#client.open(session))) this.select(sessionId);
    this.#before = from;
  }

  #leave() {
    const sessionId = this.#selected;
    if (!sessionId) return;
    const back = this.#session?.readOnly && this.#before && this.#client.sessions.has(this.#before) ? this.#before : null;
    this.#ended.dismiss(sessionId);
    this.select(back);
  }

  /** @param {string} sessionId */
  #leaveLooked(sessionId) {
    if (this.#client.sessions.get(sessionId)?.readOnly && !this.#ended.has(sessionId)) this.#client.forget(sessionId);
  }

  /** @param {{sessionId: string, reason: string}} removed */
  #removed({ sessionId, reason }) {
    if (sessionId !== this.#selected) return;
    this.select(null);
    this.#tell(w(reason === "transferred" ? "removedTransferred" : "removedRequeued"));
  }

  /** @param {string} sessionId */
  async #claim(sessionId) {
    if (await this.#do(() => this.#client.claim({ sessionId }), { agent_unavailable: w("claimFull"), conflict: w("claimLost") })) this.select(sessionId);
  }

  /** Asked twice, since nothing brings a conversation back. */
  #endSession() {
    const session = this.#session;
    if (!session) return;
    if (this.#ending !== session.sessionId) return this.#askEnd(session.sessionId);
    this.#askEnd(null);
    this.#do(() => this.#client.end({ sessionId: session.sessionId }));
  }

  /** @param {string | null} sessionId the session whose end the next press confirms */
  #askEnd(sessionId) {
    this.#ending = sessionId;
    this.#end.textContent = w(sessionId ? "endSure" : "end");
    this.#end.dataset.sure = String(sessionId !== null);
    if (sessionId === null) return;
    // Where a command asked, the button may be out of sight.
    this.#showPane("details");
    this.#end.focus();
  }

  async #colleagues() {
    const { agents } = await this.#client.agents();
    return agents.filter((/** @type {any} */ { status, adminId }) => status === "online" && adminId !== this.#client.me.id);
  }

  /** @param {string} targetAdminId @param {string} note */
  async #moveTo(targetAdminId, note) {
    const session = this.#session;
    if (!session) return;
    const { sessionId } = session;
    const done = await this.#do(() => this.#client.transfer({ sessionId, targetAdminId, ...(note ? { note } : {}) }));
    if (done) this.#transfer.reset();
  }

  async #signOut() {
    const open = [...this.#client.sessions.values()].filter(({ status, readOnly }) => status === "active" && !readOnly).length;
    if (open > 0 && !this.#leaving) {
      this.#leaving = true;
      return this.#tell(w("signOutSure", { count: open }));
    }
    // Nobody is left talking to an empty chair; without a connection the grace time does the same.
    await this.#client.offline({ requeue: true }).catch(() => {});
    this.#host.signOut();
  }

  /** What `{{…}}` in a canned reply stands for. */
  #values() {
    const session = this.#session;
    return { visitor: givenName(session?.userInfo), agent: this.#host.name, source: session?.source ?? undefined, date: dateOf(serverNow()) };
  }

  /** @returns {Command[]} */
  #allCommands() {
    const client = this.#client;
    const open = () => this.#session?.status === "active" && !this.#session.readOnly;
    const online = () => client.agent?.status === "online";
    return [
      { id: "next", label: w("keyNext"), keys: "Alt + ↓", pressed: alt("ArrowDown"), run: () => this.#step(1) },
      { id: "previous", label: w("keyPrevious"), keys: "Alt + ↑", pressed: alt("ArrowUp"), run: () => this.#step(-1) },
      { id: "compose", label: w("keyCompose"), keys: "Alt + C", pressed: alt("KeyC"), possible: () => this.#session !== null, run: () => this.#write() },
      { id: "mode", label: w("keyMode"), keys: "Alt + N", pressed: alt("KeyN"), possible: open, run: () => this.#compose.setMode(this.#compose.mode === "note" ? "reply" : "note") },
      { id: "claim", label: w("keyClaim"), keys: "Alt + L", pressed: alt("KeyL"), possible: () => client.line.sessions.length > 0, run: () => this.#claim(client.line.sessions[0].sessionId) },
      { id: "search", label: w("keySearch"), keys: "Alt + S", pressed: alt("KeyS"), run: () => this.#toSearch() },
      { id: "transfer", label: w("keyTransfer"), keys: "Alt + T", pressed: alt("KeyT"), possible: open, run: () => this.#toTransfer() },
      { id: "palette", label: w("keyPalette"), keys: "Ctrl + K", pressed: ctrl("k"), run: () => this.#palette.open() },
      { id: "help", label: w("keyHelp"), keys: "Ctrl + /", pressed: ctrl("/"), run: () => this.#help.open(this.#commands) },
      { id: "end", label: w("end"), possible: open, run: () => this.#endSession() },
      { id: "online", label: w("goOnline"), possible: () => !online(), run: () => this.#do(() => client.online({ maxSessions: this.#availability.cap })) },
      { id: "offline", label: w("goOffline"), possible: online, run: () => this.#do(() => client.offline({})) },
      { id: "requeue", label: w("goOfflineRequeue"), possible: online, run: () => this.#do(() => client.offline({ requeue: true })) },
      { id: "canned", label: w("cannedManage"), run: () => this.#cannedDialog.open() },
      { id: "dismiss-all", label: w("dismissAll"), possible: () => this.#ended.any, run: () => this.#dismissAll() },
      { id: "sign-out", label: w("signOut"), run: () => this.#signOut() },
    ];
  }

  /** What the palette offers: the commands that can be run now, then everybody to go to. @returns {Command[]} */
  #possible() {
    const commands = this.#commands.filter(({ id, possible }) => id !== "palette" && (possible?.() ?? true));
    const sessions = this.#sessions.order.map((sessionId) => ({
      id: `go-${sessionId}`,
      label: w("goTo", { name: visitorName(this.#client.sessions.get(sessionId)?.userInfo, sessionId) }),
      run: () => this.select(sessionId),
    }));
    return [...commands, ...sessions];
  }

  /** @param {number} by */
  #step(by) {
    const { order } = this.#sessions;
    if (order.length === 0) return;
    const at = order.indexOf(this.#selected ?? "");
    this.select(order[at < 0 ? (by > 0 ? 0 : order.length - 1) : (at + by + order.length) % order.length]);
  }

  #write() {
    this.#showPane("talk");
    this.#compose.focus();
  }

  #toSearch() {
    this.#showPane("list");
    this.#search.focus();
  }

  #toTransfer() {
    this.#showPane("details");
    this.#transfer.toggle.click();
  }

  #dismissAll() {
    if (this.#session?.status === "ended") this.#leave();
    this.#ended.dismissAll();
  }

  /** @param {() => Promise<unknown>} act @param {Record<string, string>} [own] words for refusals that mean something special here */
  async #do(act, own = {}) {
    this.#say("");
    try {
      await act();
      return true;
    } catch (error) {
      this.#say(refusal(error, own, { max: this.#client.limits.maxChars }));
      return false;
    }
  }

  /** @param {string} text */
  #say(text) {
    this.#sending &&= text !== "";
    this.#notice.textContent = text;
    this.#notice.hidden = text === "";
    this.#tell("");
  }

  /** @param {string} text */
  #tell(text) {
    this.#news.textContent = text;
    this.#news.hidden = text === "";
  }
}
