// One connection that heals itself: token, envelope, answers by `ref`, heartbeats, reconnecting.
// Names that begin with `_` are the library's own. The heir has `_hello` (payload of `chat.connect`), `_identify` (a fresh token),
// `_frame` and `_entered` (a new state).
import { ChatError } from "./error.js";

const BACKOFF_BASE_MS = 500;
const BACKOFF_CAP_MS = 30_000;
const STABLE_MS = 30_000;
const ANSWER_MS = 15_000;
const PONG_MS = 10_000;
const CHECK_PONG_MS = 5_000;

export class Link extends EventTarget {
  /** @type {import("../client.js").State} */
  state = "connecting";
  /** @type {number | string | undefined} */
  reason;

  /** @type {import("../client.js").ConnectOptions} */
  _options;
  /** @type {string} */
  _url;
  _token = "";

  /** @type {WebSocket | null | undefined} */
  #socket;
  /** @type {Map<string, (error: ChatError | null, answer?: any) => void>} */
  #waiting = new Map();
  /** @type {Record<string, any>} */
  #timers = {};
  #opening = 0;
  #refs = 0;
  #attempt = 0;
  #minDelayMs = 0;
  #stale = false;
  #heartbeatMs = 30_000;

  /** @param {import("../client.js").ConnectOptions} options @param {string} url */
  constructor(options, url) {
    super();
    this._options = options;
    this._url = url;
  }

  /** @param {string} type @param {(detail: any) => void} listener */
  on(type, listener) {
    const heard = (/** @type {any} */ event) => listener(event.detail);
    this.addEventListener(type, heard);
    return () => this.removeEventListener(type, heard);
  }

