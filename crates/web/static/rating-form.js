// Rating a conversation: never pushed at the visitor, only there when asked for (CC-21).
import { el } from "./dom.js";
import { t } from "./i18n.js";

const VALUES = [1, 2, 3, 4, 5];

export class RatingForm {
  #submit;
  /** @type {string | null} */
  #sessionId = null;
  #comment = el("textarea", { rows: 2, maxLength: 500, "data-testid": "rate-comment" });
  #rated = el("p", { role: "status", hidden: true, "data-testid": "rated" });
  #choices = VALUES.map((value) => el("input", { type: "radio", name: "rating", value: String(value), required: true, "data-testid": `rate-${value}` }));
  #form = el(
    "form",
    {},
    el("fieldset", {}, el("legend", {}, t("rate")), ...this.#choices.map((choice, index) => this.#choice(choice, VALUES[index]))),
    el("label", { className: "field" }, t("rateComment"), this.#comment),
    el("button", { type: "submit", "data-testid": "rate-submit" }, t("rateSubmit")),
  );
  element = el("details", { className: "rating", "data-testid": "rate" }, el("summary", { "data-testid": "rate-open" }, t("rate")), this.#rated, this.#form);

  /** @param {(rating: number, comment: string) => void} submit */
  constructor(submit) {
    this.#submit = submit;
    this.#form.addEventListener("submit", (/** @type {Event} */ event) => {
      event.preventDefault();
      const chosen = this.#choices.find((choice) => choice.checked);
      if (chosen) this.#submit(Number(chosen.value), this.#comment.value.trim());
    });
  }

  /** @param {import("./client/session-store.js").SessionStore | null} session */
  update(session) {
    this.element.hidden = session === null;
    if (session?.sessionId !== this.#sessionId) {
      this.#sessionId = session?.sessionId ?? null;
      this.#form.reset();
      this.element.open = false;
    }
    const rating = session?.rating ?? null;
    // Once, so that a second choice (a later rating replaces the earlier, S3) is not undone by the next redraw.
    if (rating !== null && String(rating) !== this.#rated.dataset.rating) this.#choices[rating - 1].checked = true;
    this.#rated.hidden = rating === null;
    this.#rated.dataset.rating = String(rating ?? "");
    this.#rated.textContent = rating === null ? "" : t("rated", { rating });
    if (rating !== null) this.element.open = true;
  }

  /** @param {HTMLInputElement} choice @param {number} value */
  #choice(choice, value) {
    return el("label", { title: t("rating", { rating: value }) }, choice, el("span", { "aria-hidden": "true" }, "★"), String(value));
  }
}
