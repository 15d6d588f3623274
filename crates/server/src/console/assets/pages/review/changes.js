// What differs between two documents: word diff per text, and the placeholders that come and go.

import { changedLeaves, placeholderChanges, wordDiff } from '../../diff.js';
import { html, nothing } from '../../lit.js';
import { diff as t } from '../../strings/proof.js';

/** The differences of the documents that are shown, by the later one: every render needs them. @type {WeakMap<object, {before: unknown, changes: any[]}>} */
const computed = new WeakMap();

/** The changed leaves with their word diffs. */
function changesOf(before, after) {
  const compute = () => changedLeaves(before, after).map((it) => ({ path: it.path, words: wordDiff(it.before, it.after) }));
  if (after === null || typeof after !== 'object') return compute();
  const kept = computed.get(after);
  if (kept?.before === before) return kept.changes;
  const changes = compute();
  computed.set(after, { before, changes });
  return changes;
}

function changePart({ op, text }) {
  if (op === 'delete') return html`<del><span class="visually-hidden">${t.removed} </span>${text}</del>`;
  if (op === 'insert') return html`<ins><span class="visually-hidden">${t.added} </span>${text}</ins>`;
  return text;
}

/** Changes of samples and settings matter less than those of texts, of the kind of a header and of what a button does. */
const isMinor = (path) => /(^|\/)example(\/|$)/.test(path) || path === 'allow_category_change';

const list = (changes) =>
  html`<dl class="changes">
    ${changes.map(
      ({ path, words }) =>
        html`<div class="change" data-path=${path}>
          <dt>${t.leaf(path)}</dt>
          <dd><p class="diff" dir="auto">${words.map(changePart)}</p></dd>
        </div>`,
    )}
  </dl>`;

/**
 * @param {unknown} before
 * @param {unknown} after
 * @param {{rest?: string}} [options] `rest` titles the minor changes, which are folded then
 */
export function changesView(before, after, { rest } = {}) {
  const changes = changesOf(before, after);
  if (changes.length === 0) return html`<p class="quiet">${t.none}</p>`;
  const major = rest === undefined ? changes : changes.filter((it) => !isMinor(it.path));
  const minor = rest === undefined ? [] : changes.filter((it) => isMinor(it.path));
  return html`${major.length ? list(major) : nothing}
  ${
    minor.length
      ? html`<details class="minor" ?open=${major.length === 0}>
          <summary>${rest} <span class="quiet">${minor.length}</span></summary>
          ${list(minor)}
        </details>`
      : nothing
  }`;
}

/** The placeholders that come and go. */
export function placeholderSummary(before, after) {
  const { added, removed } = placeholderChanges(before, after);
  const group = (title, items, kind) =>
    items.length
      ? html`<div class="placeholders placeholders-${kind}" data-testid=${`placeholders-${kind}`}>
          <span class="label">${title}</span>
          ${items.map((it) => html`<span class="placeholder-change"><code>{{${it.name}}}</code> ${t.leaf(it.path)}</span>`)}
        </div>`
      : nothing;
  return html`${group(t.placeholdersAdded, added, 'added')}${group(t.placeholdersRemoved, removed, 'removed')}`;
}
