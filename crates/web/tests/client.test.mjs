// The client library against a gateway played by the test: a fake socket, mocked timers, no network.
import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { ChatError, connect } from "../static/client.js";

/** @type {FakeSocket[]} */
let sockets = [];

class FakeSocket {
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
  mock.timers.enable({ apis: ["setTimeout"] });
});

afterEach(() => mock.timers.reset());

/** Lets all promises that can go on go on. */
const settle = () => new Promise((resolve) => setImmediate(resolve));
const socket = () => sockets.at(-1);
const token = (sub, role) => `h.${Buffer.from(JSON.stringify({ sub, role })).toString("base64url")}.s`;
const text = (seq, senderType = "agent", more = {}) => ({ msgId: `m${seq}`, sessionId: "s1", senderType, seq, content: `text ${seq}`, msgType: "text", time: seq, ...more });
const range = (from, to, ...rest) => Array.from({ length: to - from + 1 }, (_, index) => text(from + index, ...rest));
const active = (lastSeq, more = {}) => ({ sessionId: "s1", status: "active", agentInfo: { adminId: "a1", name: "Ann" }, lastSeq, agentsOnline: true, ...more });
const seqs = (store) => store.messages.map((message) => message.seq);
const contents = (frames) => frames.map((frame) => frame.payload.content);

async function open(options = {}) {
  const client = connect({ url: "ws://chat.test/ws", token: token("u1", "user"), WebSocket: FakeSocket, random: () => 0.5, ...options });
  await settle();
  socket().accept();
  return client;
}

/** A visitor in an active session whose messages up to `lastSeq` are all loaded. */
async function chatting(lastSeq = 0, options = {}) {
  const client = await open(options);
  socket().reply("chat.connected", { sessionId: "s1", session: active(lastSeq), unread: [], hasMore: false }, "chat.connect");
  if (lastSeq > 0) socket().reply("chat.history", { sessionId: "s1", messages: range(1, lastSeq, "agent", { status: "read" }), hasMore: false });
  await settle();
  return client;
}

/** Cuts the connection and brings the next one to `open`. */
async function cutAndReopen(code) {
  socket().cut(code);
  mock.timers.tick(30_000);
  await settle();
  socket().accept();
}

test("connecting resumes; only the visitor's act consults", async () => {
  const client = await open({ source: "shop" });
  assert.equal(socket().url, "ws://chat.test/ws");
  const first = socket().last("chat.connect").payload;
  assert.deepEqual({ intent: first.intent, source: first.source }, { intent: "resume", source: "shop" });
  socket().reply("chat.connected", { sessionId: null, session: null, unread: [] }, "chat.connect");
  assert.equal(client.current, null);

  const consulting = client.consult();
  assert.equal(socket().last("chat.connect").payload.intent, "consult");
  socket().reply("chat.connected", { sessionId: "s1", session: active(0) }, "chat.connect");
  assert.equal((await consulting).sessionId, "s1");

  await cutAndReopen();
  assert.equal(socket().last("chat.connect").payload.intent, "resume");
  client.close();
});

test("a consult whose answer was lost is asked again", async () => {
  const client = await open();
  socket().reply("chat.connected", { sessionId: null, session: null }, "chat.connect");
  const consulting = client.consult();
  await cutAndReopen();
  assert.equal(socket().last("chat.connect").payload.intent, "consult");
  socket().reply("chat.connected", { sessionId: "s1", session: active(0) }, "chat.connect");
  assert.equal((await consulting).sessionId, "s1");
  client.close();
});

test("an unacknowledged message goes out again under its own key (B50)", async () => {
  const client = await chatting();
  const sent = client.send({ content: "hello" });
  const key = socket().last("chat.message.send").payload.clientMsgId;
  assert.equal(client.current.messages[0].state, "sending");

  await cutAndReopen();
  assert.equal(socket().frames("chat.message.send").length, 0, "nothing is sent before the answer to connect");
  socket().reply("chat.connected", { sessionId: "s1", session: active(1) }, "chat.connect");
  assert.equal(socket().last("chat.message.send").payload.clientMsgId, key);
  socket().reply("chat.message.server_ack", { clientMsgId: key, msgId: "m1", status: "pending", seq: 1, time: 1, duplicate: true }, "chat.message.send");
  const message = await sent;
  assert.deepEqual([message.msgId, message.seq, message.state], ["m1", 1, "stored"]);
  assert.deepEqual(seqs(client.current), [1]);

  await cutAndReopen();
  socket().reply("chat.connected", { sessionId: "s1", session: active(1) }, "chat.connect");
  assert.equal(socket().frames("chat.message.send").length, 0, "what is acknowledged is never sent again");
  client.close();
});