  async reconnect() {
    this.#drop();
    const opening = this.#opening;
    this.#enter(this.#attempt ? "reconnecting" : "connecting");
    // The token is fetched first: the server closes a socket whose first frame takes more than 10 s.
    const token = await this.#ask(this.#stale);
    if (opening !== this.#opening) return;
    if (token == null) return this.#retryLater();
    /** @type {any} */ (this)._identify(token);
    try {
      const socket = (this.#socket = new (this._options.WebSocket ?? WebSocket)(this._url));
      let opened = false;
      socket.onopen = () => {
        opened = true;
        this._greet();
      };
      socket.onmessage = (event) => this.#receive(event.data);
      socket.onclose = (event) => (opened ? this.#lost(event.code) : this.#turnedAway());
      this.#timer("answer", ANSWER_MS, () => this.#lost());
    } catch (error) {
      this.#finish(String(error));
    }
  }

  close() {
    this.#finish(1000);
  }

  check() {
    if (this.state === "ready") this.#ping(CHECK_PONG_MS);
    else if (this.#timers.retry && !this.#minDelayMs) this.reconnect();
  }

  /** @param {string} event @param {object} [payload] @param {string} [ref] */
  post(event, payload = {}, ref) {
    if (this.#socket?.readyState !== 1) return false;
    this.#socket.send(JSON.stringify({ event, payload, ref }));
    return true;
  }

  /** @param {string} event @param {object} [payload] @returns {Promise<any>} */
  request(event, payload) {
    return new Promise((resolve, reject) => {
      const ref = `${++this.#refs}`;
      if (!this.post(event, payload, ref)) return reject(new ChatError("disconnected"));
      const timer = setTimeout(() => this.#settle(ref, new ChatError("unavailable")), ANSWER_MS);
      this.#waiting.set(ref, (error, answer) => {
        clearTimeout(timer);
        if (error) reject(error);
        else resolve(answer);
      });
    });
  }

  /** @param {string} type @param {unknown} [detail] */
  _emit(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }

  /** Sends `chat.connect`: the first frame of a connection, and again when intent or token changed (it is harmless). */
  async _greet() {
    const socket = this.#socket;
    try {
      await this.request("chat.connect", { .../** @type {any} */ (this)._hello(), token: this._token });
    } catch (error) {
      const { code, retryable, retryAfterMs = 0 } = /** @type {any} */ (error);
      if (socket !== this.#socket || code === "disconnected") return;
      if (/auth|token/.test(code)) return this.#lost(4001);
      if (!retryable && code !== "internal") return this.#finish(code);
      // Never sooner than the server asked for.
      this.#minDelayMs = retryAfterMs;
      this.#lost();
      this._emit("error", error);
    }
  }

  /** @param {boolean} refresh */
  async #ask(refresh) {
    try {
      const { token = "", getToken = () => token } = this._options;
      return await getToken({ refresh });
    } catch {
      // Whoever mints the tokens may be down just as long as the gateway.
      return;
    }
  }

  /** A browser tells nothing of a refused handshake; the same address over HTTP says why. Asked once: an outage has no why. */
  async #turnedAway() {
    const opening = this.#opening;
    const answer = this.#attempt ? null : await fetch(this._url.replace("ws", "http")).catch(() => null);
    if (opening !== this.#opening) return;
    if (answer?.status === 403) this.#finish("forbidden");
    else this.#lost();
  }

  /** @param {string} text */
  #receive(text) {
    // Any frame proves life.
    clearTimeout(this.#timers.pong);
    const { event, payload = {}, ref } = JSON.parse(text);
    // State changes with the frame itself, before any promise: a later frame must find it done.
    /** @type {any} */ (this)._frame(event, payload);
    if (event === "chat.connected") this.#ready(payload.heartbeatIntervalMs);
    if (event !== "chat.error") this.#settle(ref, null, payload);
    else if (ref) this.#settle(ref, new ChatError(payload.code, payload));
    else if (payload.code === "token_expired") this.#renew();
    else this._emit("error", new ChatError(payload.code, payload));
  }

  /** @param {number | undefined} heartbeatMs */
  #ready(heartbeatMs = this.#heartbeatMs) {
    this.#heartbeatMs = heartbeatMs;
    this.#stale = false;
    this.#minDelayMs = 0;
    clearTimeout(this.#timers.answer);
    this.#beat();
    // Resetting at once would turn a server that accepts and drops into a tight loop of reconnects.
    this.#timers.stable ??= setTimeout(() => (this.#attempt = 0), STABLE_MS);
    this.#enter("ready");
  }

  /** A token ran out on an open connection: renewed in place, the conversation does not notice. */
  async #renew() {
    const socket = this.#socket;
    const token = await this.#ask(true);
    // Without a better one the server closes with 4002 after its grace time.
    if (!token || token === this._token || socket !== this.#socket) return;
    /** @type {any} */ (this)._identify(token);
    this._greet();
  }

  #beat() {
    this.#timer("beat", this.#heartbeatMs, () => {
      this.#beat();
      this.#ping(PONG_MS);
    });
  }

  /** @param {number} timeoutMs */
  #ping(timeoutMs) {
    const asked = Date.now();
    this.#timer("pong", timeoutMs, () => {
      // A timer that comes much too late was asleep with its page: the answer may be waiting behind it.
      if (Date.now() - asked > 2 * timeoutMs) this.#ping(timeoutMs);
      else this.#lost();
    });
    this.post("chat.ping");
  }

  #lost(code = 1006) {
    // A fresh token can cure these, once; after bad frames, too big ones or too many connections another attempt
    // would only be refused again.
    const token = [4001, 4002].includes(code);
    if ([1003, 1008, 1009, 4005].includes(code) || (token && (this.#stale || !this._options.getToken))) return this.#finish(code);
    this.#stale ||= token;
    this.#drop();
    this.#retryLater();
  }

  /** Full jitter: a thousand clients cut at once come back spread over the whole window. */
  #retryLater() {
    const window = Math.min(BACKOFF_CAP_MS, BACKOFF_BASE_MS * 2 ** this.#attempt++);
    const { random = Math.random } = this._options;
    this.#timer("retry", Math.max(this.#minDelayMs, random() * window), () => {
      this.#minDelayMs = 0;
      this.reconnect();
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
    this.#opening++;
    for (const timer of Object.values(this.#timers)) clearTimeout(timer);
    this.#timers = {};
    const socket = this.#socket;
    this.#socket = null;
    if (socket) socket.onopen = socket.onmessage = socket.onclose = null;
    socket?.close();
    for (const ref of [...this.#waiting.keys()]) this.#settle(ref, new ChatError("disconnected"));
  }

  /** @param {string} ref @param {ChatError | null} error @param {any} [answer] */
  #settle(ref, error, answer) {
    this.#waiting.get(ref)?.(error, answer);
    this.#waiting.delete(ref);
  }

  /** @param {import("../client.js").State} state @param {number | string} [reason] */
  #enter(state, reason) {
    if (state === this.state && state !== "closed") return;
    this.state = state;
    this.reason = reason;
    /** @type {any} */ (this)._entered();
    this._emit("state", { state, reason });
  }

  /** @param {string} name @param {number} ms @param {() => void} act */
  #timer(name, ms, act) {
    clearTimeout(this.#timers[name]);
    this.#timers[name] = setTimeout(() => {
      delete this.#timers[name];
      act();
    }, ms);
  }
}
