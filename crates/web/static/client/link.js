// One connection that heals itself: token, envelope, answers by `ref`, heartbeats, reconnecting.
import { ChatError } from "./error.js";

/** Closes after which another attempt would only be refused again: bad frames, too big, too many connections. */
const TERMINAL_CLOSES = new Set([1003, 1008, 1009, 4005]);
/** Closes that a fresh token can cure, once. */
const TOKEN_CLOSES = new Set([4001, 4002]);
const BACKOFF_BASE_MS = 500;
const BACKOFF_CAP_MS = 30_000;
const STABLE_MS = 30_000;
const ANSWER_MS = 15_000;
const PONG_MS = 10_000;
const CHECK_PONG_MS = 5_000;
const DEFAULT_HEARTBEAT_MS = 30_000;

/**
 * @typedef {"connecting" | "ready" | "reconnecting" | "closed"} LinkState
 *
 * @typedef {object} LinkOptions
 * @property {string} url WebSocket address
 * @property {(ask: {refresh: boolean}) => string | Promise<string>} getToken
 * @property {boolean} renewable whether asking for a token again can give another one
 * @property {typeof globalThis.WebSocket} WebSocket
 * @property {() => number} random uniform in [0, 1)
 * @property {() => object} hello payload of `chat.connect` without the token
 * @property {(token: string) => void} onToken
 * @property {(event: string, payload: any, ref: string | undefined) => void} onFrame
 * @property {(state: LinkState, reason?: number | string) => void} onState
 */

export class Link {
  #options;
  /** @type {LinkState} */
  #state = "connecting";
  /** @type {WebSocket | null} */
  #socket = null;
  /** @type {Map<string, {resolve: (payload: any) => void, reject: (error: ChatError) => void, timer: any}>} */
  #waiting = new Map();
  /** @type {Record<string, any>} */
  #timers = {};
  #opening = 0;
  #refs = 0;
  #attempt = 0;
  #minDelayMs = 0;
  #staleToken = false;
  #token = "";
  #heartbeatMs = DEFAULT_HEARTBEAT_MS;

  /** @param {LinkOptions} options */
  constructor(options) {
    this.#options = options;
  }

  get state() {
    return this.#state;
  }

