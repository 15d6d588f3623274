// Names and directions of languages: `en_US` → "English (United States)".
import { html } from '../lit.js';
import { strings as t } from '../strings.js';

const names = new Intl.DisplayNames(t.lang, { type: 'language', languageDisplay: 'standard', fallback: 'none' });
const RTL = /^(ar|he|iw|fa|ur|ps|sd|ug|yi|dv|ckb)(_|$)/;

/** @type {Map<string, string>} */
const known = new Map();

/** The name of a language code; `unknown` if the browser knows none. @param {string} code @param {string} [unknown] */
export function languageName(code, unknown = code) {
  let name = known.get(code);
  if (name === undefined) {
    try {
      name = names.of(code.replaceAll('_', '-')) ?? '';
    } catch {
      name = '';
    }
    known.set(code, name);
  }
  return name || unknown;
}

/** @param {string} code @returns {'rtl'|'ltr'} */
export const languageDirection = (code) => (RTL.test(code) ? 'rtl' : 'ltr');

/** Name and code. @param {string} code */
export const language = (code) => html`<span class="language"><bdi>${languageName(code)}</bdi> <code>${code}</code></span>`;
