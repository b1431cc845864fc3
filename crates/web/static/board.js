// The supervisor's board: figures of now, everybody who waits, live sessions to look into unnoticed.
import { w } from "./console-strings.js";
import { Explain } from "./board-explain.js";
import { Figures } from "./board-figures.js";
import { LiveSessions } from "./board-live.js";
import { Bar } from "./desk-bar.js";
import { CannedBook } from "./desk-canned.js";
import { CannedDialog } from "./desk-canned-dialog.js";
import { everySecond, serverNow, setClock } from "./desk-clock.js";
import { Compose } from "./desk-compose.js";
import { Conversation } from "./desk-conversation.js";
import { HelpDialog, Palette, alt, ctrl, listenForKeys } from "./desk-keys.js";
import { framed, refusal, view, visitorName } from "./desk-kit.js";
import { WaitingLine } from "./desk-lists.js";
import { Notes } from "./desk-notes.js";
import { Search } from "./desk-search.js";
import { TransferForm } from "./desk-transfer.js";
import { PastSessions, VisitorPane } from "./desk-visitor.js";
import { el } from "./dom.js";

/**
 * @typedef {import("./client.js").Client} Client
 * @typedef {import("./client.js").Session} Session
 * @typedef {import("./desk-keys.js").Command} Command
 */

export class Board {
  #client;
  /** @type {string | null} */
  #selected = view.get("selected") ?? null;
  /** @type {Session | null} */
  #session = null;
  #position = view.get("position") ?? null;
  #opening = false;
  #update = framed(() => this.#draw());
  /** @type {Command[]} */
  #commands;

  #bar;
  #figures = new Figures();
  #search;
  #live;
  #line;
  #notes;
  #cannedDialog;
  /** @type {Compose} */
  #compose;
  /** @type {Conversation} */
  #conversation;
  #transfer;
  #past;
  #explain;
  #visitor;
  #help = new HelpDialog();
  #palette = new Palette(() => this.#possible());
  #notice = el("p", { className: "notice", role: "alert", hidden: true, "data-testid": "error" });
  #end = el("button", { type: "button", className: "danger", "data-testid": "end", onclick: () => this.#act((sessionId) => this.#client.end({ sessionId })) }, w("end"));
  #overview;
  #panes;
  element;

