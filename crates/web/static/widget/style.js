// Looks of the widget: adopted by its shadow tree, so that no host policy on styles stands in the way. Colours and
// sizes are custom properties that the host page may set on `kefu-widget`.

/** @param {TemplateStringsArray} text */
function css([text]) {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(text);
  return sheet;
}

export const style = css`
  :host {
    color-scheme: var(--kefu-scheme, light dark);
    --ground: var(--kefu-ground, light-dark(#f3f5f8, #14171c));
    --surface: var(--kefu-surface, light-dark(#ffffff, #1e232b));
    --text: var(--kefu-text, light-dark(#1a1f27, #e8ebf0));
    --soft: var(--kefu-soft, light-dark(#55606e, #a5b0be));
    --line: var(--kefu-line, light-dark(#c9d0d9, #3a424e));
    --accent: var(--kefu-accent, light-dark(#0b5cb8, #7db4ff));
    --on-accent: var(--kefu-on-accent, light-dark(#ffffff, #0c1420));
    --own: var(--kefu-own, light-dark(#dcebff, #1d3a5f));
    --warn: var(--kefu-warn, light-dark(#a32014, #ff9c8f));
    --radius: var(--kefu-radius, 0.75rem);
    position: fixed;
    inset: auto var(--kefu-side, 1rem) var(--kefu-bottom, 1rem) auto;
    z-index: var(--kefu-layer, 2147483000);
    display: grid;
    justify-items: end;
    gap: 0.5rem;
    font: 16px/1.45 var(--kefu-font, system-ui, "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", sans-serif);
    color: var(--text);
    text-align: start;
  }
  * { box-sizing: border-box; }
  [hidden] { display: none !important; }
  p, h2 { margin: 0; font-size: inherit; }
  :focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
  button, input, textarea { font: inherit; color: inherit; }
  button { padding: 0.35rem 0.7rem; border: 1px solid var(--line); border-radius: 0.5rem; background: var(--surface); white-space: nowrap; cursor: pointer; }
  button:disabled { opacity: 0.55; }
  .primary { border-color: var(--accent); background: var(--accent); color: var(--on-accent); }
  .quiet { padding: 0 0.25rem; border: 0; background: none; color: var(--accent); text-decoration: underline; }
  [aria-pressed="true"] { background: var(--own); }
  textarea { width: 100%; padding: 0.4rem 0.5rem; border: 1px solid var(--line); border-radius: 0.5rem; background: var(--surface); resize: none; }
  .launcher { display: flex; gap: 0.5rem; align-items: center; padding: 0.7rem 1.1rem; border-radius: 2rem; font-weight: 600; box-shadow: 0 0.25rem 1rem rgb(0 0 0 / 0.25); }
  .badge { min-width: 1.5rem; border-radius: 1rem; background: light-dark(#ffffff, #0c1420); color: light-dark(#a32014, #ff9c8f); }
  .panel {
    display: flex;
    flex-direction: column;
    gap: 0.5rem;
    width: min(var(--kefu-width, 24rem), calc(100vw - 2 * var(--kefu-side, 1rem)));
    height: min(var(--kefu-height, 38rem), calc(100dvh - 6rem));
    padding: 0.75rem;
    overflow: hidden;
    border: 1px solid var(--line);
    border-radius: var(--radius);
    background: var(--surface);
    box-shadow: 0 0.5rem 2rem rgb(0 0 0 / 0.25);
    animation: rise 0.15s ease-out;
  }
  @keyframes rise { from { opacity: 0; translate: 0 0.5rem; } }
  header, footer { display: flex; flex-wrap: wrap; align-items: center; gap: 0.4rem; }
  header > .who { flex: 1; min-width: 0; }
  h2 { font-weight: 600; }
  .avatar { display: block; width: 2.25rem; height: 2.25rem; overflow: hidden; border-radius: 50%; background: var(--own); text-align: center; line-height: 2.25rem; }
  .avatar img { display: block; width: 100%; height: 100%; object-fit: cover; }
  .agent, .connection, .sender, .meta, .typing, .day, .counter { color: var(--soft); font-size: 0.85rem; }
  .connection::first-letter, .notice::first-letter { text-transform: uppercase; }
  .connection[data-state="reconnecting"], .connection[data-state="closed"], .notice, .over, [data-state="failed"] .receipt { color: var(--warn); }
  .state { padding: 0.4rem 0.75rem; border-inline-start: 4px solid var(--accent); background: var(--ground); }
  .talk, .thread { display: flex; flex: 1; flex-direction: column; gap: 0.4rem; min-height: 0; }
  .log { flex: 1; min-height: 5rem; padding: 0.5rem; overflow-y: auto; border: 1px solid var(--line); border-radius: 0.5rem; background: var(--ground); overscroll-behavior: contain; }
  .message { width: fit-content; max-width: 85%; margin-block: 0.35rem; padding: 0.4rem 0.7rem; border-radius: var(--radius); background: var(--surface); }
  .message.own { margin-inline-start: auto; background: var(--own); }
  .body { white-space: pre-wrap; overflow-wrap: anywhere; }
  .body img { display: block; max-width: 100%; min-height: 2rem; max-height: 12rem; border-radius: 0.4rem; }
  .body a { color: var(--accent); }
  .meta { display: flex; flex-wrap: wrap; gap: 0.5rem; justify-content: flex-end; }
  [data-state="read"] .receipt { color: var(--accent); font-weight: bold; }
  .day, .counter { text-align: center; }
  .composer, .upload { display: flex; gap: 0.4rem; align-items: stretch; }
  .upload { align-items: center; font-size: 0.85rem; }
  .upload span { flex: 1; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
  progress { width: 5rem; accent-color: var(--accent); }
  .attach { position: relative; display: grid; flex: none; place-items: center; width: 2.5rem; border: 1px solid var(--line); border-radius: 0.5rem; }
  .attach input { position: absolute; inset: 0; width: 100%; opacity: 0; cursor: pointer; }
  .attach:focus-within { outline: 3px solid var(--accent); outline-offset: 2px; }
  .rating form { display: grid; gap: 0.5rem; padding-block: 0.5rem; }
  fieldset { display: flex; flex-wrap: wrap; gap: 0.6rem; margin: 0; border: 1px solid var(--line); border-radius: 0.5rem; }
  @media (max-width: 30rem) {
    :host(.open) { inset: 0; gap: 0; }
    .panel { width: 100vw; height: 100dvh; border: 0; border-radius: 0; }
    :host(.open) .launcher { display: none; }
  }
  @media (prefers-reduced-motion: reduce) {
    .panel { animation: none; }
  }
`;
