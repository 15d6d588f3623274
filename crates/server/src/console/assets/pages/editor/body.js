// The body of a message: its text with a toolbar, and its samples.

import { html, nothing } from '../../lit.js';
import { editor as t } from '../../strings/editor.js';
import { icon } from '../../ui/icons.js';
import * as model from './document.js';
import { checkField, textField } from './fields.js';
import { focusField } from './focus.js';
import { lengths } from './limits.js';
import { groupMessages } from './messages.js';
import { sampleFields, setWithSamples } from './samples.js';

/** What surrounds formatted text. */
const MARKS = { bold: '*', italic: '_', strike: '~', monospace: '```' };
const SIGNS = {
  bold: html`<b>B</b>`,
  italic: html`<i>I</i>`,
  strike: html`<s>S</s>`,
  monospace: html`<code>&lt;&gt;</code>`,
};

/**
 * @param {import('./fields.js').Form} form
 * @param {string} list pointer of the list of components
 * @param {{isCard?: boolean}} [options]
 */
export function body(form, list, { isCard = false } = {}) {
  const { editor } = form;
  const pointer = model.componentPointer(editor.document, list, 'BODY');
  if (pointer === null) {
    const fresh = { type: 'BODY', text: '' };
    return html`<button
        class="button button-small"
        type="button"
        @click=${() => {
          editor.change(model.withComponent(editor.document, list, fresh));
          focusField(`${model.componentPointer(editor.document, list, 'BODY')}/text`);
        }}
      >
        ${icon('plus')}${isCard ? t.cardText : t.bodyText}
      </button>
      ${isCard ? nothing : groupMessages(form, list, { below: false })}`;
  }
  const isWhatsapp = editor.rulebook === 'whatsapp';
  const isAuthentication = isWhatsapp && String(editor.value('/category')).toUpperCase() === 'AUTHENTICATION';
  const hasNoText = isAuthentication && editor.value(`${pointer}/text`) === undefined;
  const security = `${pointer}/add_security_recommendation`;
  return html`
    ${
      hasNoText
        ? html`<p class="hint">${t.authenticationNote}</p>`
        : html`${textField(form, {
            pointer: `${pointer}/text`,
            label: isCard ? t.cardText : t.bodyText,
            lines: isCard ? 3 : 6,
            limit: lengths(editor.rulebook)[isCard ? 'cardBody' : 'body'],
            tools: (id) => toolbar(editor, id),
            input: (text) => setWithSamples(editor, pointer, text),
          })}${sampleFields(form, pointer)}`
    }
    ${isAuthentication || editor.value(security) !== undefined ? checkField(form, { pointer: security, label: t.security, optional: true }) : nothing}
    ${groupMessages(form, pointer)}
  `;
}

function toolbar(editor, id) {
  return html`<div class="format-bar" role="group" aria-label=${t.toolbar}>
    ${Object.entries(MARKS).map(
      ([name, mark]) =>
        html`<button
          class="tool"
          type="button"
          title=${t.format_[name]}
          aria-label=${t.format_[name]}
          aria-controls=${id}
          @click=${() => surround(id, mark)}
        >
          ${SIGNS[name]}
        </button>`,
    )}
    <button class="tool tool-wide" type="button" aria-controls=${id} @click=${() => insertPlaceholder(editor, id)}>
      <span aria-hidden="true" class="mono">{{ }}</span>${t.insert}
    </button>
  </div>`;
}

const area = (id) => /** @type {HTMLTextAreaElement} */ (document.getElementById(id));

/** Types a text at the cursor. `insertText` keeps the browser's undo; it is deprecated, but has no successor. */
function type(field, text) {
  field.focus();
  if (document.execCommand?.('insertText', false, text)) return;
  field.setRangeText(text, field.selectionStart, field.selectionEnd, 'end');
  field.dispatchEvent(new Event('input', { bubbles: true }));
}

function surround(id, mark) {
  const field = area(id);
  const { selectionStart: start, selectionEnd: end, value } = field;
  const selected = value.slice(start, end);
  const inner = selected.trim();
  const lead = selected.slice(0, selected.indexOf(inner));
  const trail = selected.slice(lead.length + inner.length);
  type(field, `${lead}${mark}${inner}${mark}${trail}`);
  const from = start + lead.length + mark.length;
  field.setSelectionRange(from, from + inner.length);
}

function insertPlaceholder(editor, id) {
  const field = area(id);
  type(field, model.nextPlaceholder(field.value, model.parameterFormat(editor.document)));
}