  /** @param {Client} client @param {import("./desk.js").Host} host */
  constructor(client, host) {
    this.#client = client;
    this.#commands = this.#allCommands(host.signOut);
    this.#search = new Search(client, "all", (session) => this.#look(session), this.#update);
    this.#live = new LiveSessions(client, (session) => this.#look(session));
    this.#line = new WaitingLine(client, null);
    this.#notes = new Notes(client, (sessionId) => sessionId === this.#selected && this.#conversation.updateNotes());
    const canned = new CannedBook(client);
    this.#cannedDialog = new CannedDialog(canned, "team");
    this.#compose = new Compose({
      client,
      canned,
      values: () => ({}),
      manage: () => this.#cannedDialog.open(),
      addNote: (sessionId, content, key) => this.#notes.add(sessionId, content, key),
      dropPlace: () => this.#conversation.element,
      mayReply: false,
      drafted: this.#update,
    });
    this.#conversation = new Conversation({
      client,
      notes: this.#notes,
      compose: this.#compose,
      readOnly: true,
      empty: "",
      back: () => this.#showPane("list"),
      details: () => this.#showPane("details"),
      leave: () => this.#leave(),
    });
    this.#transfer = new TransferForm(() => this.#colleagues(), (target, note) => this.#moveTo(target, note));
    this.#past = new PastSessions(client, (session) => this.#look(session), (session) => {
      this.#visitor.told(session);
      this.#update();
    });
    this.#explain = new Explain(client, (adminId) => this.#figures.nameOf(adminId));
    this.#visitor = new VisitorPane(client, [this.#transfer.toggle, this.#end, this.#transfer.element], this.#past.element);
    this.#bar = new Bar(client, host.name, {
      title: w("board"),
      notifies: false,
      palette: () => this.#palette.open(),
      canned: () => this.#cannedDialog.open(),
      help: () => this.#help.open(this.#commands),
      signOut: host.signOut,
      speak: host.speak,
    });
    const toBoard = el("button", { type: "button", className: "flat only-narrow", "data-testid": "to-board", onclick: () => this.#showPane("talk") }, w("toBoard"));
    const toLists = el("button", { type: "button", className: "flat only-narrow", "data-testid": "to-lists", onclick: () => this.#showPane("list") }, w("toLists"));
    const left = el("div", { className: "pane lists" }, toBoard, this.#search.element, this.#search.results, this.#live.element, this.#line.element);
    this.#overview = el("section", { className: "pane overview", "aria-label": w("figures") }, toLists, this.#figures.element);
    const toTalk = el("button", { type: "button", className: "flat not-wide", "data-testid": "to-talk", onclick: () => this.#showPane("talk") }, w("toTalk"));
    const right = el("aside", { className: "pane details", "aria-label": w("visitorPane") }, toTalk, this.#explain.element, this.#visitor.element);
    this.#panes = el("main", { className: "panes", "data-testid": "panes" }, left, this.#overview, this.#conversation.element, right);
    this.element = el("div", { className: "desk" }, this.#bar.element, this.#notice, this.#panes, this.#cannedDialog.element, this.#help.element, this.#palette.element);
    this.#listen();
    this.#showPane(view.get("pane") ?? "talk");
    this.#draw();
  }

  #listen() {
    const client = this.#client;
    client.on("chat.connected", ({ serverTime }) => setClock(serverTime));
    client.on("state", ({ state }) => state === "ready" && this.#subscribe());
    for (const type of ["state", "change", "sessions", "line"]) client.on(type, this.#update);
    client.on("chat.board", (data) => this.#told(data));
    client.on("error", (error) => this.#say(refusal(error)));
    everySecond(() => {
      this.#figures.tick();
      this.#line.tick();
    });
    listenForKeys(this.#commands);
    addEventListener("pagehide", () => view.set("position", this.#conversation.position));
  }

  async #subscribe() {
    // After a reconnect the client library subscribes again by itself; asking twice is harmless.
    await this.#do(() => this.#client.board());
    if (this.#selected && !this.#client.sessions.has(this.#selected)) await this.#reopen(this.#selected);
  }

  /** @param {Omit<import("./board-figures.js").BoardData, "time"> & {time?: number}} data */
  #told(data) {
    this.#figures.update({ ...data, time: data.time ?? serverNow() });
    // The figures changed, so somebody came, went or was assigned: the lists are read anew.
    this.#live.refresh();
    this.#client.queue().catch(() => {});
  }

  #draw() {
    const searching = this.#search.query !== "";
    this.#live.element.hidden = this.#line.element.hidden = searching;
    this.#line.update();
    this.#live.mark(this.#selected);
    const session = this.#client.sessions.get(this.#selected ?? "") ?? null;
    if (session !== this.#session) {
      this.#session = session;
      this.#conversation.show(session, this.#position);
      this.#position = null;
    } else this.#conversation.update();
    this.#conversation.element.hidden = session === null;
    this.#overview.hidden = session !== null;
    this.#panes.dataset.looking = String(session !== null);
    if (!session) return;
    this.#visitor.update(session);
    this.#explain.show(session);
    this.#past.show(session.sessionId);
    this.#notes.look(session.sessionId);
    this.#end.hidden = session.status === "ended";
    this.#transfer.toggle.hidden = session.status !== "active";
    if (session.status !== "active") this.#transfer.close();
  }

  /** @param {"list" | "talk" | "details"} pane */
  #showPane(pane) {
    this.#panes.dataset.pane = pane;
    view.set("pane", pane);
  }

  /** Looks into a session, and follows it while it lasts. @param {any} entry as listed */
  async #look(entry) {
    const { sessionId } = entry;
    if (this.#opening || sessionId === this.#selected) return this.#showPane("talk");
    this.#opening = true;
    try {
      if (!(await this.#do(() => this.#open(entry)))) return;
      this.#forget();
      this.#selected = sessionId;
      view.set("selected", sessionId);
      this.#transfer.reset();
      this.#showPane("talk");
      this.#draw();
      this.#conversation.focusHeading();
    } finally {
      this.#opening = false;
    }
  }

  /** @param {any} entry */
  async #open(entry) {
    await this.#client.open(entry);
    if (entry.status !== "ended") await this.#client.watch({ sessionId: entry.sessionId });
  }

  /** After a reload. @param {string} sessionId */
  async #reopen(sessionId) {
    const found = await this.#client.listSessions({ scope: "visitor", sessionId }).catch(() => null);
    const entry = found?.sessions.find((session) => session.sessionId === sessionId);
    if (entry && (await this.#do(() => this.#open(entry)))) return this.#update();
    if (this.#client.state === "ready") this.#leave();
  }

  #leave() {
    this.#forget();
    this.#selected = null;
    view.set("selected", null);
    this.#showPane("talk");
    this.#draw();
  }

  #forget() {
    const sessionId = this.#selected;
    if (!sessionId) return;
    // It has ended by itself where it is not watched any more.
    this.#client.unwatch({ sessionId }).catch(() => {});
    this.#client.forget(sessionId);
  }

  async #colleagues() {
    const { agents } = await this.#client.agents();
    return agents.filter((/** @type {any} */ { status, adminId }) => status === "online" && adminId !== this.#session?.agentInfo?.adminId);
  }

  /** @param {string} targetAdminId @param {string} note */
  async #moveTo(targetAdminId, note) {
    if (await this.#act((sessionId) => this.#client.transfer({ sessionId, targetAdminId, ...(note ? { note } : {}) }))) this.#transfer.reset();
  }

  /** @param {() => void} signOut @returns {Command[]} */
  #allCommands(signOut) {
    const looking = () => this.#session !== null;
    return [
      { id: "search", label: w("keySearch"), keys: "Alt + S", pressed: alt("KeyS"), run: () => this.#toSearch() },
      { id: "next", label: w("keyNextLive"), keys: "Alt + ↓", pressed: alt("ArrowDown"), run: () => this.#step(1) },
      { id: "previous", label: w("keyPreviousLive"), keys: "Alt + ↑", pressed: alt("ArrowUp"), run: () => this.#step(-1) },
      { id: "compose", label: w("keyNote"), keys: "Alt + N", pressed: alt("KeyN"), possible: looking, run: () => this.#compose.focus() },
      { id: "board", label: w("keyBoard"), keys: "Alt + B", pressed: alt("KeyB"), possible: looking, run: () => this.#leave() },
      { id: "palette", label: w("keyPalette"), keys: "Ctrl + K", pressed: ctrl("k"), run: () => this.#palette.open() },
      { id: "help", label: w("keyHelp"), keys: "Ctrl + /", pressed: ctrl("/"), run: () => this.#help.open(this.#commands) },
      { id: "canned", label: w("cannedManage"), run: () => this.#cannedDialog.open() },
      { id: "sign-out", label: w("signOut"), run: signOut },
    ];
  }

  /** @returns {Command[]} */
  #possible() {
    const commands = this.#commands.filter(({ id, possible }) => id !== "palette" && (possible?.() ?? true));
    const sessions = this.#live.sessions.map((session) => ({
      id: `go-${session.sessionId}`,
      label: w("goTo", { name: visitorName(session.userInfo, session.sessionId) }),
      run: () => this.#look(session),
    }));
    return [...commands, ...sessions];
  }

  /** @param {number} by */
  #step(by) {
    const { sessions } = this.#live;
    if (sessions.length === 0) return;
    const at = sessions.findIndex(({ sessionId }) => sessionId === this.#selected);
    this.#look(sessions[at < 0 ? (by > 0 ? 0 : sessions.length - 1) : (at + by + sessions.length) % sessions.length]);
  }

  #toSearch() {
    this.#showPane("list");
    this.#search.focus();
  }

  /** @param {(sessionId: string) => Promise<unknown>} act */
  #act(act) {
    const sessionId = this.#selected;
    return sessionId ? this.#do(() => act(sessionId)) : Promise.resolve(false);
  }

  /** @param {() => Promise<unknown>} act */
  async #do(act) {
    this.#say("");
    try {
      await act();
      return true;
    } catch (error) {
      this.#say(refusal(error));
      return false;
    }
  }

  /** @param {string} text */
  #say(text) {
    this.#notice.textContent = text;
    this.#notice.hidden = text === "";
  }
}
