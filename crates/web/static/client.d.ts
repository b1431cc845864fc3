/** The client library of kefu (`/client.js`). Events and payloads are those of docs/protocol.md. */

export type Role = "user" | "agent" | "supervisor";
export type State = "connecting" | "ready" | "reconnecting" | "closed";
export type SessionStatus = "waiting" | "active" | "ended";
/** `failed`: refused for good, not stored. */
export type MessageState = "sending" | "stored" | "delivered" | "read" | "failed";

export interface AgentInfo {
  adminId: string;
  name: string;
  avatar?: string;
}

export interface UserInfo {
  userId: string;
  name: string;
  avatar?: string;
  /** Minor units. */
  balance?: number;
  vip?: unknown;
}

export interface Message {
  /** Absent until stored. */
  msgId?: string;
  /** Position in the session, from 1; absent until stored. */
  seq?: number;
  /** The idempotency key; only on one's own messages. */
  clientMsgId?: string;
  sessionId: string;
  senderType: "user" | "agent" | "system" | "bot";
  senderId?: string;
  msgType: "text" | "image";
  /** Text, or the address of an image (see `imageUrl`). */
  content: string;
  /** Unix milliseconds: the server's once stored, else when it was written. */
  time?: number;
  state: MessageState;
  /** From the other side. */
  incoming: boolean;
  /** Why it failed: a code of docs/protocol.md. */
  error?: string;
  /** Grows with every change of this message. */
  rev: number;
}

/** A message as the server lists and pushes it. */
export interface WireMessage {
  msgId: string;
  sessionId: string;
  senderType: Message["senderType"];
  senderId?: string;
  msgType: Message["msgType"];
  content: string;
  time: number;
  seq: number;
  clientMsgId?: string;
  attempt?: number;
  status?: "pending" | "delivered" | "read" | "failed";
}

/** A session as the server describes it. */
export interface SessionObject {
  sessionId: string;
  status: SessionStatus;
  agentInfo: AgentInfo | null;
  lastSeq: number;
  position?: number;
  total?: number;
  agentsOnline: boolean;
  startedAt: number;
  endedAt?: number;
  rating?: number;
  /** What the visitor said with it; agents only. */
  ratingContent?: string;
  userInfo?: UserInfo;
  source?: string;
  unreadCount?: number;
  note?: string;
  lastMessage?: { seq: number; senderType: Message["senderType"]; msgType?: Message["msgType"]; content: string; time: number } | null;
}

export interface Page {
  url: string;
  title?: string;
  language?: string;
}

/** One session, kept equal to the server's; `change` tells of every change. */
export interface Session extends Partial<Omit<SessionObject, "sessionId" | "status" | "agentInfo" | "lastSeq" | "unreadCount" | "position" | "total">> {
  readonly sessionId: string;
  readonly status: SessionStatus;
  readonly agentInfo: AgentInfo | null;
  /** Place in the waiting line; 1 is next. */
  readonly position?: number | null;
  readonly total?: number | null;
  /** Nobody is online: what is written now is left as a message. */
  readonly offline: boolean;
  /** The server's words for that; may be empty. */
  readonly offlineMessage: string;
  /** The other side is typing. */
  readonly typing: boolean;
  /** Messages of the other side above the read cursor. */
  readonly unreadCount: number;
  /** The other side's messages up to this `seq` are read. */
  readonly readUpTo: number;
  /** Opened to look at: no receipts are sent. */
  readonly readOnly: boolean;
  /** The highest `seq` known to exist, whether loaded or not. */
  readonly lastSeq: number;
  /** There are messages before the loaded ones (`loadOlder`). */
  readonly hasOlder: boolean;
  /** The visitor's page, as an agent hears of it. */
  readonly page?: Page;
  /** Loaded messages by `seq`, then the unsent ones in the order they were written. */
  readonly messages: Message[];
}

