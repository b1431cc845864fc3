// A long list of which only what is near the screen has elements: 10,000 messages cost as much as 50.

/**
 * @typedef {{key: unknown}} Row a row; equal keys are the same row
 * @typedef {{element: HTMLElement, update: (row: any) => void}} RowView
 *
 * @typedef {object} VirtualOptions
 * @property {HTMLElement} scroller scrolls; holds `head` and the rows
 * @property {HTMLElement} head stands above the first row and never changes its height
 * @property {(row: any) => RowView} make
 * @property {(first: number, last: number) => void} onShown called after each drawing with the rows in the visible part
 */

/** Height of a row that was not on screen yet. */
const GUESS_PX = 68;
/** Drawn above and below the visible part, so that a quick scroll shows no gap. */
const MARGIN_PX = 600;
/** This near to the end means that the end is looked at, and is to stay in sight. */
const END_PX = 60;

export class VirtualList {
  /** Whether the end is in sight, and is to stay so. */
  atEnd = true;

  #scroller;
  #head;
  #make;
  #onShown;
  #above = document.createElement("div");
  #holder = document.createElement("div");
  #below = document.createElement("div");
  /** @type {Row[]} */
  #rows = [];
  /** @type {Map<unknown, number>} */
  #heights = new Map();
  /** Where each row begins, below the head; one more for the end of the last. */
  #starts = new Float64Array(1);
  /** @type {Map<unknown, RowView>} */
  #views = new Map();
  /** @type {{key: unknown, offset: number} | null} Row at the top of the visible part, and how far it is scrolled out. */
  #anchor = null;
  #frame = 0;
  #width = 0;
  #height = 0;

