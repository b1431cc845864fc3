// The one error type of the client library.

/** A refusal by the server, or `disconnected`: the connection went before the answer came. */
export class ChatError extends Error {
  /** @param {string} code @param {{message?: string, retryAfterMs?: number, traceId?: string, clientMsgId?: string}} [refusal] as on the wire */
  constructor(code, refusal = {}) {
    super(refusal.message ?? code);
    Object.assign(this, refusal);
    this.code = code;
  }

  get retryable() {
    return ["rate_limited", "overloaded", "unavailable", "disconnected"].includes(this.code);
  }
}
