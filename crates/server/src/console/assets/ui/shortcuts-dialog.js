// The list of shortcuts, and their switch.
import { html } from '../lit.js';
import { strings as t } from '../strings.js';
import { openDialog } from './dialog.js';
import { enabled, registered, setEnabled } from './shortcuts.js';

const MAC = /mac|iphone|ipad/i.test(navigator.platform);

/** @param {string} key */
const keyName = (key) => ({ mod: MAC ? '⌘' : 'Ctrl', Enter: '↵', Escape: 'Esc', ArrowUp: '↑', ArrowDown: '↓' })[key] ?? key;

/** @param {string} keys `g l`, `mod+s`, `?` */
export const keys = (keys) => html`<span class="keys">${keys.split(' ').map((step) => step.split('+').map((key) => html`<kbd>${keyName(key)}</kbd>`))}</span>`;

export function openShortcuts() {
  void openDialog({
    title: t.shortcuts.title,
    body: (_close, update) => html`
      <label class="switch"><input type="checkbox" autofocus .checked=${enabled()}
        @change=${(/** @type {any} */ event) => { setEnabled(event.target.checked); update(); }}>
        <span>${t.shortcuts.enable}</span></label>
      <dl class="shortcut-list ${enabled() ? '' : 'is-off'}">
        ${registered().filter((it) => it.when?.() ?? true).map((it) => html`<div><dt>${it.label}</dt><dd>${keys(it.keys)}</dd></div>`)}
      </dl>
      <p class="quiet">${t.shortcuts.note}</p>`,
  });
}
