// Our own typing, told sparingly: at most every 3 s, and its end after 5 s of silence.

const AGAIN_MS = 3_000;
const SILENCE_MS = 5_000;

export class Typing {
  #post;
  /** @type {Map<string, {again: any, silence: any}>} */
  #active = new Map();

  /** @param {(sessionId: string, isTyping: boolean) => void} post */
  constructor(post) {
    this.#post = post;
  }

  /** @param {string} sessionId @param {boolean} isTyping */
  set(sessionId, isTyping) {
    const active = this.#active.get(sessionId);
    if (!isTyping) {
      this.forget(sessionId);
      if (active) this.#post(sessionId, false);
      return;
    }
    clearTimeout(active?.silence);
    const silence = setTimeout(() => this.set(sessionId, false), SILENCE_MS);
    if (active?.again) {
      active.silence = silence;
      return;
    }
    /** @type {{silence: any, again: any}} */
    const started = { silence, again: setTimeout(() => (started.again = null), AGAIN_MS) };
    this.#active.set(sessionId, started);
    this.#post(sessionId, true);
  }

  /** A sent message ends typing by itself (P3): nothing is told. @param {string} sessionId */
  forget(sessionId) {
    const active = this.#active.get(sessionId);
    clearTimeout(active?.again);
    clearTimeout(active?.silence);
    this.#active.delete(sessionId);
  }
}
