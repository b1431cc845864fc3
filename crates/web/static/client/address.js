// Where the gateway is, and whose token it is.

/** @param {string} url @returns {string} origin that serves HTTP beside the socket */
export function httpBase(url) {
  return new URL("/", url.replace(/^ws/, "http")).href;
}

/** @param {string} base @param {string | undefined} url */
export function socketUrl(base, url) {
  if (url && new URL(url).pathname !== "/") return url.replace(/^http/, "ws");
  return new URL("/ws", base).href.replace(/^http/, "ws");
}

/** Reads a token without trusting it: only to know which messages are our own. @param {string} token */
export function claimsOf(token) {
  try {
    const part = token.split(".")[1].replaceAll("-", "+").replaceAll("_", "/");
    const bytes = Uint8Array.from(atob(part), (char) => char.charCodeAt(0));
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return {};
  }
}
