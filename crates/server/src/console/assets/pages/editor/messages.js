// Violations and warnings beside the fields that they are about, each with its fix.

import { html, ifDefined, nothing } from '../../lit.js';
import { paths } from '../../router.js';
import { editor as t } from '../../strings/editor.js';
import { icon } from '../../ui/icons.js';
import { fixFor } from '../../violations.js';
import { samplesAfterFix, withSamples } from './document.js';
import { focusField, idOf } from './focus.js';
import { at } from './pointer.js';

/** A text of the service whose quoted parts are code. */
export const quoted = (text) =>
  text.split(/(`[^`]+`)/).map((part) => (/^`.+`$/.test(part) ? html`<code>${part.slice(1, -1)}</code>` : part));

const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/**
 * Violations or warnings of one place, each with its fix.
 * @param {import('./state.js').Editor} editor
 * @param {import('../../violations.js').Violation[]} list
 * @param {{kind?: 'violation' | 'warning', id?: string, withPointer?: boolean, open?: (pointer: string) => void}} [options]
 */
export function violationList(editor, list, { kind = 'violation', id, withPointer = false, open } = {}) {
  if (list.length === 0) return nothing;
  return html`<ul class="violations violations-${kind}" id=${ifDefined(id)}>
    ${list.map((it) => violationItem(editor, it, kind, withPointer, open))}
  </ul>`;
}

function violationItem(editor, violation, kind, withPointer, open) {
  const fix = editor.jsonError === '' ? fixFor(violation, editor.document) : null;
  const place = violation.pointer || t.wholeDocument;
  return html`<li class="violation" data-testid=${kind} data-pointer=${violation.pointer} data-rule=${violation.rule}>
    ${icon(kind === 'violation' ? 'alert' : 'info')}
    <span class="violation-text">
      <span class="visually-hidden">${kind === 'violation' ? t.problem : t.warning}</span>
      ${
        withPointer
          ? open
            ? html`<button class="link-button mono" type="button" @click=${() => open(violation.pointer)}>
                ${place}
              </button>`
            : html`<code>${place}</code>`
          : nothing
      }
      ${quoted(withPointer ? violation.message : sentence(violation.message))}${hintOf(editor, violation)}
    </span>
    ${
      fix
        ? html`<button
            class="button button-small violation-fix"
            type="button"
            @click=${() => applyFix(editor, fix.document, violation.pointer)}
          >
            ${t.fix[fix.kind]}${fix.value ? html` <code>${fix.value}</code>` : nothing}
          </button>`
        : nothing
    }
  </li>`;
}

/** How to fix it. A name in use leads to the template that has it, if that is one's own. */
function hintOf(editor, { rule, hint }) {
  const own =
    rule === 'name-taken' ? (editor.existingId ?? /your own template (\d+)/.exec(hint ?? '')?.[1]) : undefined;
  if (own) return html`: <a href=${paths.template(own)}>${t.nameTaken}</a>`;
  return hint ? html`<span class="violation-hint">: ${quoted(hint)}</span>` : nothing;
}

/** Sets a corrected document; samples follow the placeholders of a corrected text, the focus goes to its field. */
function applyFix(editor, document, pointer) {
  focusField(pointer);
  const owner = pointer.replace(/\/text$/, '');
  const type = String(at(document, `${owner}/type`)).toUpperCase();
  const hasSamples = editor.text === null && owner !== pointer && (type === 'HEADER' || type === 'BODY');
  if (!hasSamples) return editor.change(document);
  const known = samplesAfterFix(editor.document, document, owner);
  return editor.change(withSamples(document, owner, known, editor.rulebook));
}

/** Violations and warnings at a pointer, with the id that describes the field. */
export function messagesAt(form, pointer) {
  const violations = form.violations.take(pointer);
  const warnings = form.warnings.take(pointer);
  const id = `${idOf(pointer)}-messages`;
  const lists = [violationList(form.editor, violations), violationList(form.editor, warnings, { kind: 'warning' })];
  const view = html`<div id=${id} class="messages">${lists}</div>`;
  return { violations, warnings, id, view };
}

/** Messages that belong to a group of fields rather than to one of them. */
export function groupMessages(form, pointer, { below = true } = {}) {
  const violations = below ? form.violations.takeBelow(pointer) : form.violations.take(pointer);
  const warnings = below ? form.warnings.takeBelow(pointer) : form.warnings.take(pointer);
  const withPointer = violations.some((it) => it.pointer !== pointer) || warnings.some((it) => it.pointer !== pointer);
  return html`${violationList(form.editor, violations, { withPointer })}${violationList(form.editor, warnings, { kind: 'warning', withPointer })}`;
}
