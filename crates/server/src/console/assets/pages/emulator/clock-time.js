// Times of the account's clock, to the second. Pure.
import { strings } from '../../strings.js';

const format = new Intl.DateTimeFormat(strings.lang, { dateStyle: 'medium', timeStyle: 'medium' });
/** @type {[string, number][]} */
const UNITS = [['d', 86400], ['h', 3600], ['m', 60], ['s', 1]];

/** @param {string|number} at */
export const clockText = (at) => format.format(new Date(at));

/** The two largest units of a duration: `1d 2h`. @param {number} milliseconds */
export function duration(milliseconds) {
  let seconds = Math.floor(milliseconds / 1000);
  const parts = [];
  for (const [unit, size] of UNITS) {
    const number = Math.floor(seconds / size);
    seconds %= size;
    if (number > 0 || parts.length > 0) parts.push(number > 0 ? `${number}${unit}` : '');
  }
  return parts.slice(0, 2).filter(Boolean).join(' ') || '0s';
}

/** The time that a clock shows now. @param {{now: string, follows: boolean, readAt: number}} clock @param {number} real */
export const shownTime = ({ now, follows, readAt }, real) => Date.parse(now) + (follows ? Math.max(0, real - readAt) : 0);

/** The value of a field for date and time, in local time. @param {string} value @returns {string|null} */
export function fieldTime(value) {
  const time = value === '' ? NaN : new Date(value).getTime();
  return Number.isNaN(time) ? null : new Date(time).toISOString();
}
