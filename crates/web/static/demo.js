// Demo identities: a token minted by the gateway, kept in this tab, so that a reload is the same person.
import { storage } from "./storage.js";

/** @typedef {"user" | "agent" | "supervisor"} Role */

/** @param {Role} role */
export function demoIdentity(role) {
  const key = `kefu.demo.${role}`;
  /** @returns {{token: string, name?: string} | null} */
  const kept = () => JSON.parse(storage.getItem(key) ?? "null");

  /** @param {string} [name] */
  async function mint(name) {
    const body = JSON.stringify(name ? { role, name } : { role });
    const response = await fetch("/demo/token", { method: "POST", headers: { "content-type": "application/json" }, body });
    if (!response.ok) throw new Error(`demo token: ${response.status}`);
    const { token } = await response.json();
    storage.setItem(key, JSON.stringify({ token, name }));
    return token;
  }

  return {
    mint,
    known: () => kept() !== null,
    /** @param {{refresh: boolean}} ask */
    getToken: ({ refresh }) => {
      const identity = kept();
      return identity && !refresh ? identity.token : mint(identity?.name);
    },
  };
}
