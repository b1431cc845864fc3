// The one error type of the client library.

/**
 * A refusal by the server, or `disconnected`: the connection went before the answer came.
 * `code` is stable text (docs/protocol.md, "Errors and close codes"); `message` is for logs, not for people.
 */
export class ChatError extends Error {
  /**
   * @param {string} code
   * @param {string} [message]
   * @param {{retryAfterMs?: number, traceId?: string, clientMsgId?: string}} [extra]
   */
  constructor(code, message = code, extra = {}) {
    super(message);
    this.name = "ChatError";
    this.code = code;
    /** How long to wait before the same may be tried again, in milliseconds. @type {number | undefined} */
    this.retryAfterMs = extra.retryAfterMs;
    /** What the server's log calls this refusal. @type {string | undefined} */
    this.traceId = extra.traceId;
    /** The message that was refused, where the frame was a send. @type {string | undefined} */
    this.clientMsgId = extra.clientMsgId;
  }

  /** True when the attempt was only not acknowledged: repeating it with the same key is always safe. */
  get retryable() {
    return RETRYABLE.has(this.code);
  }
}

const RETRYABLE = new Set(["rate_limited", "overloaded", "unavailable", "disconnected"]);
