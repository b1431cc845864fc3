// Uploading an image: multipart over HTTP, with progress where the platform can tell it.
import { ChatError } from "./error.js";

/**
 * @typedef {object} UploadRequest
 * @property {string} base
 * @property {string} token
 * @property {string | null} sessionId
 * @property {Blob} file
 * @property {(share: number) => void} [onProgress] share of the bytes sent, 0 to 1
 * @property {AbortSignal} [signal]
 *
 * @typedef {{url: string, mimeType: string, size: number, width: number, height: number}} Uploaded
 */

/** @param {UploadRequest} request @returns {Promise<Uploaded>} */
export async function upload(request) {
  const form = new FormData();
  // The server checks the session before it takes the first byte of the file: the order matters.
  if (request.sessionId) form.append("sessionId", request.sessionId);
  form.append("file", request.file);
  const send = request.onProgress && typeof XMLHttpRequest !== "undefined" ? sendWithProgress : sendPlain;
  const { status, text } = await send(request, form);
  const body = parse(text);
  if (status === 201) return body;
  const error = body?.error ?? {};
  throw new ChatError(error.code ?? (status === 413 ? "payload_too_large" : "unavailable"), error.message, error);
}

/** @param {UploadRequest} request @param {FormData} body @returns {Promise<{status: number, text: string}>} */
async function sendPlain({ base, token, signal }, body) {
  const response = await fetch(address(base), { method: "POST", headers: { authorization: `Bearer ${token}` }, body, signal });
  return { status: response.status, text: await response.text() };
}

/** `fetch` cannot tell how much was sent. @param {UploadRequest} request @param {FormData} body @returns {Promise<{status: number, text: string}>} */
function sendWithProgress({ base, token, signal, onProgress }, body) {
  return new Promise((resolve, reject) => {
    const xhr = new XMLHttpRequest();
    xhr.open("POST", address(base));
    xhr.setRequestHeader("authorization", `Bearer ${token}`);
    xhr.upload.onprogress = ({ loaded, total }) => onProgress?.(total ? loaded / total : 0);
    xhr.onload = () => resolve({ status: xhr.status, text: xhr.responseText });
    xhr.onerror = () => reject(new ChatError("disconnected"));
    xhr.onabort = () => reject(new ChatError("cancelled"));
    signal?.addEventListener("abort", () => xhr.abort());
    xhr.send(body);
  });
}

/** @param {string} base */
function address(base) {
  return new URL("/api/v1/uploads", base);
}

/** @param {string} text */
function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