  /** @param {VirtualOptions} options */
  constructor({ scroller, head, make, onShown }) {
    this.#scroller = scroller;
    this.#head = head;
    this.#make = make;
    this.#onShown = onShown;
    scroller.append(head, this.#above, this.#holder, this.#below);
    scroller.addEventListener("scroll", () => this.#scrolled());
    // An image has its height only when it has come; `load` does not bubble.
    scroller.addEventListener("load", () => this.draw(), true);
    new ResizeObserver(() => this.#resized()).observe(scroller);
  }

  /** The row at the top of the visible part; null at the end, or when there is none. */
  get anchor() {
    return this.atEnd ? null : this.#anchor;
  }

  /** Shows these rows; what is on screen stays where it is, or the end stays in sight. @param {Row[]} rows */
  show(rows) {
    // The page may have been scrolled since the last event told of it.
    if (!this.atEnd && this.#views.size > 0) this.#note();
    this.#rows = rows;
    this.draw();
  }

  /** Forgets everything about the rows before; the next ones are shown from `anchor` on, or at their end. @param {{key: unknown, offset: number} | null} anchor */
  reset(anchor = null) {
    this.#rows = [];
    this.#heights.clear();
    for (const view of this.#views.values()) view.element.remove();
    this.#views.clear();
    this.#anchor = anchor;
    this.atEnd = anchor === null;
  }

  toEnd() {
    this.atEnd = true;
    this.draw();
  }

  draw() {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    if (this.#scroller.clientHeight === 0) return;
    this.#measureStarts();
    // Twice: rows that were guessed are measured the first time, which can bring others into sight.
    for (let pass = 0; pass < 2; pass++) {
      this.#place(this.#wantedTop());
      if (!this.#measure()) break;
    }
    this.#hold();
    this.#tellShown();
  }

  /** Where the visible part is to begin, as far as known. */
  #wantedTop() {
    const total = this.#starts[this.#rows.length] + this.#base;
    if (this.atEnd) return total - this.#scroller.clientHeight;
    const index = this.#anchor ? this.#rows.findIndex((row) => row.key === this.#anchor?.key) : -1;
    return index < 0 ? this.#scroller.scrollTop : this.#base + this.#starts[index] + (this.#anchor?.offset ?? 0);
  }

  get #base() {
    return this.#head.offsetHeight;
  }

  #measureStarts() {
    const count = this.#rows.length;
    if (this.#starts.length < count + 1) this.#starts = new Float64Array(count * 2 + 1);
    let at = 0;
    for (let index = 0; index < count; index++) {
      this.#starts[index] = at;
      at += this.#heights.get(this.#rows[index].key) ?? GUESS_PX;
    }
    this.#starts[count] = at;
  }

  /** The row at a height below the head. @param {number} at */
  #rowAt(at) {
    let low = 0;
    let high = this.#rows.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.#starts[middle] <= at) low = middle;
      else high = middle - 1;
    }
    return Math.max(0, low);
  }

  /** Gives elements to the rows around the visible part, and takes those of all others. @param {number} top */
  #place(top) {
    const { clientHeight } = this.#scroller;
    const at = top - this.#base;
    const count = this.#rows.length;
    const first = count ? this.#rowAt(at - MARGIN_PX) : 0;
    const end = count ? this.#rowAt(at + clientHeight + MARGIN_PX) + 1 : 0;
    const wanted = this.#rows.slice(first, end);
    this.#drop(new Set(wanted.map(({ key }) => key)));
    let next = this.#holder.firstElementChild;
    for (const row of wanted) {
      const view = this.#views.get(row.key) ?? this.#make(row);
      this.#views.set(row.key, view);
      view.update(row);
      if (view.element === next) next = next.nextElementSibling;
      else this.#holder.insertBefore(view.element, next);
    }
    this.#above.style.height = `${this.#starts[first]}px`;
    this.#below.style.height = `${this.#starts[count] - this.#starts[end]}px`;
  }

  /** @param {Set<unknown>} wanted */
  #drop(wanted) {
    for (const [key, { element }] of this.#views) {
      if (wanted.has(key)) continue;
      // Who had the focus in there goes on scrolling from here.
      if (element.contains(document.activeElement)) this.#scroller.focus({ preventScroll: true });
      element.remove();
      this.#views.delete(key);
    }
  }

  /** True when a height was not what was thought. */
  #measure() {
    let changed = false;
    for (const [key, { element }] of this.#views) {
      const height = element.getBoundingClientRect().height;
      if (Math.abs((this.#heights.get(key) ?? GUESS_PX) - height) < 0.5) {
        if (!this.#heights.has(key)) this.#heights.set(key, height);
        continue;
      }
      this.#heights.set(key, height);
      changed = true;
    }
    if (changed) this.#measureStarts();
    return changed;
  }

  /** Puts the anchor, or the end, back to where it was on screen. */
  #hold() {
    const top = this.#wantedTop();
    if (Math.abs(this.#scroller.scrollTop - top) >= 1) this.#scroller.scrollTop = top;
    this.#note();
  }

  #note() {
    const at = this.#scroller.scrollTop - this.#base;
    const index = this.#rowAt(at);
    const row = this.#rows[index];
    this.#anchor = row ? { key: row.key, offset: at - this.#starts[index] } : null;
  }

  #scrolled() {
    this.#look();
    this.#frame ||= requestAnimationFrame(() => {
      // It may have gone on since the event, and must not be taken back.
      this.#look();
      this.draw();
    });
  }

  #look() {
    const { scrollTop, scrollHeight, clientHeight } = this.#scroller;
    this.atEnd = scrollHeight - scrollTop - clientHeight < END_PX;
    this.#note();
  }

  #resized() {
    const { clientWidth, clientHeight } = this.#scroller;
    if (clientWidth === this.#width && clientHeight === this.#height) return;
    // Another width breaks lines elsewhere.
    if (clientWidth !== this.#width) this.#heights.clear();
    this.#width = clientWidth;
    this.#height = clientHeight;
    this.draw();
  }

  #tellShown() {
    const { scrollTop, clientHeight } = this.#scroller;
    const from = scrollTop - this.#base;
    const to = from + clientHeight;
    let first = this.#rowAt(from);
    let last = this.#rowAt(to);
    const shown = (/** @type {number} */ index) => {
      const height = this.#starts[index + 1] - this.#starts[index];
      const visible = Math.min(this.#starts[index + 1], to) - Math.max(this.#starts[index], from);
      return visible >= height * 0.6 || visible > clientHeight / 2;
    };
    while (first < last && !shown(first)) first++;
    while (last > first && !shown(last)) last--;
    if (this.#rows.length) this.#onShown(first, last);
  }
}