test("history that overtakes an acknowledgement does not show a message twice", async () => {
  const client = await chatting();
  client.send({ content: "hello" });
  const key = socket().last("chat.message.send").payload.clientMsgId;
  socket().say("chat.message.new", text(1, "user", { content: "hello" }));
  socket().say("chat.message.server_ack", { clientMsgId: key, msgId: "m1", status: "pending", seq: 1 });
  assert.deepEqual(client.current.messages.map(({ msgId, clientMsgId }) => [msgId, clientMsgId]), [["m1", key]]);
  client.close();
});

test("a push that comes again is shown once and acknowledged again", async () => {
  const client = await chatting();
  socket().say("chat.message.new", text(1));
  socket().say("chat.message.new", text(1, "agent", { attempt: 2 }));
  assert.deepEqual(seqs(client.current), [1]);
  assert.equal(client.current.unreadCount, 1);
  assert.deepEqual(socket().frames("chat.message.ack").map(({ payload }) => payload), [{ msgId: "m1", status: "delivered" }, { msgId: "m1", status: "delivered" }]);
  client.close();
});

test("a gap in seq pulls history until nothing is missing, page after page", async () => {
  const client = await chatting(2);
  socket().say("chat.message.new", text(104));
  assert.deepEqual(socket().last("chat.history").payload, { sessionId: "s1", limit: 50, afterSeq: 2 });
  socket().reply("chat.history", { sessionId: "s1", messages: range(3, 52), hasMore: true });
  await settle();
  assert.equal(socket().last("chat.history").payload.afterSeq, 52);
  socket().reply("chat.history", { sessionId: "s1", messages: range(53, 102), hasMore: true });
  await settle();
  socket().say("chat.message.new", text(105));
  assert.equal(socket().last("chat.history").payload.afterSeq, 102);
  socket().reply("chat.history", { sessionId: "s1", messages: range(103, 105), hasMore: false });
  await settle();
  assert.deepEqual(seqs(client.current), Array.from({ length: 105 }, (_, index) => index + 1));
  assert.equal(socket().frames("chat.history").length, 4);
  client.close();
});

test("a visitor resumes from the last seq without a gap", async () => {
  const client = await chatting(3);
  socket().say("chat.message.new", text(5));
  await cutAndReopen();
  const { sessionId, lastSeq } = socket().last("chat.connect").payload;
  assert.deepEqual({ sessionId, lastSeq }, { sessionId: "s1", lastSeq: 3 });
  socket().reply("chat.connected", { sessionId: "s1", session: active(6), unread: [text(4), text(5), text(6)], hasMore: false }, "chat.connect");
  await settle();
  assert.deepEqual(seqs(client.current), [1, 2, 3, 4, 5, 6]);
  const delivered = socket().frames("chat.message.ack").filter(({ payload }) => payload.status === "delivered");
  assert.deepEqual(delivered.map(({ payload }) => payload), [{ msgId: "m6", status: "delivered", cumulative: true }]);
  client.close();
});