  /** Opens a new connection now, whatever was before. */
  async open() {
    const opening = ++this.#opening;
    this.#drop();
    this.#enter(this.#attempt === 0 ? "connecting" : "reconnecting");
    // The token is fetched first: the server closes a socket whose first frame takes more than 10 s.
    let token;
    try {
      token = await this.#options.getToken({ refresh: this.#staleToken });
    } catch {
      if (opening === this.#opening) this.#retryLater();
      return;
    }
    if (opening !== this.#opening) return;
    this.#adopt(token);
    let socket;
    try {
      socket = new this.#options.WebSocket(this.#options.url);
    } catch (error) {
      this.#finish(String(error));
      return;
    }
    this.#socket = socket;
    this.#timer("open", ANSWER_MS, () => this.#lost(1006));
    socket.onopen = () => this.greet();
    socket.onmessage = (event) => this.#receive(event.data);
    socket.onclose = (event) => this.#lost(event.code);
  }

  /** Closes for good; `open()` starts again. */
  close() {
    this.#opening++;
    this.#finish(1000);
  }

  /** Finds out at once whether the connection still lives, and opens it if it is only waiting to be retried. */
  check() {
    if (this.#state === "ready") this.#ping(CHECK_PONG_MS);
    else if (this.#timers.retry && !this.#minDelayMs) this.open();
  }

  /** A label that no other frame of this connection carries. */
  nextRef() {
    return `r${++this.#refs}`;
  }

  /**
   * Sends a frame; false when there is no connection that would take it.
   * @param {string} event @param {object} payload @param {string} [ref]
   */
  post(event, payload, ref) {
    if (this.#socket?.readyState !== 1) return false;
    this.#socket.send(JSON.stringify(ref ? { event, payload, ref } : { event, payload }));
    return true;
  }

  /**
   * Sends a frame and gives the payload of its direct reply.
   * @param {string} event @param {object} payload @returns {Promise<any>}
   */
  request(event, payload) {
    return new Promise((resolve, reject) => {
      const ref = this.nextRef();
      if (!this.post(event, payload, ref)) {
        reject(new ChatError("disconnected"));
        return;
      }
      const timer = setTimeout(() => this.#settle(ref, new ChatError("unavailable", "no answer")), ANSWER_MS);
      this.#waiting.set(ref, { resolve, reject, timer });
    });
  }

  /** @param {string} token */
  #adopt(token) {
    this.#token = token;
    this.#options.onToken(token);
  }

  /** Sends `chat.connect`: the first frame of a connection, and again when intent or token changed (it is harmless). */
  async greet() {
    const socket = this.#socket;
    try {
      await this.request("chat.connect", { ...this.#options.hello(), token: this.#token });
    } catch (error) {
      if (socket !== this.#socket || !(error instanceof ChatError) || error.code === "disconnected") return;
      if (error.code === "unauthenticated" || error.code === "token_expired") this.#lost(4001);
      else if (error.retryable || error.code === "internal") this.#refusedFor(error.retryAfterMs ?? 0);
      else this.#finish(error.code);
    }
  }

  /** A connect refused for load: never sooner than the server asked for. @param {number} delayMs */
  #refusedFor(delayMs) {
    this.#minDelayMs = delayMs;
    this.#lost(1013);
  }

  /** @param {unknown} data */
  #receive(data) {
    clearTimeout(this.#timers.pong);
    let frame;
    try {
      frame = JSON.parse(String(data));
    } catch {
      return;
    }
    const { event, payload = {}, ref } = frame;
    // State changes with the frame itself, before any promise: a later frame must find it done.
    this.#options.onFrame(event, payload, ref);
    if (event === "chat.connected") this.#ready(payload);
    if (event !== "chat.error") {
      if (ref) this.#settle(ref, null, payload);
      return;
    }
    if (ref) this.#settle(ref, new ChatError(payload.code, payload.message, payload));
    else if (payload.code === "token_expired") this.#renew();
  }

  /** @param {{heartbeatIntervalMs?: number}} connected */
  #ready(connected) {
    this.#heartbeatMs = connected.heartbeatIntervalMs || DEFAULT_HEARTBEAT_MS;
    this.#staleToken = false;
    this.#minDelayMs = 0;
    this.#clear("open");
    this.#beat();
    // Resetting at once would turn a server that accepts and drops into a tight loop of reconnects.
    if (!this.#timers.stable) this.#timer("stable", STABLE_MS, () => (this.#attempt = 0));
    this.#enter("ready");
  }

  /** A token ran out on an open connection: renewed in place, the conversation does not notice. */
  async #renew() {
    if (!this.#options.renewable) return;
    const socket = this.#socket;
    try {
      const token = await this.#options.getToken({ refresh: true });
      if (socket !== this.#socket) return;
      this.#adopt(token);
      await this.greet();
    } catch {
      // The server closes with 4002 after its grace time; the reconnect asks for a token again.
    }
  }

  #beat() {
    this.#timer("beat", this.#heartbeatMs, () => {
      this.#beat();
      this.#ping(PONG_MS);
    });
  }

  /** @param {number} timeoutMs */
  #ping(timeoutMs) {
    // Any inbound frame proves life, so `#receive` stops this timer, whatever came.
    this.#timer("pong", timeoutMs, () => this.#lost(1006));
    this.post("chat.ping", {});
  }

  /** @param {number} code */
  #lost(code) {
    this.#drop();
    if (TERMINAL_CLOSES.has(code)) return this.#finish(code);
    if (TOKEN_CLOSES.has(code)) {
      if (!this.#options.renewable || this.#staleToken) return this.#finish(code);
      this.#staleToken = true;
    }
    this.#retryLater();
  }

  /** Full jitter: a thousand clients cut at once come back spread over the whole window. */
  #retryLater() {
    const window = Math.min(BACKOFF_CAP_MS, BACKOFF_BASE_MS * 2 ** this.#attempt++);
    const delay = Math.max(this.#minDelayMs, this.#options.random() * window);
    this.#timer("retry", delay, () => {
      this.#minDelayMs = 0;
      this.open();
    });
    this.#enter("reconnecting");
  }

  /** @param {number | string} reason */
  #finish(reason) {
    this.#drop();
    this.#enter("closed", reason);
  }

  /** Forgets the socket; what still waited for an answer learns that none will come. */
  #drop() {
    for (const name of Object.keys(this.#timers)) this.#clear(name);
    const socket = this.#socket;
    this.#socket = null;
    if (socket) {
      socket.onopen = socket.onmessage = socket.onclose = null;
      socket.close();
    }
    for (const ref of [...this.#waiting.keys()]) this.#settle(ref, new ChatError("disconnected"));
  }

  /** @param {string} ref @param {ChatError | null} error @param {any} [payload] */
  #settle(ref, error, payload) {
    const waiting = this.#waiting.get(ref);
    if (!waiting) return;
    this.#waiting.delete(ref);
    clearTimeout(waiting.timer);
    if (error) waiting.reject(error);
    else waiting.resolve(payload);
  }

  /** @param {LinkState} state @param {number | string} [reason] */
  #enter(state, reason) {
    if (state === this.#state && state !== "closed") return;
    this.#state = state;
    this.#options.onState(state, reason);
  }

  /** @param {string} name @param {number} ms @param {() => void} act */
  #timer(name, ms, act) {
    clearTimeout(this.#timers[name]);
    this.#timers[name] = setTimeout(() => {
      delete this.#timers[name];
      act();
    }, ms);
  }

  /** @param {string} name */
  #clear(name) {
    clearTimeout(this.#timers[name]);
    delete this.#timers[name];
  }
}
