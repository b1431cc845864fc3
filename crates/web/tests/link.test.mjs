// The client library's connection: opened, proven alive, lost, healed.
import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { FakeSocket, active, chatting, connect, cutAndReopen, open, settle, socket, sockets, token } from "./played.mjs";

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

test("a handshake that the server refuses for its origin is told once and not repeated (B76)", async () => {
  const asked = mock.method(globalThis, "fetch", async () => ({ status: 403 }));
  const client = connect({ url: "ws://chat.test/ws", token: token("u1", "user"), WebSocket: FakeSocket, random: () => 0.5, storage: null });
  await settle();
  socket().cut();
  await settle();
  assert.deepEqual([client.state, client.reason, asked.mock.calls.map((call) => call.arguments[0])], ["closed", "forbidden", ["http://chat.test/ws"]]);
  mock.timers.tick(60_000);
  await settle();
  assert.equal(sockets.length, 1);
  asked.mock.restore();
});

test("an unknown gateway is tried again", async () => {
  const asked = mock.method(globalThis, "fetch", async () => {
    throw new TypeError("no route");
  });
  const client = connect({ url: "https://chat.test", token: token("u1", "user"), WebSocket: FakeSocket, random: () => 0.5, storage: null });
  await settle();
  assert.equal(socket().url, "wss://chat.test/ws");
  for (let round = 0; round < 3; round++) {
    socket().cut();
    await settle();
    mock.timers.tick(30_000);
    await settle();
  }
  assert.deepEqual([client.state, sockets.length, asked.mock.callCount()], ["reconnecting", 4, 1]);
  asked.mock.restore();
  client.close();
});

test("a pong that a sleeping page could not hear is asked for again (throttled timers)", async () => {
  const client = await chatting();
  mock.timers.tick(30_000);
  assert.equal(socket().frames("chat.ping").length, 1);
  // The page sleeps: its clock goes on, its timers do not.
  mock.timers.setTime(Date.now() + 120_000);
  mock.timers.tick(10_000);
  assert.equal(client.state, "ready");
  assert.equal(socket().frames("chat.ping").length >= 2, true);
  socket().say("chat.pong");
  mock.timers.tick(9_000);
  assert.equal(client.state, "ready");
  client.close();
});
