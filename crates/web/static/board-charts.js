// Small charts of the board, drawn as SVG; each also as words and as a table for those who do not see them.
import { setText } from "./desk-kit.js";
import { el } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 600;
const HEIGHT = 120;
const GAP = 2;
/** Above the highest value, so that nothing is drawn over the scale. */
const HEADROOM = 1.2;

/**
 * @param {string} tag @param {Record<string, string | number>} attributes @param {...Node} children
 * @returns {SVGElement}
 */
function svg(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/** The next round number, so that the top line reads well. @param {number} value */
export function roundUp(value) {
  if (value <= 4) return 4;
  const power = 10 ** Math.floor(Math.log10(value));
  const step = [1, 2, 5, 10].find((factor) => value <= factor * power) ?? 10;
  return step * power;
}

/**
 * @typedef {object} ChartWords
 * @property {string} title
 * @property {string} from words at the left end of the time axis
 * @property {string} to words at the right end
 * @property {string} table words that open the table
 * @property {string[]} columns headings of the table
 */

/** What the charts have in common: frame, scale, words, table. */
class Chart {
  #drawing = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" });
  #top = el("span", { className: "top" });
  #summary = el("p", { className: "summary" });
  #rows = el("tbody", {});
  #table;
  element;

  /** @param {string} id @param {ChartWords} words @param {HTMLElement | null} legend */
  constructor(id, { title, from, to, table, columns }, legend) {
    this.#drawing.setAttribute("aria-label", title);
    const head = el("tr", {}, ...columns.map((column) => el("th", { scope: "col" }, column)));
    this.#table = el("details", {}, el("summary", {}, table), el("div", { className: "scrolled", tabIndex: 0, role: "region", "aria-label": title }, el("table", {}, el("thead", {}, head), this.#rows)));
    this.element = el(
      "figure",
      { className: "chart", "data-testid": id },
      el("figcaption", {}, title),
      legend,
      this.#summary,
      el("div", { className: "plot" }, this.#top, this.#drawing),
      el("div", { className: "axis", "aria-hidden": "true" }, el("span", {}, from), el("span", {}, to)),
      this.#table,
    );
    this.#table.addEventListener("toggle", () => this.redraw());
  }

  /** Redraws after the table was opened; it is filled only then. */
  redraw() {}

  /** @param {string} summary @param {string} top @param {Node[]} shapes @param {() => string[][]} cells */
  draw(summary, top, shapes, cells) {
    setText(this.#summary, summary);
    setText(this.#top, top);
    this.#drawing.replaceChildren(svg("line", { class: "grid", x1: 0, x2: WIDTH, y1: HEIGHT / 2, y2: HEIGHT / 2 }), ...shapes);
    if (this.#table.open) this.#rows.replaceChildren(...cells().map((row) => el("tr", {}, ...row.map((cell) => el("td", {}, cell)))));
  }
}

/** One bar for each of a fixed number of times. */
export class BarChart extends Chart {
  #last = () => {};

  /** @param {string} id @param {ChartWords} words */
  constructor(id, words) {
    super(id, words, null);
  }

  /** @param {number[]} values oldest first @param {(index: number) => string} label of a time @param {string} summary */
  update(values, label, summary) {
    this.#last = () => {
      const top = roundUp(Math.max(...values, 0) * HEADROOM);
      const step = WIDTH / values.length;
      const bars = values.map((value, index) => {
        const height = (value / top) * HEIGHT;
        const bar = svg("rect", { class: "bar-shape", x: index * step + GAP / 2, y: HEIGHT - height, width: step - GAP, height });
        const title = svg("title", {});
        title.textContent = `${label(index)}: ${value}`;
        bar.append(title);
        return bar;
      });
      this.draw(summary, String(top), bars, () => values.map((value, index) => [label(index), String(value)]).reverse());
    };
    this.#last();
  }

  redraw() {
    this.#last();
  }
}

/**
 * @typedef {{time: number, values: (number | null)[]}} Point null: nothing is known of that time
 */

/** Lines over the time since the board was opened. */
export class LineChart extends Chart {
  #names;
  #last = () => {};

  /** @param {string} id @param {ChartWords} words @param {string[]} names of the lines */
  constructor(id, words, names) {
    const legend = names.length > 1 ? el("ul", { className: "legend" }, ...names.map((name, index) => el("li", { "data-line": index }, name))) : null;
    super(id, words, legend);
    this.#names = names;
  }

  /**
   * @param {Point[]} points oldest first @param {(value: number) => string} format of a value
   * @param {(time: number) => string} label of a time @param {string} summary
   */
  update(points, format, label, summary) {
    this.#last = () => {
      const known = points.flatMap(({ values }) => values.filter((value) => value !== null));
      const top = roundUp(Math.max(...known, 0) * HEADROOM);
      const from = points[0]?.time ?? 0;
      const span = Math.max(1, (points.at(-1)?.time ?? 0) - from);
      const lines = this.#names.map((_, line) => {
        const way = points
          .filter(({ values }) => values[line] !== null)
          .map(({ time, values }) => `${(((time - from) / span) * WIDTH).toFixed(1)},${(HEIGHT - ((values[line] ?? 0) / top) * HEIGHT).toFixed(1)}`);
        // A single point would draw nothing: it becomes a line as wide as the chart.
        if (way.length === 1) way.push(`${WIDTH},${way[0].split(",")[1]}`);
        return svg("polyline", { class: "curve", "data-line": line, points: way.join(" ") });
      });
      const cells = () => points.map(({ time, values }) => [label(time), ...values.map((value) => (value === null ? "–" : format(value)))]).reverse();
      this.draw(summary, format(top), lines, cells);
    };
    this.#last();
  }

  redraw() {
    this.#last();
  }
}

/** A bar of how much of something is taken. @param {number} taken @param {number} of */
export function loadBar(taken, of) {
  const share = of > 0 ? Math.min(1, taken / of) : 0;
  return svg(
    "svg",
    { class: share >= 1 ? "load full" : "load", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("rect", { class: "ground", x: 0, y: 0, width: 100, height: 10 }),
    svg("rect", { class: "taken", x: 0, y: 0, width: share * 100, height: 10 }),
  );
}
