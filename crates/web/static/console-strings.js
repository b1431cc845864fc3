// Words of the agent console and the supervisor's board: one of them, by its name.
import "./console/board-words.js";
import "./console/desk-words.js";
import "./console/frame-words.js";
import { t } from "./shared/i18n.js";

/** One of these words. @param {string} key without the prefix @param {Record<string, unknown>} [values] */
export function w(key, values) {
  return t(`desk_${key}`, values);
}
