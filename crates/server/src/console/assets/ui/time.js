// Times: relative for reading, absolute in the title, ISO in the datetime attribute.
import { html, nothing } from '../lit.js';
import { strings as t } from '../strings.js';

const relative = new Intl.RelativeTimeFormat(t.lang, { numeric: 'auto' });
const absolute = new Intl.DateTimeFormat(t.lang, { dateStyle: 'medium', timeStyle: 'short' });
/** @type {[Intl.RelativeTimeFormatUnit, number][]} */
const UNITS = [['year', 31536000], ['month', 2592000], ['day', 86400], ['hour', 3600], ['minute', 60]];

/** @param {string} at @param {number} [now] */
export function ago(at, now = Date.now()) {
  const seconds = (Date.parse(at) - now) / 1000;
  for (const [unit, size] of UNITS) {
    if (Math.abs(seconds) >= size) return relative.format(Math.trunc(seconds / size), unit);
  }
  return seconds > 1 ? relative.format(Math.ceil(seconds), 'second') : t.justNow;
}

/** @param {string} at */
export const full = (at) => absolute.format(new Date(at));

/** `<time>` with a relative text. @param {string|undefined} at */
export const timeAgo = (at) => (at ? html`<time dir="auto" datetime=${at} title=${full(at)}>${ago(at)}</time>` : nothing);

/** `<time>` with date and time. @param {string|undefined} at */
export const timeFull = (at) => (at ? html`<time dir="auto" datetime=${at}>${full(at)}</time>` : nothing);
