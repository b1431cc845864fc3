// The tab's own storage; where the browser forbids it, memory, so that the chat works all the same (B75).

/** @type {Map<string, string>} */
const memory = new Map();

/** @template T @param {() => T} act @returns {T | undefined} */
function allowed(act) {
  try {
    return act();
  } catch {
    // Kept in memory.
    return undefined;
  }
}

export const storage = {
  /** @param {string} key @returns {string | null} */
  getItem: (key) => allowed(() => sessionStorage.getItem(key)) ?? memory.get(key) ?? null,
  /** @param {string} key @param {string} value */
  setItem(key, value) {
    memory.set(key, value);
    allowed(() => sessionStorage.setItem(key, value));
  },
  /** @param {string} key */
  removeItem(key) {
    memory.delete(key);
    allowed(() => sessionStorage.removeItem(key));
  },
  /** Forgets everything of ours: the site's own keys stay. */
  clear() {
    memory.clear();
    const keys = allowed(() => Object.keys(sessionStorage)) ?? [];
    for (const key of keys) if (key.startsWith("kefu.")) this.removeItem(key);
  },
};
