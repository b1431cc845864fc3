// Which language is spoken, and its words: each page and part defines its own.

/** @typedef {"en" | "zh-CN"} Language */

/** @type {Record<Language, Record<string, string>>} */
const words = { en: {}, "zh-CN": {} };
/** The first of the browser's languages that we speak. */
let chosen = (navigator.languages ?? [navigator.language]).map(spoken).find(Boolean) ?? "en";

/** @returns {Language} */
export function language() {
  return chosen;
}

/** What is on screen already is to be built anew. @param {string} tag a language tag; one that we do not speak changes nothing */
export function setLanguage(tag) {
  chosen = spoken(tag) ?? chosen;
}

/** @param {Record<Language, Record<string, string>>} more */
export function define(more) {
  Object.assign(words.en, more.en);
  Object.assign(words["zh-CN"], more["zh-CN"]);
}

/** @param {string} key @param {Record<string, unknown>} [values] for the places in the text */
export function t(key, values = {}) {
  return (words[chosen][key] ?? key).replaceAll(/\{(\w+)\}/g, (_, name) => String(values[name] ?? ""));
}

/** A refusal in the person's words. @param {string | undefined} code @param {Record<string, unknown>} [values] */
export function errorText(code, values) {
  const key = `error_${code}`;
  return t(key in words.en ? key : "error_other", { code, ...values });
}

/** @param {string} tag @returns {Language | undefined} */
function spoken(tag) {
  return /^zh/i.test(tag) ? "zh-CN" : /^en/i.test(tag) ? "en" : undefined;
}
