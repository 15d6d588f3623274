// Short messages at the edge of the window: `toast('Copied')`, `toast(problem.detail, 'bad')`.
// Results that a visitor must not miss belong into the page; a toast only confirms.

import { html, render, repeat } from '../lit.js';
import { strings as t } from '../strings.js';
import { icon } from './icons.js';

const SHOWN_MS = 6000;
/** @type {{id: number, text: string, kind: 'ok'|'bad'}[]} */
let toasts = [];
let count = 0;

function draw() {
  const host = /** @type {HTMLElement} */ (document.getElementById('toasts'));
  render(html`<div role="status" aria-live="polite"><ul class="toasts">${repeat(toasts, (it) => it.id, (it) => html`
    <li class="toast toast-${it.kind}">${icon(it.kind === 'ok' ? 'check' : 'alert')}<span>${it.text}</span>
      <button class="icon-button" type="button" aria-label=${t.actions.dismiss} @click=${() => drop(it.id)}>${icon('close')}</button></li>`)}</ul></div>`, host);
}

/** @param {number} id */
function drop(id) {
  toasts = toasts.filter((it) => it.id !== id);
  draw();
}

/** @param {string} text @param {'ok'|'bad'} [kind] */
export function toast(text, kind = 'ok') {
  const id = ++count;
  toasts = [...toasts.slice(-2), { id, text, kind }];
  draw();
  setTimeout(() => drop(id), SHOWN_MS);
}
