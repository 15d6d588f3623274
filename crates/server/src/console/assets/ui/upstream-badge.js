// The state of a template, an operation or a connection at the provider: colour, icon and word together.
import { html } from '../lit.js';
import { upstream as t } from '../strings/upstream.js';
import { icon } from './icons.js';

/** @type {Record<string, [string, string]>} tone and icon */
const LOOK = {
  synced: ['ok', 'check'], connected: ['ok', 'check'], done: ['ok', 'check'],
  queued: ['wait', 'clock'], sending: ['wait', 'send'], unknown: ['wait', 'clock'], probing: ['wait', 'clock'],
  held: ['hold', 'pause'], paused: ['hold', 'pause'],
  drifted: ['bad', 'alert'], missing: ['bad', 'alert'], refused: ['bad', 'close'], conflict: ['bad', 'alert'],
  degraded: ['bad', 'alert'], suspicious: ['bad', 'alert'],
};

/** @param {string} state */
export function upstreamBadge(state) {
  const [tone, mark] = LOOK[state] ?? ['off', 'info'];
  return html`<span class="badge tone-${tone}" data-upstream=${state}>${icon(mark)}${t.state[state] ?? state}</span>`;
}
