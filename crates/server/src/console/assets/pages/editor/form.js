// The form: all sections, and the violations that belong to none of their fields.

import { html, nothing } from '../../lit.js';
import { editor as t } from '../../strings/editor.js';
import { Placement } from '../../violations.js';
import { body } from './body.js';
import { buttons } from './buttons.js';
import { cards } from './cards.js';
import { componentPointer } from './document.js';
import { delivery, footer, offer, remover } from './extras.js';
import { header } from './header.js';
import { violationList } from './messages.js';
import { at, parsePointer } from './pointer.js';
import { basics, section } from './sections.js';

/** The whole form. @param {import('./state.js').Editor} editor */
export function form(editor) {
  const { shownViolations, warnings } = editor;
  let checked;
  try {
    checked = JSON.parse(editor.checked);
  } catch {
    checked = undefined;
  }
  const shared = {
    editor,
    violations: new Placement(shownViolations),
    warnings: new Placement(warnings),
    checked,
    original: (pointer) => original(editor, pointer),
  };
  const list = '/components';
  const parts = [
    basics(shared),
    section('part-header', t.header, header(shared, list)),
    section('part-body', t.body, body(shared, list)),
    section('part-footer', t.footer, footer(shared, list), remover(shared, list, 'FOOTER')),
    section('part-buttons', t.buttons, buttons(shared, list)),
    editor.rulebook === 'whatsapp' ? extras(shared, list) : nothing,
  ];
  // Last: the rest is what no field has taken.
  return html`${rest(editor, shared.violations.rest(), shared.warnings.rest())}${parts}`;
}

/** What only some templates of WhatsApp have: a section each once it is there. */
function extras(shared, list) {
  const { document } = shared.editor;
  const hasOffer = componentPointer(document, list, 'LIMITED_TIME_OFFER') !== null;
  const hasCards = componentPointer(document, list, 'CAROUSEL') !== null;
  const add = html`<div class="button-row">${hasOffer ? nothing : offer(shared, list)}${hasCards ? nothing : cards(shared)}</div>`;
  return html`${hasOffer ? section('part-offer', t.offer, offer(shared, list), remover(shared, list, 'LIMITED_TIME_OFFER')) : nothing}
  ${hasCards ? section('part-cards', t.cards, cards(shared), remover(shared, list, 'CAROUSEL')) : nothing}
  ${section('part-more', t.more, html`${hasOffer && hasCards ? nothing : add}${delivery(shared)}`)}`;
}

function rest(editor, violations, warnings) {
  const count = editor.moreViolations;
  if (violations.length + warnings.length + count === 0) return nothing;
  return section(
    'part-rest',
    violations.length + count > 0 ? t.rest : t.restWarnings,
    html`${violationList(editor, violations, { withPointer: true })}${count > 0 ? html`<p class="hint">${t.moreViolations(count)}</p>` : nothing}
    ${violationList(editor, warnings, { kind: 'warning', withPointer: true })}`,
  );
}

/** The text of the original beside a text of its translation. */
function original(editor, pointer) {
  if (editor.languageOf === null || editor.source === null || !pointer.endsWith('/text')) return undefined;
  const [first, index, ...path] = parsePointer(pointer);
  if (first !== 'components') return undefined;
  const type = String(at(editor.document, ['components', index, 'type']) ?? '').toUpperCase();
  const text = at(
    editor.source.components?.find((it) => it.type === type),
    path,
  );
  return typeof text === 'string' ? text : undefined;
}