export interface Availability {
  status: "online" | "offline";
  maxSessions: number;
  activeSessions: number;
}

export interface Agent extends Availability {
  adminId: string;
  name: string;
}

export interface WaitingLine {
  sessions: { sessionId: string; userInfo: UserInfo; waitingSince: number; position: number }[];
  total: number;
  /** An older list never replaces a newer one. */
  version: number;
}

export interface Note {
  noteId: string;
  sessionId: string;
  adminId: string;
  name: string;
  content: string;
  time: number;
  clientMsgId?: string;
}

export interface CannedReply {
  id: string;
  shortcut: string;
  title: string;
  content: string;
  scope: "mine" | "team";
}

export interface Board {
  time?: number;
  waiting: number;
  longestWaitMs: number;
  agents: Agent[];
  /** The last 60 minutes, oldest first. */
  arrivalsPerMinute: number[];
  firstResponseMs: { p50: number | null; p90: number | null };
}

export interface HistoryPage {
  sessionId: string;
  /** Ascending by `seq`. */
  messages: WireMessage[];
  hasMore: boolean;
}

export interface Unsent {
  clientMsgId: string;
  sessionId: string;
  msgType: Message["msgType"];
  content: string;
  time: number;
  /** Set when it was refused for good. */
  error?: string;
}

/** Keeps unsent messages over a reload. What throws or rejects costs only the keeping. */
export interface KeptStorage {
  /** All entries of a person, in the order of their `clientMsgId`. */
  all(owner: string): Unsent[] | Promise<Unsent[]>;
  put(owner: string, entry: Unsent): unknown;
  delete(owner: string, clientMsgId: string): unknown;
  /** Everything of everybody. */
  clear?(owner: string): unknown;
}

export interface ConnectOptions {
  /** Address of the gateway, or of its socket (default: where this module came from). */
  url?: string;
  /** A fixed token; without `getToken` an expired one ends the connection. */
  token?: string;
  /** `refresh`: the last one was refused or ran out. */
  getToken?: (ask: { refresh: boolean }) => string | Promise<string>;
  /** Where the person comes from, shown to agents. */
  source?: string;
  /** Role in the token (default: read from the token). */
  role?: Role;
  /** Language of the server's own texts. */
  locale?: string;
  /** Default: IndexedDB where there is one and it is allowed; `null`: memory only. */
  storage?: KeptStorage | null;
  /** For platforms without one (Node 20). */
  WebSocket?: typeof globalThis.WebSocket;
  /** Uniform in [0, 1), for the jitter. */
  random?: () => number;
}

/**
 * A refusal by the server, or `disconnected` (the connection went before the answer came), `cancelled` (an upload).
 * `code` is stable text (docs/protocol.md, "Errors and close codes"); `message` is for logs, not for people.
 */
export class ChatError extends Error {
  code: string;
  /** How long to wait before the same may be tried again, in milliseconds. */
  retryAfterMs?: number;
  /** What the server's log calls this refusal. */
  traceId?: string;
  /** The message that was refused, where the frame was a send. */
  clientMsgId?: string;
  /** The attempt was only not acknowledged: repeating it with the same key is always safe. */
  readonly retryable: boolean;
}

