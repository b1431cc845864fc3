// What an agent is called: a message has only the id of who wrote it, and who has handed the session over keeps the name
// under which they were met in this tab, also after a reload (Z7).
import { storage } from "../storage.js";

/** @param {string} adminId @param {import("../client.js").AgentInfo | null | undefined} serving who has the session now @returns {string | null} */
export function agentName(adminId, serving) {
  const key = `kefu.name.${adminId}`;
  const met = storage.getItem(key);
  if (serving?.adminId !== adminId || !serving.name) return met;
  if (serving.name !== met) storage.setItem(key, serving.name);
  return serving.name;
}
