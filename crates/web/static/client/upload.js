// Uploading an image: multipart over HTTP, with progress where the platform can tell it.
import { ChatError } from "./error.js";

/**
 * @param {string} url @param {string} token @param {string | undefined} sessionId @param {Blob} file
 * @param {{onProgress?: (share: number) => void, signal?: AbortSignal}} options
 * @returns {Promise<any>}
 */
export async function upload(url, token, sessionId, file, { onProgress, signal }) {
  const body = new FormData();
  // The server checks the session before it takes the first byte of the file: the order matters.
  if (sessionId) body.append("sessionId", sessionId);
  body.append("file", file);
  const headers = { authorization: `Bearer ${token}` };
  const send = globalThis.XMLHttpRequest ? withProgress : async () => (await fetch(url, { method: "POST", headers, body, signal })).json();
  /** @type {any} */
  let answer;
  try {
    answer = await send(url, headers.authorization, body, onProgress, signal);
  } catch {
    throw new ChatError(signal?.aborted ? "cancelled" : "disconnected");
  }
  if (answer.error) throw new ChatError(answer.error.code, answer.error);
  return answer;
}

/** `fetch` cannot tell how much was sent. @param {string} url @param {string} authorization @param {FormData} body @param {((share: number) => void) | undefined} onProgress @param {AbortSignal | undefined} signal */
function withProgress(url, authorization, body, onProgress, signal) {
  return new Promise((resolve, reject) => {
    const xhr = new XMLHttpRequest();
    xhr.open("POST", url);
    xhr.responseType = "json";
    xhr.setRequestHeader("authorization", authorization);
    xhr.upload.onprogress = (event) => onProgress?.(event.loaded / event.total);
    xhr.onload = () => resolve(xhr.response ?? { error: { code: xhr.status === 413 ? "payload_too_large" : "unavailable" } });
    xhr.onerror = xhr.onabort = reject;
    signal?.addEventListener("abort", () => xhr.abort());
    xhr.send(body);
  });
}
