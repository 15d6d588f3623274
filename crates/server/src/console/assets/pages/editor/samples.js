// Samples of placeholders: they follow the text, and come back with a placeholder that comes back.

import { html, nothing } from '../../lit.js';
import { editor as t } from '../../strings/editor.js';
import * as model from './document.js';
import { inputField } from './fields.js';
import { groupMessages } from './messages.js';
import { setAt } from './pointer.js';

/** Sets a text; its samples follow its placeholders. */
export function setWithSamples(editor, pointer, text) {
  const known = rememberedSamples(editor, pointer);
  const document = setAt(editor.document, `${pointer}/text`, text);
  editor.change(model.withSamples(document, pointer, known, editor.rulebook));
}

/** By the component's place, not its index: a header that is added moves the body. */
function rememberedSamples(editor, pointer) {
  const key = model.stablePointer(editor.document, pointer);
  if (!editor.samples.has(key)) editor.samples.set(key, new Map());
  const known = editor.samples.get(key);
  for (const { name, value } of model.samples(editor.document, pointer)) {
    if (value !== '') known.set(name, value);
  }
  return known;
}

/** @param {import('./fields.js').Form} form @param {string} pointer of the component */
export function sampleFields(form, pointer) {
  const { editor } = form;
  const samples = model.samples(editor.document, pointer);
  if (samples.length === 0) return nothing;
  const set = (name, value) => {
    const known = rememberedSamples(editor, pointer).set(name, value);
    editor.change(model.withSamples(editor.document, pointer, known, editor.rulebook));
  };
  return html`<fieldset class="samples">
    <legend class="label">${t.samples} <span class="quiet">${t.samplesHint}</span></legend>
    <div class="samples-grid">
      ${samples.map((it) =>
        inputField(form, {
          pointer: it.pointer,
          label: html`<span class="visually-hidden">${t.sampleOf(it.name)}</span
            ><code class="slot" aria-hidden="true">{{${it.name}}}</code>`,
          input: (value) => set(it.name, value),
        }),
      )}
    </div>
    ${groupMessages(form, `${pointer}/example`)}
  </fieldset>`;
}
