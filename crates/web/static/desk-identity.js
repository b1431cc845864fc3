// Who sits at the console: a demo identity that the gateway mints, or the token of a real one.
import { storage } from "./storage.js";

/**
 * @typedef {"agent" | "supervisor"} ConsoleRole
 * @typedef {{role: ConsoleRole, token: string, name?: string, demo: boolean}} Kept
 */

const IDENTITY = "kefu.console.identity";

/** The gateway gives no demo identities: a token is needed. */
export class NoDemo extends Error {}

/** @param {string} token @returns {ConsoleRole | null} null when it is no token of an agent or a supervisor */
function roleOf(token) {
  try {
    const part = token.split(".")[1].replaceAll("-", "+").replaceAll("_", "/");
    const { role } = JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(part), (char) => char.charCodeAt(0))));
    return role === "agent" || role === "supervisor" ? role : null;
  } catch {
    return null;
  }
}

export const identity = {
  /** @returns {Kept | null} */
  get kept() {
    const text = storage.getItem(IDENTITY);
    return text ? JSON.parse(text) : null;
  },

  /** Takes `#token=…` out of the address, where the host's page puts it: it is never sent to a server or kept in the history. */
  adopt() {
    const token = new URLSearchParams(location.hash.slice(1)).get("token");
    if (!token) return;
    history.replaceState(null, "", location.pathname + location.search);
    this.use(token);
  },

  /** False when this is no token of somebody who works here; the gateway checks it in any case. @param {string} token */
  use(token) {
    const role = roleOf(token.trim());
    if (!role) return false;
    storage.setItem(IDENTITY, JSON.stringify({ role, token: token.trim(), demo: false }));
    return true;
  },

  /** @param {ConsoleRole} role @param {string} [name] */
  async mint(role, name) {
    const body = JSON.stringify(name ? { role, name } : { role });
    const response = await fetch("/demo/token", { method: "POST", headers: { "content-type": "application/json" }, body });
    if (response.status === 403 || response.status === 404) throw new NoDemo(`demo token: ${response.status}`);
    if (!response.ok) throw new Error(`demo token: ${response.status}`);
    const { token } = await response.json();
    storage.setItem(IDENTITY, JSON.stringify({ role, token, name, demo: true }));
    return token;
  },

  /** @param {{refresh: boolean}} ask @returns {string | Promise<string>} */
  getToken({ refresh }) {
    const kept = identity.kept;
    if (!kept) return "";
    return kept.demo && refresh ? identity.mint(kept.role, kept.name) : kept.token;
  },

  forget() {
    storage.removeItem(IDENTITY);
  },
};
