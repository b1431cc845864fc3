// A person's picture, or the first letter of their name: while there is none, and where it cannot be loaded.
import { el } from "../dom.js";

/** @param {string} name @param {string | null} url @returns {HTMLElement} */
export function avatar(name, url) {
  const [initial = "?"] = name;
  const frame = el("span", { className: "avatar", "aria-hidden": "true", "data-testid": "avatar" }, initial.toUpperCase());
  // Put in when it has come, so that a broken image is never seen.
  const image = el("img", { alt: "", referrerPolicy: "no-referrer", onload: () => frame.replaceChildren(image) });
  if (url) image.src = url;
  return frame;
}
