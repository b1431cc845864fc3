// A gateway played by the test: a fake socket, mocked timers, no network.
import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";

// The modules as they are written, or, with KEFU_CLIENT, what is served of them.
export const { ChatError, connect } = await import(process.env.KEFU_CLIENT ?? "../static/client.js");

/** @type {FakeSocket[]} */
export let sockets = [];

export class FakeSocket {
  readyState = 0;
  /** @type {{event: string, payload: any, ref?: string}[]} */
  sent = [];

  constructor(url) {
    this.url = url;
    sockets.push(this);
  }

  send(text) {
    assert.equal(this.readyState, 1, "sent on a socket that is not open");
    this.sent.push(JSON.parse(text));
  }

  close() {
    this.readyState = 3;
  }

  /** The server accepts the connection. */
  accept() {
    this.readyState = 1;
    this.onopen?.();
  }

  say(event, payload = {}, ref) {
    this.onmessage?.({ data: JSON.stringify({ event, payload, ref }) });
  }

  cut(code = 1006) {
    this.readyState = 3;
    this.onclose?.({ code });
  }

  frames(event) {
    return this.sent.filter((frame) => frame.event === event);
  }

  last(event) {
    return this.frames(event).at(-1);
  }

  reply(event, payload, to = event) {
    this.say(event, payload, this.last(to).ref);
  }
}

beforeEach(() => {
  sockets = [];
  mock.timers.enable({ apis: ["setTimeout", "Date"], now: 1_800_000_000_000 });
});

afterEach(() => mock.timers.reset());

/** Lets all promises that can go on go on. */
export const settle = () => new Promise((resolve) => setImmediate(resolve));
export const socket = () => sockets.at(-1);
export const token = (sub, role) => `h.${Buffer.from(JSON.stringify({ sub, role })).toString("base64url")}.s`;
export const text = (seq, senderType = "agent", more = {}) => ({ msgId: `m${seq}`, sessionId: "s1", senderType, seq, content: `text ${seq}`, msgType: "text", time: seq, ...more });
export const range = (from, to, ...rest) => Array.from({ length: to - from + 1 }, (_, index) => text(from + index, ...rest));
export const active = (lastSeq, more = {}) => ({ sessionId: "s1", status: "active", agentInfo: { adminId: "a1", name: "Ann" }, lastSeq, agentsOnline: true, ...more });
export const seqs = (store) => store.messages.map((message) => message.seq);
/** The server stores what was sent last. */
export async function stored(seq) {
  const { payload, ref } = socket().last("chat.message.send");
  socket().say("chat.message.server_ack", { clientMsgId: payload.clientMsgId, msgId: `m${seq}`, seq, time: seq, status: "pending" }, ref);
  await settle();
}
export const contents = (frames) => frames.map((frame) => frame.payload.content);

export async function open(options = {}) {
  const client = connect({ url: "ws://chat.test/ws", token: token("u1", "user"), WebSocket: FakeSocket, random: () => 0.5, ...options });
  await settle();
  socket().accept();
  return client;
}

/** A visitor in an active session whose messages up to `lastSeq` are all loaded. */
export async function chatting(lastSeq = 0, options = {}) {
  const client = await open(options);
  socket().reply("chat.connected", { sessionId: "s1", session: active(lastSeq), unread: [], hasMore: false }, "chat.connect");
  if (lastSeq > 0) socket().reply("chat.history", { sessionId: "s1", messages: range(1, lastSeq, "agent", { status: "read" }), hasMore: false });
  await settle();
  return client;
}

/** Cuts the connection and brings the next one to `open`. */
export async function cutAndReopen(code) {
  socket().cut(code);
  mock.timers.tick(30_000);
  await settle();
  socket().accept();
}
