// "Show more" under a list that has a cursor.
import { html, nothing } from '../lit.js';
import { strings as t } from '../strings.js';

/** @param {{more: boolean, busy: boolean, load: () => void, label?: string}} options */
export const pager = ({ more, busy, load, label = t.actions.showMore }) => more
  ? html`<div class="pager"><button class="button" type="button" ?disabled=${busy} @click=${load}>${busy ? t.loading : label}</button></div>`
  : nothing;
