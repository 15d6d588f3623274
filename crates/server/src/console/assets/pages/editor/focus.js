// Moves the focus to where a change continues, so that it never falls back to the start of the page.

import { parsePointer, toPointer } from './pointer.js';

const FIELD = 'textarea, input:checked, input:not([type=radio]), select, button:not([disabled]), summary';

/** The id of the element for a pointer. */
export const idOf = (pointer) => `f${pointer.replaceAll(/[^A-Za-z0-9]/g, '-')}`;

/** Focuses what the first selector with a match finds, or the first field in it, once the page shows the change. */
export function focusSoon(...selectors) {
  requestAnimationFrame(() =>
    requestAnimationFrame(() => {
      for (const selector of selectors) {
        const found = document.querySelector(selector);
        const target = found?.matches(`${FIELD}, [tabindex]`) ? found : found?.querySelector(FIELD);
        if (target instanceof HTMLElement) return target.focus();
      }
    }),
  );
}

/** Focuses the field of a pointer, or of the nearest value around it. */
export function focusField(pointer) {
  const path = parsePointer(pointer);
  const around = path.map((_, index) => `#${idOf(toPointer(path.slice(0, path.length - index)))}`);
  focusSoon(...around, '#json-text', 'main h1');
}

const SECTIONS = { BODY: 'part-body', FOOTER: 'part-footer', LIMITED_TIME_OFFER: 'part-offer', CAROUSEL: 'part-cards' };

/** Focuses the first field of a part that was added, or what adds it again after it was removed. */
export const focusPart = (type) =>
  focusSoon(`[aria-labelledby=${SECTIONS[type]}] .part-body`, '[aria-labelledby=part-more] .part-body', 'main h1');
