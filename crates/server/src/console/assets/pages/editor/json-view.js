// The document as JSON: editable, checked as typed, violations lead to their place.

import { html, live, nothing } from '../../lit.js';
import { editor as t } from '../../strings/editor.js';
import { icon } from '../../ui/icons.js';
import { fitsForm, locate } from './document.js';
import { violationList } from './messages.js';
import { parsePointer } from './pointer.js';

const ID = 'json-text';

/** @param {import('./state.js').Editor} editor */
export function jsonView(editor) {
  const isBroken = editor.jsonError !== '';
  const options = { withPointer: true, open: (pointer) => select(editor, pointer) };
  return html`<section class="card part" aria-labelledby="part-json">
    <div class="part-head">
      <h2 id="part-json">${t.json}</h2>
      <button
        class="button button-small"
        type="button"
        ?disabled=${isBroken}
        @click=${() => editor.changeText(JSON.stringify(editor.document, null, 2))}
      >
        ${t.format}
      </button>
    </div>
    <div class="part-body">
      <div class="field">
        <label class="label" for=${ID}>${t.jsonLabel}</label>
        <p class="hint" id="json-hint">${t.jsonHint}</p>
        <textarea
          id=${ID}
          class="textarea json"
          dir="ltr"
          spellcheck="false"
          autocapitalize="none"
          autocomplete="off"
          aria-describedby="json-hint json-messages"
          aria-invalid=${isBroken || editor.violations.length > 0 ? 'true' : 'false'}
          .value=${live(editor.text ?? '')}
          @input=${(event) => editor.changeText(event.target.value)}
        ></textarea>
        <div id="json-messages" class="messages">
          ${isBroken ? html`<p class="json-error">${icon('alert')}${t.jsonError(editor.jsonError)}</p>` : nothing}
          ${!isBroken && !fitsForm(editor.document) ? html`<p class="hint">${t.jsonOnly}</p>` : nothing}
          ${isBroken ? nothing : html`${violationList(editor, editor.violations, options)}${violationList(editor, editor.warnings, { ...options, kind: 'warning' })}`}
        </div>
      </div>
    </div>
  </section>`;
}

/** Selects the value at a pointer, or the nearest value around it. */
function select(editor, pointer) {
  const area = /** @type {HTMLTextAreaElement} */ (document.getElementById(ID));
  const path = parsePointer(pointer);
  for (let length = path.length; length >= 0; length -= 1) {
    const range = locate(editor.text, path.slice(0, length));
    if (range !== null) {
      area.focus();
      area.setSelectionRange(range.start, range.end);
      const line = area.value.slice(0, range.start).split('\n').length;
      area.scrollTop = (line - 4) * Number.parseFloat(getComputedStyle(area).lineHeight);
      return;
    }
  }
}
