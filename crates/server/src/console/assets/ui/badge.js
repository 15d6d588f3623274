// Status badges: colour, icon and word together, so that colour never stands alone.
import { html } from '../lit.js';
import { strings as t } from '../strings.js';
import { icon } from './icons.js';

/** @type {Record<string, [string, string]>} tone and icon */
const LOOK = {
  APPROVED: ['ok', 'check'],
  PENDING: ['wait', 'clock'],
  REJECTED: ['bad', 'close'],
  PAUSED: ['hold', 'pause'],
  DISABLED: ['off', 'stop'],
  ARCHIVED: ['off', 'info'],
  delivered: ['ok', 'check'],
  waiting: ['wait', 'clock'],
  failed: ['bad', 'close'],
  accepted: ['off', 'clock'],
  sent: ['wait', 'send'],
  read: ['ok', 'eye'],
};

/** @param {string} status of a template, a version, a delivery or a message */
export function badge(status) {
  const [tone, mark] = LOOK[status] ?? ['off', 'info'];
  return html`<span class="badge tone-${tone}" data-status=${status}>${icon(mark)}${t.status[status] ?? status}</span>`;
}

/** The icon of a status alone; the word is there for screen readers and as a title. @param {string} status */
export function statusMark(status) {
  const [tone, mark] = LOOK[status] ?? ['off', 'info'];
  const word = t.status[status] ?? status;
  return html`<span class="status-mark mark-${tone}" title=${word}>${icon(mark)}<span class="visually-hidden">${word}</span></span>`;
}

/** A small neutral label. @param {unknown} text */
export const tag = (text) => html`<span class="tag">${text}</span>`;