test("an agent resumes all sessions, each from its own place", async () => {
  const client = await open({ token: token("a1", "agent") });
  const session = (sessionId, lastSeq) => ({ sessionId, status: "active", lastSeq, userInfo: { userId: `of-${sessionId}`, name: "V" }, unreadCount: 0 });
  socket().reply("chat.connected", { sessionId: null, role: "agent", sessions: [session("s1", 0), session("s2", 2)], unread: [] }, "chat.connect");
  const pulled = socket().last("chat.history");
  assert.deepEqual(pulled.payload, { sessionId: "s2", limit: 50, beforeSeq: 3 });
  socket().say("chat.history", { sessionId: "s2", messages: range(1, 2, "user", { sessionId: "s2" }), hasMore: false }, pulled.ref);
  socket().say("chat.agent.status", { status: "online", activeSessions: 2, maxSessions: 4 });
  await settle();
  assert.deepEqual(client.agent, { status: "online", maxSessions: 4, activeSessions: 2 });

  await cutAndReopen();
  assert.deepEqual(socket().last("chat.connect").payload.lastSeqs, { s1: 0, s2: 2 });
  socket().reply("chat.connected", { sessionId: null, role: "agent", sessions: [session("s2", 2)], unread: [] }, "chat.connect");
  assert.deepEqual([...client.sessions.keys()], ["s2"]);
  client.close();
});

test("after a reload the newest page is shown, earlier ones on demand", async () => {
  const client = await open();
  socket().reply("chat.connected", { sessionId: "s1", session: active(120), unread: [text(119), text(120)], hasMore: false }, "chat.connect");
  assert.deepEqual(socket().last("chat.history").payload, { sessionId: "s1", limit: 50, beforeSeq: 119 });
  socket().reply("chat.history", { sessionId: "s1", messages: range(69, 118, "agent", { status: "read" }), hasMore: true });
  await settle();
  assert.deepEqual([seqs(client.current)[0], client.current.messages.length, client.current.hasOlder], [69, 52, true]);
  const older = client.loadOlder("s1");
  assert.equal(socket().last("chat.history").payload.beforeSeq, 69);
  socket().reply("chat.history", { sessionId: "s1", messages: range(19, 68), hasMore: false });
  await older;
  assert.deepEqual([seqs(client.current)[0], client.current.hasOlder], [19, false]);
  client.close();
});

test("a message refused for load holds back the later ones, and order is kept (M6)", async () => {
  const client = await chatting();
  for (const content of ["one", "two", "three"]) client.send({ content });
  const [one, two, three] = socket().frames("chat.message.send");
  socket().say("chat.message.server_ack", { clientMsgId: one.payload.clientMsgId, msgId: "m1", seq: 1, status: "pending" }, one.ref);
  const refusal = (frame) => socket().say("chat.error", { code: "rate_limited", message: "slow down", retryAfterMs: 400, clientMsgId: frame.payload.clientMsgId }, frame.ref);
  refusal(two);
  refusal(three);
  client.send({ content: "four" });
  assert.equal(socket().frames("chat.message.send").length, 3, "held back");
  mock.timers.tick(399);
  assert.equal(socket().frames("chat.message.send").length, 3);
  mock.timers.tick(1);
  const again = socket().frames("chat.message.send").slice(3);
  assert.deepEqual(contents(again), ["two", "three", "four"]);
  assert.deepEqual(again.slice(0, 2).map(({ payload }) => payload.clientMsgId), [two, three].map(({ payload }) => payload.clientMsgId));
  assert.deepEqual(client.current.messages.map(({ state }) => state), ["stored", "sending", "sending", "sending"]);
  client.close();
});

test("a message refused for good fails, stays, and can be tried again once", async () => {
  const client = await chatting();
  const failing = client.send({ content: "x".repeat(501) });
  client.send({ content: "next" });
  const [first, next] = socket().frames("chat.message.send");
  socket().say("chat.error", { code: "content_too_long", message: "too long" }, first.ref);
  await assert.rejects(failing, (error) => error instanceof ChatError && error.code === "content_too_long");
  socket().say("chat.message.server_ack", { clientMsgId: next.payload.clientMsgId, msgId: "m1", seq: 1, status: "pending" }, next.ref);
  const [, failed] = client.current.messages;
  assert.deepEqual([failed.state, failed.error], ["failed", "content_too_long"]);
  for (let tap = 0; tap < 5; tap++) client.retry(failed);
  assert.equal(socket().frames("chat.message.send").length, 3);
  assert.equal(socket().last("chat.message.send").payload.clientMsgId, first.payload.clientMsgId);
  client.close();
});

