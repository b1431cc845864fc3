// Building elements without HTML: every text is a text node, so nobody's words become markup.

/**
 * @param {string} tag
 * @param {Record<string, any>} [attributes] `on…` are listeners, `data-…`, `aria-…`, `role` and `for` attributes, the rest properties
 * @param {...(Node | string | null)} children
 * @returns {any} the element
 */
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name.includes("-") || name === "role" || name === "for") element.setAttribute(name, value);
    else /** @type {any} */ (element)[name] = value;
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

const LINK = /https?:\/\/[^\s<>"']+/g;

/** A person's text with its web addresses as links; nothing but http and https ever becomes one. @param {string} text */
export function linked(text) {
  const parts = document.createDocumentFragment();
  let end = 0;
  for (const match of text.matchAll(LINK)) {
    const [address] = match;
    if (!URL.canParse(address)) continue;
    parts.append(text.slice(end, match.index), el("a", { href: address, target: "_blank", rel: "noopener noreferrer nofollow" }, address));
    end = match.index + address.length;
  }
  parts.append(text.slice(end));
  return parts;
}

/** Runs `render` once after all changes of this turn. @param {() => void} render */
export function coalesced(render) {
  let due = false;
  return () => {
    if (due) return;
    due = true;
    // Not an animation frame: those stop in a tab that is not in front, whose title still counts.
    queueMicrotask(() => {
      due = false;
      render();
    });
  };
}
