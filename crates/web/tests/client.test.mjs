// The client library's messages: sent, kept, received, acknowledged.
import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { ChatError, active, chatting, connect, contents, cutAndReopen, open, range, seqs, settle, socket, stored, text, token } from "./played.mjs";

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
  const delivered = socket().frames("chat.message.ack").map(({ payload }) => payload);
  // The first is said again: whether it arrived before the cut is not known.
  assert.deepEqual(delivered, ["m5", "m4", "m5", "m6"].map((msgId) => ({ msgId, status: "delivered" })));
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

test("a message refused for load holds back the later ones, and order is kept (M6, B79)", async () => {
  const client = await chatting();
  const refusals = [];
  client.on("error", ({ code, retryAfterMs }) => refusals.push([code, retryAfterMs]));
  for (const content of ["one", "two", "three"]) client.send({ content });
  const sends = () => socket().frames("chat.message.send");
  assert.deepEqual(contents(sends()), ["one"], "the next one only after the acknowledgement");
  await stored(1);
  const two = sends()[1];
  socket().say("chat.error", { code: "rate_limited", message: "slow down", retryAfterMs: 400, clientMsgId: two.payload.clientMsgId }, two.ref);
  await settle();
  assert.deepEqual(refusals, [["rate_limited", 400]]);
  client.send({ content: "four" });
  mock.timers.tick(399);
  await settle();
  assert.equal(sends().length, 2, "held back");
  mock.timers.tick(1);
  await settle();
  assert.equal(sends()[2].payload.clientMsgId, two.payload.clientMsgId, "the same key again");
  for (const seq of [2, 3, 4]) await stored(seq);
  assert.deepEqual(contents(sends()), ["one", "two", "two", "three", "four"]);
  assert.deepEqual(client.current.messages.map(({ content, state }) => [content, state]), ["one", "two", "three", "four"].map((content) => [content, "stored"]));
  client.close();
});

test("a message refused for good fails, stays, and holds back the later ones until it is tried again or given up", async () => {
  const client = await chatting();
  const failing = client.send({ content: "x".repeat(501) });
  client.send({ content: "next" });
  const sends = () => socket().frames("chat.message.send");
  const refuse = () => socket().say("chat.error", { code: "content_too_long", message: "too long" }, socket().last("chat.message.send").ref);
  refuse();
  await assert.rejects(failing, (error) => error instanceof ChatError && error.code === "content_too_long" && !error.retryable);
  const [failed] = client.current.messages;
  assert.deepEqual([failed.state, failed.error, sends().length], ["failed", "content_too_long", 1]);
  for (let tap = 0; tap < 5; tap++) client.retry(failed);
  assert.deepEqual([sends().length, sends()[1].payload.clientMsgId], [2, sends()[0].payload.clientMsgId], "five taps send one");
  refuse();
  await settle();
  client.discard(failed);
  assert.equal(sends()[2].payload.content, "next");
  await stored(1);
  assert.deepEqual(client.current.messages.map(({ content, state }) => [content, state]), [["next", "stored"]]);
  client.close();
});

test("no answer on a living connection: the same key again", async () => {
  const client = await chatting();
  client.send({ content: "hello" });
  mock.timers.tick(15_000);
  await settle();
  mock.timers.tick(1_000);
  await settle();
  const [first, second] = socket().frames("chat.message.send");
  assert.equal(first.payload.clientMsgId, second.payload.clientMsgId);
  client.close();
});

test("what was not sent when the session ended comes along to the next one, not sent", async () => {
  const client = await chatting();
  client.send({ content: "too late" });
  socket().say("chat.session.ended", { sessionId: "s1" });
  socket().reply("chat.error", { code: "session_closed", message: "ended" }, "chat.message.send");
  await settle();
  client.consult();
  socket().reply("chat.connected", { sessionId: "s2", session: { ...active(0), sessionId: "s2" } }, "chat.connect");
  const [message] = client.current.messages;
  assert.deepEqual([client.current.sessionId, message.content, message.state, message.error], ["s2", "too late", "failed", "session_closed"]);
  client.retry(message);
  assert.equal(socket().last("chat.message.send").payload.sessionId, "s2");
  client.close();
});

/** A storage that keeps entries as IndexedDB does: by owner and key, in the order of keys. */
function keeping() {
  const entries = new Map();
  return {
    entries,
    all: async (owner) => [...entries].filter(([key]) => key.startsWith(`${owner}/`)).sort().map(([, entry]) => structuredClone(entry)),
    put: async (owner, entry) => entries.set(`${owner}/${entry.clientMsgId}`, structuredClone(entry)),
    delete: async (owner, clientMsgId) => entries.delete(`${owner}/${clientMsgId}`),
    clear: async () => entries.clear(),
  };
}

test("unsent and failed messages outlive the page, in order, each until it is stored", async () => {
  const storage = keeping();
  const before = await chatting(0, { storage });
  before.send({ content: "first" });
  before.send({ content: "second" });
  const { clientMsgId } = socket().last("chat.message.send").payload;
  before.close();
  mock.timers.tick(1_000);

  const after = await chatting(0, { storage });
  after.send({ content: "third" });
  assert.equal(socket().last("chat.message.send").payload.clientMsgId, clientMsgId);
  assert.deepEqual(after.current.messages.map(({ content, state }) => [content, state]), ["first", "second", "third"].map((content) => [content, "sending"]));
  socket().reply("chat.error", { code: "conflict", message: "no" }, "chat.message.send");
  await settle();
  after.close();

  const again = await chatting(0, { storage });
  assert.deepEqual(again.current.messages.map(({ content, state, error }) => [content, state, error]), [["first", "failed", "conflict"], ["second", "sending", undefined], ["third", "sending", undefined]]);
  assert.equal(socket().frames("chat.message.send").length, 0, "the failed one holds back the others");
  again.retry(again.current.messages[0]);
  for (const seq of [1, 2, 3]) await stored(seq);
  assert.equal(storage.entries.size, 0);
  again.close();
});

test("one person's unsent messages are never another's; logging out leaves nothing", async () => {
  const storage = keeping();
  const ming = await chatting(0, { storage });
  ming.send({ content: "mine" });
  ming.close();
  const other = await chatting(0, { storage, token: token("u12", "user") });
  assert.equal(other.current.messages.length, 0);
  assert.equal(storage.entries.size, 1);
  await other.clear();
  assert.deepEqual([storage.entries.size, other.sessions.size, other.state], [0, 0, "closed"]);
});

test("storage that throws costs nothing but the keeping (B75)", async () => {
  const forbidden = () => {
    throw new Error("SecurityError");
  };
  const client = await chatting(0, { storage: { all: forbidden, put: forbidden, delete: forbidden } });
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
  assert.equal(message.state, "read");
  socket().say("chat.message.new", text(2, "user", { msgId: "m2" }));
  socket().say("chat.message.peer_ack", { msgId: "m2", sessionId: "s1", status: "failed" });
  assert.equal(client.current.messages[1].state, "stored");
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