test("no answer on a living connection: the same key again", async () => {
  const client = await chatting();
  client.send({ content: "hello" });
  mock.timers.tick(20_000);
  const [first, second] = socket().frames("chat.message.send");
  assert.equal(first.payload.clientMsgId, second.payload.clientMsgId);
  client.close();
});

test("unsent messages outlive the page", async () => {
  const kept = new Map();
  const storage = { getItem: (key) => kept.get(key) ?? null, setItem: (key, value) => kept.set(key, value) };
  const before = await chatting(0, { storage });
  before.send({ content: "written before the reload" });
  const { clientMsgId } = socket().last("chat.message.send").payload;
  before.close();

  const after = await chatting(0, { storage });
  assert.equal(socket().last("chat.message.send").payload.clientMsgId, clientMsgId);
  assert.deepEqual(after.current.messages.map(({ content, state }) => [content, state]), [["written before the reload", "sending"]]);
  after.close();
});

test("storage that throws costs nothing but the keeping (B75)", async () => {
  const forbidden = () => {
    throw new Error("SecurityError");
  };
  const client = await chatting(0, { storage: { getItem: forbidden, setItem: forbidden } });
  client.send({ content: "hello" });
  assert.equal(socket().frames("chat.message.send").length, 1);
  client.close();
});

test("receipts only go forward; a push given up is not a failed message", async () => {
  const client = await chatting();
  client.send({ content: "hello" });
  const { clientMsgId } = socket().last("chat.message.send").payload;
  socket().say("chat.message.peer_ack", { msgId: "m1", sessionId: "s1", status: "delivered" });
  socket().say("chat.message.server_ack", { clientMsgId, msgId: "m1", seq: 1, status: "pending" });
  const [message] = client.current.messages;
  assert.equal(message.state, "delivered", "a receipt may come before the acknowledgement");
  socket().say("chat.message.peer_ack", { msgId: "m1", sessionId: "s1", status: "read" });
  socket().say("chat.message.peer_ack", { msgId: "m1", sessionId: "s1", status: "failed" });
  assert.deepEqual([message.state, message.unanswered], ["read", false]);
  client.close();
});

test("read is said once, cumulatively, and again after a cut", async () => {
  const client = await chatting();
  socket().say("chat.message.new", text(1));
  socket().say("chat.message.new", text(2));
  client.markRead("s1", "m2");
  client.markRead("s1", "m1");
  const reads = () => socket().frames("chat.message.ack").filter(({ payload }) => payload.status === "read");
  assert.deepEqual(reads().map(({ payload }) => payload), [{ msgId: "m2", status: "read", cumulative: true }]);
  assert.equal(client.current.unreadCount, 0);
  await cutAndReopen();
  socket().reply("chat.connected", { sessionId: "s1", session: active(2) }, "chat.connect");
  assert.deepEqual(reads().map(({ payload }) => payload.msgId), ["m2"]);
  client.close();
});

test("heartbeats go out at the server's interval; a missing pong is a lost connection", async () => {
  const client = await open();
  socket().reply("chat.connected", { sessionId: null, session: null, heartbeatIntervalMs: 20_000 }, "chat.connect");
  mock.timers.tick(20_000);
  assert.equal(socket().frames("chat.ping").length, 1);
  socket().say("chat.pong");
  mock.timers.tick(10_000);
  assert.equal(client.state, "ready", "any answer in time keeps it");
  mock.timers.tick(10_000);
  mock.timers.tick(10_000);
  assert.equal(client.state, "reconnecting");
  mock.timers.tick(30_000);
  await settle();
  assert.equal(sockets.length, 2);
  client.close();
});

test("a check finds a dead connection in seconds (B73)", async () => {
  const client = await chatting();
  client.check();
  assert.equal(socket().frames("chat.ping").length, 1);
  mock.timers.tick(5_000);
  assert.equal(client.state, "reconnecting");
  client.check();
  await settle();
  assert.equal(sockets.length, 2, "a check does not wait for the backoff");
  client.close();
});

