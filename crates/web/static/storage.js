// The tab's own storage; where the browser forbids it, memory, so that the chat works all the same.

/** @type {Map<string, string>} */
const memory = new Map();

export const storage = {
  /** @param {string} key */
  getItem(key) {
    try {
      return sessionStorage.getItem(key) ?? memory.get(key) ?? null;
    } catch {
      return memory.get(key) ?? null;
    }
  },
  /** @param {string} key @param {string} value */
  setItem(key, value) {
    memory.set(key, value);
    try {
      sessionStorage.setItem(key, value);
    } catch {
      // Kept in memory above.
    }
  },
  /** @param {string} key */
  removeItem(key) {
    memory.delete(key);
    try {
      sessionStorage.removeItem(key);
    } catch {
      // Nothing was stored then.
    }
  },
};
