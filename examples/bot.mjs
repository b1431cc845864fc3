// A bot that serves visitors as an agent. Node 22 or newer:
//   KEFU_TOKEN=$(gateway token --sub bot --role agent) node examples/bot.mjs
// Without KEFU_TOKEN it asks the demo of a gateway on this machine for one.
import { connect } from "../crates/web/static/client.js";

const url = process.env.KEFU_URL ?? "http://127.0.0.1:8080";

async function demoToken() {
  const headers = { "content-type": "application/json" };
  const answer = await fetch(`${url}/demo/token`, { method: "POST", headers, body: JSON.stringify({ role: "agent", name: "Bot" }) });
  return (await answer.json()).token;
}

const client = connect({ url, getToken: () => process.env.KEFU_TOKEN ?? demoToken(), source: "bot" });

client.on("state", ({ state, reason }) => console.log(state, reason ?? ""));
client.on("chat.connected", () => client.online({ maxSessions: 10 }).catch((error) => console.error(error.code)));

// Whatever is not read yet is answered, also what came while the bot was away.
client.on("change", (session) => {
  const fresh = session.messages.filter(({ incoming, seq }) => incoming && seq > session.readUpTo);
  if (!fresh.length) return;
  client.markRead(session.sessionId, fresh.at(-1).msgId);
  for (const { msgType, content } of fresh) {
    const answer = msgType === "text" ? `You said: ${content}` : "What a picture!";
    client.send({ sessionId: session.sessionId, content: answer }).catch((error) => console.error(error.code));
  }
});