test("backoff doubles with full jitter to its cap, and is reset only after 30 stable seconds", async () => {
  const client = await open({ random: () => 0.999_999 });
  const waits = [];
  for (let round = 0; round < 9; round++) {
    socket().cut();
    let waited = 0;
    for (const count = sockets.length; sockets.length === count; waited += 250) {
      mock.timers.tick(250);
      await settle();
    }
    waits.push(waited);
    socket().accept();
    socket().reply("chat.connected", { sessionId: null, session: null }, "chat.connect");
  }
  assert.deepEqual(waits, [500, 1000, 2000, 4000, 8000, 16000, 30000, 30000, 30000]);
  mock.timers.tick(30_000);
  socket().cut();
  mock.timers.tick(500);
  await settle();
  assert.equal(sockets.length, 11);
  client.close();
});

for (const code of [1003, 1008, 1009, 4001, 4005]) {
  test(`close ${code} is terminal`, async () => {
    const client = await chatting();
    socket().cut(code);
    mock.timers.tick(120_000);
    await settle();
    assert.deepEqual([client.state, client.reason, sockets.length], ["closed", code, 1]);
    client.reconnect();
    await settle();
    assert.equal(sockets.length, 2, "unless a person asks");
    client.close();
  });
}

for (const code of [1001, 1006, 1012, 4000, 4003, 4004]) {
  test(`close ${code} reconnects`, async () => {
    const client = await chatting();
    await cutAndReopen(code);
    assert.equal(sockets.length, 2);
    client.close();
  });
}

test("an expired token is renewed in place (B87)", async () => {
  const asked = [];
  const getToken = async ({ refresh }) => {
    asked.push(refresh);
    return refresh ? token("u1", "user") + "2" : token("u1", "user");
  };
  const client = await chatting(1, { getToken });
  socket().say("chat.error", { code: "token_expired", message: "expired" });
  await settle();
  assert.equal(sockets.length, 1);
  const { payload } = socket().last("chat.connect");
  assert.deepEqual([payload.token.at(-1), payload.intent, payload.lastSeq], ["2", "resume", 1]);
  socket().reply("chat.connected", { sessionId: "s1", session: active(1) }, "chat.connect");
  assert.deepEqual(asked, [false, true]);
  client.close();
});

test("a refused token is asked for anew once, then it is over", async () => {
  const asked = [];
  const client = await open({ getToken: ({ refresh }) => (asked.push(refresh), token("u1", "user")) });
  socket().reply("chat.error", { code: "unauthenticated", message: "no" }, "chat.connect");
  await settle();
  await cutAndReopen(4001);
  socket().cut(4001);
  assert.deepEqual([client.state, client.reason, asked], ["closed", 4001, [false, true]]);
});

test("connect refused for load waits as long as the server says", async () => {
  const client = await open();
  socket().reply("chat.error", { code: "rate_limited", message: "slow", retryAfterMs: 45_000 }, "chat.connect");
  await settle();
  client.check();
  mock.timers.tick(44_999);
  await settle();
  assert.equal(sockets.length, 1);
  mock.timers.tick(1);
  await settle();
  assert.equal(sockets.length, 2);
  client.close();
});

test("typing is told sparingly, ends by itself, and a dead typist's mark goes (B62)", async () => {
  const client = await chatting();
  for (let stroke = 0; stroke < 10; stroke++) client.typing("s1");
  assert.equal(socket().frames("chat.typing").length, 1);
  mock.timers.tick(3_000);
  client.typing("s1");
  assert.equal(socket().frames("chat.typing").length, 2);
  mock.timers.tick(5_000);
  assert.deepEqual(socket().frames("chat.typing").map(({ payload }) => payload.isTyping), [true, true, false]);
  socket().say("chat.typing", { sessionId: "s1", isTyping: true });
  assert.equal(client.current.typing, true);
  mock.timers.tick(6_000);
  assert.equal(client.current.typing, false);
  client.close();
});