/** The payload of each event; every other server frame comes under its own name, too. */
export interface Events {
  state: { state: State; reason?: number | string };
  /** This session changed. */
  change: Session;
  /** A session came or went. */
  sessions: undefined;
  agent: Availability;
  line: WaitingLine;
  /** A refusal that nobody waits for: a connect or a send that will be tried again. */
  error: ChatError;
  "chat.connected": { sessionId: string | null; session?: SessionObject; sessions?: SessionObject[]; unread: WireMessage[]; hasMore: boolean; role: Role; serverTime: number };
  "chat.message.new": WireMessage;
  "chat.message.server_ack": { clientMsgId: string; msgId: string; status: string; seq: number; time: number; duplicate?: boolean };
  "chat.message.peer_ack": { msgId: string; sessionId: string; seq: number; status: "delivered" | "read" | "failed" };
  "chat.typing": { sessionId: string; isTyping: boolean };
  "chat.session.assigned": { sessionId: string; agentInfo: AgentInfo };
  "chat.session.ended": { sessionId: string; endedBy?: unknown; time?: number };
  "chat.session.requeued": { sessionId: string; reason: string };
  "chat.session.rated": { sessionId: string; rating: number; content: string; time: number };
  "chat.session.read": { sessionId: string; seq: number };
  "chat.session.new": { sessionId: string; userInfo: UserInfo; source: string; unread?: number; lastSeq?: number; note?: string };
  "chat.session.removed": { sessionId: string; reason: "transferred" | "requeued"; targetAdminId?: string };
  "chat.session.transferred": { sessionId: string; targetAdminId: string };
  "chat.offline_notice": { message: string };
  "chat.queue.position": { sessionId: string; position: number; total: number };
  "chat.queue.list": WaitingLine;
  "chat.agent.status": Availability;
  "chat.agent.list": { agents: Agent[] };
  "chat.history": HistoryPage;
  "chat.note.new": Note;
  "chat.board": Board;
  "chat.page": Page & { sessionId: string };
  "chat.pong": { serverTime?: number };
  "chat.error": { code: string; message: string; retryAfterMs?: number; traceId?: string };
}

/** One person's connection and all of their sessions. Every server frame is dispatched under its own name with `detail` = its payload. */
export interface Client extends EventTarget {
  readonly state: State;
  /** Why the state is `closed`: a close code or an error code. */
  readonly reason: number | string | undefined;
  /** `sub` and `role` of the token. */
  readonly me: { id: string; role: Role };
  readonly limits: { maxChars: number; maxUploadBytes: number; page: number };
  /** The user's own session: the open one, else the latest; null for agents. */
  readonly current: Session | null;
  readonly sessions: ReadonlyMap<string, Session>;
  /** An agent's own availability; null until it is known. */
  readonly agent: Availability | null;
  /** The waiting line as agents and supervisors see it. */
  readonly line: WaitingLine;

  /** Listens; gives the function that ends it. */
  on<E extends keyof Events>(type: E, listener: (detail: Events[E]) => void): () => void;
  on(type: string, listener: (detail: any) => void): () => void;

  /** Starts again after a terminal close; cuts an open connection. */
  reconnect(): Promise<void>;
  /** Ends the connection, not the session. */
  close(): void;
  /** Logging out: closes, and removes all that was kept. */
  clear(): Promise<void>;
  /** Looks at once whether the connection still lives. */
  check(): void;
  /** Sends a frame and gives the payload of its direct reply. */
  request(event: string, payload?: object): Promise<any>;
  /** Sends a frame; false when there is no connection that would take it. */
  post(event: string, payload?: object): boolean;

  /** The visitor asks for somebody: opens a session, or gives the open one. Connecting alone opens none. */
  consult(): Promise<Session>;
  /**
   * Sends a message. It is in the session's `messages` at once; the promise gives it when it is stored and rejects
   * when it was refused for good. Meanwhile it is kept and sent again under the same key as often as it takes. A
   * message that failed holds back the later ones of its session until it is retried or discarded.
   */
  send(draft: { sessionId?: string; content: string; msgType?: Message["msgType"] }): Promise<Message>;
  /** Sends a failed message again under its own key; for one that is under way, looks whether the connection lives. */
  retry(message: Message): void;
  /** Gives up a failed message. */
  discard(message: Message): void;
  /** Says that the person has had this message, and all before it, on screen. */
  markRead(sessionId: string, msgId: string): void;
  /** Call on every key stroke; sent at most every 3 s, ended after 5 s of silence. */
  typing(sessionId: string, isTyping?: boolean): void;
  /** Loads the page before the oldest loaded message. */
  loadOlder(sessionId: string): Promise<void>;
  /** An expired image link is signed anew by reading its message again. */
  refresh(message: Message): Promise<unknown>;
  /** Opens a session that is not among the open ones, to look at (an ended one, or one that is watched). */
  open(session: string | (Partial<SessionObject> & { sessionId: string })): Promise<Session>;
  /** Forgets a session that is over. */
  forget(sessionId: string): void;
  /** Stores an image and gives its address, which `send({msgType: "image"})` takes as content. */
  upload(file: Blob, options?: { sessionId?: string; onProgress?: (share: number) => void; signal?: AbortSignal }): Promise<{ url: string; mimeType: string; size: number; width: number; height: number }>;
  /** Absolute address of an image message, or null when it is not a web address. */
  imageUrl(content: string): string | null;
  /** Tells the agent which page the visitor is on; said again to whoever comes later. `chat.page` */
  page(page: Page): void;

