// The header of a message or card: a text, an attachment, a location or a product.

import { html, nothing } from '../../lit.js';
import { editor as t } from '../../strings/editor.js';
import * as model from './document.js';
import { segmented, textField } from './fields.js';
import { idOf } from './focus.js';
import { headerFormats, isMedia, lengths } from './limits.js';
import { groupMessages } from './messages.js';
import { removeAt } from './pointer.js';
import { sampleFields, setWithSamples } from './samples.js';

/** @param {import('./fields.js').Form} form @param {string} list pointer of the list of components */
export function header(form, list, { formats = headerFormats(form.editor.rulebook) } = {}) {
  const { editor } = form;
  const pointer = model.componentPointer(editor.document, list, 'HEADER');
  const kind = pointer === null ? '' : String(editor.value(`${pointer}/format`) ?? '').toUpperCase();
  const options = [['', t.headerNone], ...formats.map((it) => [it, t.headerKinds[it]])];
  return html`
    ${segmented({
      name: `header${idOf(list)}`,
      legend: t.headerKind,
      value: kind,
      options,
      change: (value) => editor.change(withHeader(editor, list, pointer, value)),
    })}
    ${pointer === null ? nothing : headerContent(form, pointer, kind)}
    ${pointer === null ? nothing : groupMessages(form, pointer)}
  `;
}

function headerContent(form, pointer, kind) {
  const { rulebook } = form.editor;
  if (kind === 'TEXT') {
    return html`${textField(form, {
      pointer: `${pointer}/text`,
      label: t.headerText,
      limit: lengths(rulebook).header,
      input: (text) => setWithSamples(form.editor, pointer, text),
    })}${sampleFields(form, pointer)}`;
  }
  if (kind === 'MEDIA') {
    return textField(form, {
      pointer: `${pointer}/example/media_url`,
      label: t.mediaUrl,
      hint: t.mediaUrlHint,
      code: true,
      limit: lengths(rulebook).url,
    });
  }
  if (isMedia(kind)) {
    const handle = `${pointer}/example/header_handle`;
    const isList = typeof form.editor.value(handle) !== 'string';
    return textField(form, {
      pointer: isList ? `${handle}/0` : handle,
      label: t.handle,
      hint: t.handleHint,
      code: true,
    });
  }
  return html`<p class="hint">${t.noSample}</p>`;
}

/** Headers of other kinds are kept while the editor is open, so that trying kinds loses nothing. */
function withHeader(editor, list, pointer, kind) {
  let { document } = editor;
  const place = model.stablePointer(document, list);
  if (pointer !== null) {
    const previous = editor.value(pointer);
    editor.parked.set(`${place}:${String(previous.format).toUpperCase()}`, previous);
    document = removeAt(document, pointer);
  }
  if (kind === '') return document;
  const parked = editor.parked.get(`${place}:${kind}`);
  return model.withComponent(document, list, parked ?? newHeader(kind));
}

function newHeader(format) {
  if (format === 'TEXT') return { type: 'HEADER', format, text: '' };
  if (format === 'MEDIA') return { type: 'HEADER', format, example: { media_url: '' } };
  return isMedia(format) ? { type: 'HEADER', format, example: { header_handle: [''] } } : { type: 'HEADER', format };
}
