// The client library's calls, and what agents and supervisors get of it.
import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { active, chatting, connect, cutAndReopen, open, range, seqs, settle, socket, text, token } from "./played.mjs";

test("an agent resumes all sessions, each from its own place", async () => {
  const client = await open({ token: token("a1", "agent") });
  const session = (sessionId, lastSeq) => ({ sessionId, status: "active", lastSeq, userInfo: { userId: `of-${sessionId}`, name: "V" }, unreadCount: 0 });
  socket().reply("chat.connected", { sessionId: null, role: "agent", sessions: [session("s1", 0), session("s2", 2)], unread: [] }, "chat.connect");
  const pulled = socket().last("chat.history");
  assert.deepEqual(pulled.payload, { sessionId: "s2", limit: 1, beforeSeq: 3 }, "the last line; the rest when it is looked at");
  socket().say("chat.history", { sessionId: "s2", messages: [text(2, "user", { sessionId: "s2" })], hasMore: true }, pulled.ref);
  socket().say("chat.agent.status", { status: "online", activeSessions: 2, maxSessions: 4 });
  await settle();
  assert.deepEqual(client.agent, { status: "online", maxSessions: 4, activeSessions: 2 });

  await cutAndReopen();
  assert.deepEqual(socket().last("chat.connect").payload.lastSeqs, { s1: 0, s2: 2 });
  socket().reply("chat.connected", { sessionId: null, role: "agent", sessions: [session("s2", 2)], unread: [] }, "chat.connect");
  assert.deepEqual([...client.sessions.keys()], ["s2"]);
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

test("a message that comes while its session is handed over is counted once (B64)", async () => {
  const client = await open({ token: token("a1", "agent") });
  socket().reply("chat.connected", { sessionId: null, role: "agent", sessions: [], unread: [] }, "chat.connect");
  // The server read the session before the message was there, and counted after.
  socket().say("chat.session.new", { sessionId: "s1", userInfo: { userId: "u1", name: "Vi" }, source: "shop", unread: 1, lastSeq: 0 });
  socket().say("chat.message.new", text(1, "user"));
  assert.equal(client.sessions.get("s1").unreadCount, 1);
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

test("what is read on another device is read here (B64)", async () => {
  const client = await open({ token: token("a1", "agent") });
  socket().reply("chat.connected", { sessionId: null, role: "agent", sessions: [], unread: [] }, "chat.connect");
  socket().say("chat.session.new", { sessionId: "s1", userInfo: { userId: "u1", name: "Vi" }, source: "shop", unread: 0, lastSeq: 0 });
  const session = client.sessions.get("s1");
  for (const seq of [1, 2]) socket().say("chat.message.new", text(seq, "user"));
  assert.equal(session.unreadCount, 2);
  socket().say("chat.session.read", { sessionId: "s1", seq: 1 });
  assert.deepEqual([session.unreadCount, session.readUpTo], [1, 1]);
  client.close();
});

test("a watched session is read-only, takes its frames, and is watched again after a cut", async () => {
  const client = await open({ token: token("v1", "supervisor") });
  socket().reply("chat.connected", { sessionId: null, role: "supervisor", sessions: [], unread: [] }, "chat.connect");
  for (const call of [client.watch({ sessionId: "s1" }), client.board()]) call.catch(() => {});
  const opening = client.open({ sessionId: "s1", status: "active", userInfo: { userId: "u1", name: "Vi" } });
  socket().reply("chat.history", { sessionId: "s1", messages: range(1, 2, "user", { status: "pending" }), hasMore: false });
  const session = await opening;
  socket().say("chat.message.new", text(3, "user"));
  assert.deepEqual([session.status, session.userInfo.name, seqs(session)], ["active", "Vi", [1, 2, 3]]);
  client.markRead("s1", "m3");
  assert.equal(socket().frames("chat.message.ack").length, 0);

  await cutAndReopen();
  socket().reply("chat.connected", { sessionId: null, role: "supervisor", sessions: [], unread: [] }, "chat.connect");
  assert.deepEqual(socket().last("chat.session.watch").payload, { sessionId: "s1" });
  assert.equal(socket().frames("chat.board").length, 1);
  client.close();
});

test("the page is told again to whoever comes, and after a cut", async () => {
  const client = await chatting();
  const page = { url: "https://shop.test/vase", title: "Vase", language: "en" };
  client.page(page);
  socket().say("chat.session.assigned", { sessionId: "s1", agentInfo: { adminId: "a2", name: "Bea" } });
  assert.deepEqual(socket().frames("chat.page").map(({ payload }) => payload), [page, page]);
  await cutAndReopen();
  socket().reply("chat.connected", { sessionId: "s1", session: active(0) }, "chat.connect");
  assert.deepEqual(socket().last("chat.page").payload, page);
  client.close();
});

test("every call is the frame of its name, and gives the answer's payload", async () => {
  const client = await chatting();
  const calls = { end: "session.end", rate: "session.rate", online: "agent.online", offline: "agent.offline", transfer: "session.transfer", claim: "session.claim", agents: "agent.list", queue: "queue.list", history: "history", addNote: "note.add", notes: "note.list", canned: "canned.list", putCanned: "canned.put", deleteCanned: "canned.delete", listSessions: "sessions.list", watch: "session.watch", unwatch: "session.unwatch", board: "board", explain: "assignment.explain" };
  for (const [call, event] of Object.entries(calls)) {
    const answer = client[call]({ sessionId: "s9", some: call });
    const frame = socket().sent.at(-1);
    assert.deepEqual([frame.event, frame.payload], [`chat.${event}`, { sessionId: "s9", some: call }]);
    socket().say(frame.event, { of: call, sessions: [], messages: [] }, frame.ref);
    assert.equal((await answer).of, call);
  }
  const refused = client.claim({ sessionId: "s9" });
  socket().reply("chat.error", { code: "conflict", message: "gone", traceId: "t1" }, "chat.session.claim");
  await assert.rejects(refused, { code: "conflict", message: "gone", traceId: "t1" });
  client.close();
});

test("a file goes up with its session first; a refusal is typed", async () => {
  const client = await chatting();
  const sent = [];
  const answers = [{ url: "/uploads/chat/x.png" }, { error: { code: "payload_too_large", message: "too large" } }];
  const fetched = mock.method(globalThis, "fetch", async (url, { headers, body }) => {
    sent.push([url, headers.authorization, [...body.keys()], body.get("sessionId")]);
    return { json: async () => answers.shift() };
  });
  assert.equal((await client.upload(new Blob(["x"]))).url, "/uploads/chat/x.png");
  await assert.rejects(client.upload(new Blob(["x"]), { sessionId: "s7" }), { code: "payload_too_large" });
  assert.deepEqual(sent.map(([url, , keys, id]) => [url, keys, id]), [["http://chat.test/api/v1/uploads", ["sessionId", "file"], "s1"], ["http://chat.test/api/v1/uploads", ["sessionId", "file"], "s7"]]);
  assert.ok(sent[0][1].startsWith("Bearer h."));
  fetched.mock.restore();
  client.close();
});

test("the types tell of everything that is there, and of nothing else", async () => {
  const { readFile } = await import("node:fs/promises");
  const types = await readFile(new URL("../static/client.d.ts", import.meta.url), "utf8");
  const declared = types.split("export interface Client ")[1].split("\n}")[0];
  const members = [...declared.matchAll(/^  (?:readonly )?(\w+)[(:<]/gm)].map(([, name]) => name);
  const client = await chatting();
  for (const name of members) assert.ok(name in client, `${name} is declared only`);
  assert.ok(members.length > 45);
  const own = Object.getOwnPropertyNames(Object.getPrototypeOf(client)).filter((name) => /^[a-z]/.test(name) && name !== "constructor");
  assert.deepEqual(own.filter((name) => !members.includes(name)), []);
  client.close();
});

test("every frame of the protocol has its call or its event", async () => {
  const { readFile } = await import("node:fs/promises");
  const types = await readFile(new URL("../static/client.d.ts", import.meta.url), "utf8");
  const schema = await readFile(new URL("../../../docs/protocol.schema.json", import.meta.url), "utf8");
  const frames = new Set(schema.match(/chat\.[a-z_.]+[a-z]/g));
  assert.ok(frames.size > 25);
  // Sent by the library itself, whenever they are due.
  const own = ["chat.connect", "chat.ping", "chat.message.send", "chat.message.ack"];
  for (const frame of frames) assert.ok(own.includes(frame) || types.includes(`\`${frame}\``) || types.includes(`"${frame}"`), frame);
});
