// Line icons, drawn with the current text colour. `icon('check')`; decorative, so hidden from readers.
import { svg, html } from '../lit.js';

const PATHS = {
  check: svg`<path d="m5 13 4 4L19 7"/>`,
  close: svg`<path d="M6 6l12 12M18 6 6 18"/>`,
  alert: svg`<path d="M12 8v5m0 3.5v.01M10.3 4.3 2.6 18a2 2 0 0 0 1.7 3h15.4a2 2 0 0 0 1.7-3L13.7 4.3a2 2 0 0 0-3.4 0z"/>`,
  info: svg`<circle cx="12" cy="12" r="9"/><path d="M12 11v5m0-8.5v.01"/>`,
  clock: svg`<circle cx="12" cy="12" r="9"/><path d="M12 7v5l3 2"/>`,
  pause: svg`<path d="M9 6v12M15 6v12"/>`,
  stop: svg`<circle cx="12" cy="12" r="9"/><path d="m6 6 12 12"/>`,
  chevron: svg`<path d="m9 6 6 6-6 6"/>`,
  search: svg`<circle cx="11" cy="11" r="6.5"/><path d="m16 16 4.5 4.5"/>`,
  plus: svg`<path d="M12 5v14M5 12h14"/>`,
  edit: svg`<path d="M4 20h4L19 9l-4-4L4 16zM13 7l4 4"/>`,
  copy: svg`<rect x="9" y="9" width="11" height="11" rx="2"/><path d="M5 15H4V6a2 2 0 0 1 2-2h9v1"/>`,
  sheet: svg`<path d="M6 3h9l4 4v14H6zM14 3v5h5M9 12h7M9 16h5"/>`,
  globe: svg`<circle cx="12" cy="12" r="9"/><path d="M3 12h18M12 3c3 3 3 15 0 18M12 3c-3 3-3 15 0 18"/>`,
  sun: svg`<circle cx="12" cy="12" r="4"/><path d="M12 2v2m0 16v2M2 12h2m16 0h2M5 5l1.4 1.4m11.2 11.2L19 19M5 19l1.4-1.4M17.6 6.4 19 5"/>`,
  moon: svg`<path d="M20 14.5A8 8 0 0 1 9.5 4 8 8 0 1 0 20 14.5z"/>`,
  auto: svg`<circle cx="12" cy="12" r="9"/><path d="M12 3v18a9 9 0 0 0 0-18z" fill="currentColor" stroke="none"/>`,
  keyboard: svg`<rect x="2.5" y="6" width="19" height="12" rx="2"/><path d="M6 10h.01M10 10h.01M14 10h.01M18 10h.01M7 14h10"/>`,
  leave: svg`<path d="M14 4H5v16h9M10 12h11m-4-4 4 4-4 4"/>`,
  restore: svg`<path d="M4 5v5h5M4.6 10A8 8 0 1 1 4 14"/>`,
  send: svg`<path d="m4 12 17-8-6 17-3-7z"/>`,
  hook: svg`<path d="M9 4v9a4 4 0 1 0 8 0V9m-3 3 3-3 3 3"/>`,
  key: svg`<circle cx="8" cy="15" r="4.5"/><path d="m11.5 11.5 8-8M16 7l3 3"/>`,
  more: svg`<path d="M5 12h.01M12 12h.01M19 12h.01" stroke-width="3"/>`,
  up: svg`<path d="m6 15 6-6 6 6"/>`,
  down: svg`<path d="m6 9 6 6 6-6"/>`,
  trash: svg`<path d="M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13"/>`,
  eye: svg`<path d="M2.5 12S6 5.5 12 5.5 21.5 12 21.5 12 18 18.5 12 18.5 2.5 12 2.5 12z"/><circle cx="12" cy="12" r="2.5"/>`,
  link: svg`<path d="M10 14a4 4 0 0 0 6 .5l3-3a4 4 0 0 0-6-6l-1.5 1.5M14 10a4 4 0 0 0-6-.5l-3 3a4 4 0 0 0 6 6l1.500-1.500"/>`,
  phone: svg`<path d="M6 3h4l2 5-2.500 1.500a12 12 0 0 0 5 5L16 12l5 2v4a2 2 0 0 1-2 2A16 16 0 0 1 4 5a2 2 0 0 1 2-2z"/>`,
  reply: svg`<path d="M10 8 5 13l5 5M5 13h9a5 5 0 0 0 5-5V6"/>`,
};

/** @param {keyof typeof PATHS|string} name @param {string} [extra] further classes, such as `flip` (mirrored in RTL) */
export const icon = (name, extra = '') => html`<svg class="icon ${extra}" viewBox="0 0 24 24" aria-hidden="true" focusable="false">${PATHS[/** @type {keyof typeof PATHS} */ (name)] ?? PATHS.sheet}</svg>`;
