// What a page shows instead of content: loading, an error, nothing there.

import { html, nothing } from '../lit.js';
import { Problem } from '../api.js';
import { strings as t } from '../strings.js';
import { icon } from './icons.js';
import { marked } from './text.js';

/** Placeholder rows; they appear only after a moment, so that fast answers do not flicker. @param {number} [rows] */
export const loading = (rows = 4) => html`
  <div class="loading" role="status"><span class="visually-hidden">${t.loading}</span>
    ${Array.from({ length: rows }, () => html`<div class="skeleton" aria-hidden="true"></div>`)}
  </div>`;

/** Title and text for any error. @param {unknown} error */
export function explain(error) {
  if (!(error instanceof Problem)) return { title: t.errors.title, text: t.errors.unexpected };
  const known = t.errors.bySlug[error.slug];
  if (known) return { title: known.title, text: known.text || error.detail };
  return { title: error.title || t.errors.title, text: error.detail };
}

/** An error in place of content. @param {unknown} error @param {() => void} [retry] */
export function failure(error, retry) {
  const { title, text } = explain(error);
  return html`<section class="state state-bad" role="alert">
    ${icon('alert')}
    <h2>${title}</h2>
    <p>${marked(text)}</p>
    ${error instanceof Problem && error.requestId ? html`<p class="quiet">${t.errors.requestId} <code>${error.requestId}</code></p>` : nothing}
    ${retry ? html`<button class="button" type="button" @click=${retry}>${t.actions.retry}</button>` : nothing}
  </section>`;
}

/** A line about an error beside the form that caused it. @param {unknown} error @param {() => void} [reload] offered if the content is outdated */
export function notice(error, reload) {
  if (!error) return nothing;
  const { title, text } = explain(error);
  return html`<div class="notice notice-bad" role="alert">${icon('alert')}<div><strong>${title}.</strong> ${marked(text)}
    ${reload && error instanceof Problem && error.status === 412 ? html`<button class="button button-small" type="button" @click=${reload}>${t.actions.reload}</button>` : nothing}</div></div>`;
}

/** @param {{title: string, text?: unknown, action?: unknown, mark?: string}} options */
export const empty = ({ title, text = nothing, action = nothing, mark = 'sheet' }) => html`
  <section class="state">${icon(mark)}<h2>${title}</h2><p>${text}</p>${action}</section>`;
