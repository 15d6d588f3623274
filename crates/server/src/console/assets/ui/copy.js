// A button that copies a text and says so.
import { html } from '../lit.js';
import { strings as t } from '../strings.js';
import { icon } from './icons.js';
import { toast } from './toast.js';

/** @param {string|(() => string)} text */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(typeof text === 'function' ? text() : text);
    toast(t.copied);
  } catch {
    toast(t.copyFailed, 'bad');
  }
}

/** @param {string|(() => string)} text @param {string} label @param {string} [classes] */
export const copyButton = (text, label = t.actions.copy, classes = 'button button-small') => html`
  <button class=${classes} type="button" @click=${() => copy(text)}>${icon('copy')}${label}</button>`;