  /** `chat.session.end` */
  end(payload: { sessionId: string }): Promise<Events["chat.session.ended"]>;
  /** `chat.session.rate`; `rating` 1–5 */
  rate(payload: { sessionId: string; rating: number; content?: string }): Promise<Events["chat.session.rated"]>;
  /** `chat.agent.online` */
  online(payload: { maxSessions: number }): Promise<Availability>;
  /** `chat.agent.offline` */
  offline(payload?: { requeue?: boolean }): Promise<Availability>;
  /** `chat.session.transfer` */
  transfer(payload: { sessionId: string; targetAdminId: string; note?: string }): Promise<Events["chat.session.transferred"]>;
  /** `chat.session.claim` */
  claim(payload: { sessionId: string }): Promise<Events["chat.session.new"]>;
  /** `chat.agent.list` */
  agents(): Promise<{ agents: Agent[] }>;
  /** `chat.queue.list` */
  queue(): Promise<WaitingLine>;
  /** `chat.history`; merged into the session, where it is known */
  history(payload: { sessionId: string; afterSeq?: number; beforeSeq?: number; limit?: number }): Promise<HistoryPage>;
  /** `chat.note.add`; never seen by users */
  addNote(payload: { sessionId: string; content: string; clientMsgId?: string }): Promise<Note>;
  /** `chat.note.list` */
  notes(payload: { sessionId: string; before?: string; limit?: number }): Promise<{ notes: Note[]; hasMore: boolean }>;
  /** `chat.canned.list` */
  canned(payload?: { query?: string; cursor?: string; limit?: number }): Promise<{ items: CannedReply[]; nextCursor?: string | null }>;
  /** `chat.canned.put`; without `id` it is new */
  putCanned(item: Omit<CannedReply, "id"> & { id?: string }): Promise<{ item: CannedReply }>;
  /** `chat.canned.delete` */
  deleteCanned(payload: { id: string }): Promise<{ id: string }>;
  /** `chat.sessions.list` */
  listSessions(payload: { scope: "visitor" | "mine" | "all"; sessionId?: string; query?: string; cursor?: string; limit?: number }): Promise<{ sessions: SessionObject[]; nextCursor: string | null }>;
  /** `chat.session.watch`: its frames, read-only (`open` it to have them merged); repeated by itself after a reconnect */
  watch(payload: { sessionId: string }): Promise<{ session?: SessionObject }>;
  /** `chat.session.unwatch` */
  unwatch(payload: { sessionId: string }): Promise<unknown>;
  /** `chat.board`; pushed as event `chat.board`; repeated by itself after a reconnect */
  board(payload?: { subscribe?: boolean }): Promise<Board>;
  /** `chat.assignment.explain` */
  explain(payload: { sessionId: string }): Promise<{ records: any[] }>;
}

/** Connects and stays connected until `close()`. Nobody is put into the waiting line by that: only `consult()` opens a session. */
export function connect(options: ConnectOptions): Client;
