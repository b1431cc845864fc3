// Rating a conversation: never pushed at the visitor, only there when asked for (CC-21).
import { el } from "../dom.js";
import { t } from "../shared/i18n.js";

const VALUES = [1, 2, 3, 4, 5];

export class RatingForm {
  #comment = el("textarea", { rows: 2, maxLength: 500, "data-testid": "rate-comment" });
  #rated = el("p", { role: "status", hidden: true, "data-testid": "rated" });
  #choices = VALUES.map((value) => el("input", { type: "radio", name: "rating", value: String(value), required: true, "data-testid": `rate-${value}` }));
  #form;
  element;

  /** @param {(rating: number, content: string) => void} submit */
  constructor(submit) {
    const choices = this.#choices.map((choice, index) => el("label", { title: t("rating", { rating: index + 1 }) }, choice, el("span", { "aria-hidden": "true" }, "★"), choice.value));
    const send = (/** @type {Event} */ event) => {
      event.preventDefault();
      submit(this.#choices.findIndex((choice) => choice.checked) + 1, this.#comment.value.trim());
    };
    this.#form = el(
      "form",
      { onsubmit: send },
      el("fieldset", {}, el("legend", {}, t("rate")), ...choices),
      el("label", {}, t("rateComment"), this.#comment),
      el("button", { type: "submit", "data-testid": "rate-submit" }, t("rateSubmit")),
    );
    this.element = el("details", { className: "rating", "data-testid": "rate" }, el("summary", { "data-testid": "rate-open" }, t("rate")), this.#rated, this.#form);
  }

  /** @param {number | undefined} rating as stored */
  update(rating) {
    if (!rating || String(rating) === this.#rated.dataset.rating) return;
    // Once, so that a second choice (a later rating replaces the earlier, S3) is not undone by the next redraw.
    this.#choices[rating - 1].checked = true;
    this.#rated.hidden = false;
    this.#rated.dataset.rating = String(rating);
    this.#rated.textContent = t("rated", { rating });
    this.element.open = true;
  }
}