test("waiting, requeued, offline, assigned, ended: the state follows the frames (B33)", async () => {
  const client = await open();
  socket().reply("chat.connected", { sessionId: "s1", agentInfo: null, session: { sessionId: "s1", status: "waiting", agentInfo: null, lastSeq: 0, position: 3, total: 5, agentsOnline: true } }, "chat.connect");
  const { current } = client;
  assert.deepEqual([current.status, current.position, current.total, current.offline], ["waiting", 3, 5, false]);
  socket().say("chat.offline_notice", { message: "back at nine" });
  assert.deepEqual([current.offline, current.offlineMessage, current.position], [true, "back at nine", null]);
  socket().say("chat.queue.position", { sessionId: "s1", position: 1, total: 2 });
  assert.deepEqual([current.offline, current.position], [false, 1]);
  socket().say("chat.session.assigned", { sessionId: "s1", agentInfo: { adminId: "a1", name: "Ann" } });
  assert.deepEqual([current.status, current.agentInfo.name, current.position], ["active", "Ann", null]);
  socket().say("chat.session.requeued", { sessionId: "s1", reason: "agent_gone" });
  assert.deepEqual([current.status, current.agentInfo], ["waiting", null]);
  socket().say("chat.session.ended", { sessionId: "s1" });
  assert.equal(current.status, "ended");
  client.close();
});

test("receipts that were missed while away are read from history", async () => {
  const client = await chatting();
  socket().say("chat.message.new", text(1));
  client.send({ content: "own" });
  const sent = socket().last("chat.message.send");
  socket().say("chat.message.server_ack", { clientMsgId: sent.payload.clientMsgId, msgId: "m2", seq: 2, status: "pending" }, sent.ref);
  assert.equal(client.current.messages[1].state, "stored");

  await cutAndReopen();
  socket().reply("chat.connected", { sessionId: "s1", session: active(2), unread: [], hasMore: false }, "chat.connect");
  const asked = socket().last("chat.history");
  assert.deepEqual(asked.payload, { sessionId: "s1", limit: 50, afterSeq: 1 });
  socket().say("chat.history", { sessionId: "s1", messages: [text(2, "user", { status: "read" })], hasMore: false }, asked.ref);
  assert.equal(client.current.messages[1].state, "read");
  client.close();
});

test("a push of what the count of a new session covers is not counted twice", async () => {
  const client = await open({ token: token("a1", "agent") });
  socket().reply("chat.connected", { sessionId: null, role: "agent", sessions: [], unread: [] }, "chat.connect");
  socket().say("chat.session.new", { sessionId: "s1", userInfo: { userId: "u1", name: "Vi" }, source: "shop", unread: 1, lastSeq: 1 });
  const store = client.sessions.get("s1");
  socket().say("chat.message.new", text(1, "user"));
  assert.equal(store.unreadCount, 1);
  socket().say("chat.message.new", text(2, "user"));
  assert.equal(store.unreadCount, 2);
  client.close();
});

test("a transferred session comes with its history and leaves its former agent", async () => {
  const client = await open({ token: token("a1", "agent") });
  socket().reply("chat.connected", { sessionId: null, role: "agent", sessions: [], unread: [] }, "chat.connect");
  socket().say("chat.session.new", { sessionId: "s1", userInfo: { userId: "u1", name: "Vi" }, source: "shop", unread: 2, lastSeq: 2, note: "vip" });
  const store = client.sessions.get("s1");
  assert.deepEqual([store.userInfo.name, store.unreadCount, store.note], ["Vi", 2, "vip"]);
  socket().reply("chat.history", { sessionId: "s1", messages: range(1, 2, "user", { status: "pending" }), hasMore: false });
  await settle();
  assert.deepEqual(seqs(store), [1, 2]);
  assert.deepEqual(socket().frames("chat.message.ack").map(({ payload }) => payload.msgId), ["m1", "m2"]);
  assert.equal(store.unreadCount, 2);
  socket().say("chat.session.removed", { sessionId: "s1", reason: "transferred", targetAdminId: "a2" });
  assert.equal(client.sessions.size, 0);
  client.close();
});

test("an older waiting line never replaces a newer one", async () => {
  const client = await open({ token: token("a1", "agent") });
  socket().reply("chat.connected", { sessionId: null, role: "agent", sessions: [], unread: [] }, "chat.connect");
  socket().say("chat.queue.list", { sessions: [{ sessionId: "s9", userInfo: {}, waitingSince: 1, position: 1 }], total: 1, version: 7 });
  socket().say("chat.queue.list", { sessions: [], total: 0, version: 6 });
  assert.equal(client.line.total, 1);
  client.close();
});
