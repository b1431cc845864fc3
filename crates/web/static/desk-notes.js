// Private notes of the sessions that were looked at: read once, then kept by what is pushed (B95).

/**
 * @typedef {import("./client.js").Client} Client
 * @typedef {{noteId: string, sessionId: string, adminId: string, name: string, content: string, time: number}} Note
 */

export class Notes {
  #client;
  #changed;
  /** @type {Map<string, Note[]>} */
  #known = new Map();
  /** @type {Set<string>} */
  #read = new Set();

  /** @param {Client} client @param {(sessionId: string) => void} changed */
  constructor(client, changed) {
    this.#client = client;
    this.#changed = changed;
    client.on("chat.note.new", (/** @type {Note} */ note) => this.#merge(note.sessionId, [note]));
    client.on("state", ({ state }) => {
      // What was pushed while we were away is only in the list.
      if (state === "ready") this.#read.clear();
    });
  }

  /** Notes of a session, ascending, as far as read. @param {string} sessionId */
  of(sessionId) {
    return this.#known.get(sessionId) ?? [];
  }

  /** @param {string} sessionId @param {string} content @param {string} clientMsgId the same for a second try */
  async add(sessionId, content, clientMsgId) {
    this.#merge(sessionId, [await this.#client.addNote({ sessionId, content, clientMsgId })]);
  }

  /** Reads the notes of a session that is being looked at, once a connection. @param {string} sessionId */
  async look(sessionId) {
    if (this.#read.has(sessionId) || this.#client.state !== "ready") return;
    this.#read.add(sessionId);
    try {
      let page = await this.#client.notes({ sessionId });
      this.#merge(sessionId, page.notes);
      while (page.hasMore) {
        page = await this.#client.notes({ sessionId, before: page.notes[0].noteId });
        this.#merge(sessionId, page.notes);
      }
    } catch {
      // Asked again with the next look.
      this.#read.delete(sessionId);
    }
  }

  /** @param {string} sessionId @param {Note[]} notes */
  #merge(sessionId, notes) {
    const known = this.#known.get(sessionId) ?? [];
    const fresh = notes.filter(({ noteId }) => !known.some((note) => note.noteId === noteId));
    if (fresh.length === 0) return;
    const all = [...known, ...fresh].sort((one, other) => one.time - other.time || (one.noteId < other.noteId ? -1 : 1));
    this.#known.set(sessionId, all);
    this.#changed(sessionId);
  }
}
