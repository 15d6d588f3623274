// The frame of a section, and the first one: name, language, category.

import { html, nothing } from '../../lit.js';
import { strings } from '../../strings.js';
import { editor as t } from '../../strings/editor.js';
import { icon } from '../../ui/icons.js';
import { languageName } from '../../ui/language.js';
import * as model from './document.js';
import { checkField, inputField, segmented, selectField, textField } from './fields.js';
import { languages, lengths } from './limits.js';
import { groupMessages } from './messages.js';
import { removeAt, setAt } from './pointer.js';

/** @typedef {import('./fields.js').Form} Form */

/** A titled part of the form. */
export const section = (id, title, content, tools = nothing) =>
  html`<section class="card part" aria-labelledby=${id}>
    <div class="part-head">
      <h2 id=${id}>${title}</h2>
      ${tools}
    </div>
    <div class="part-body">${content}</div>
  </section>`;

/** @param {Form} form */
export function basics(form) {
  const { editor } = form;
  const { rulebook } = editor;
  const isEdit = editor.id !== null;
  const code = editor.value('/language');
  const name = languageName(String(code ?? ''), '');
  const categories = Object.entries(strings.category).map(([key, text]) => [key, text, t.categoryHint[key]]);
  return section(
    'part-basics',
    t.basics,
    html`
      <div class="columns">
        ${textField(form, {
          pointer: '/name',
          label: t.name,
          code: true,
          readonly: isEdit,
          limit: isEdit ? undefined : lengths(rulebook).name,
          hint: isEdit ? t.fixed : nameHint(editor),
          input: (value) => {
            editor.nameTouched = true;
            editor.set('/name', value);
          },
        })}
        ${inputField(form, {
          pointer: '/language',
          label: t.language,
          readonly: isEdit,
          list: isEdit ? undefined : 'languages',
          hint: isEdit ? `${name ? `${name}. ` : ''}${t.fixed}` : name || t.languageHint[rulebook],
          input: (value) => editor.change(withLanguage(editor, value)),
        })}
      </div>
      <datalist id="languages">
        ${languages(rulebook).map((it) => html`<option value=${it}>${languageName(it)}</option>`)}
      </datalist>
      <div id="f-category">
        ${segmented({
          name: 'category',
          legend: t.category,
          value: String(editor.value('/category') ?? '').toUpperCase(),
          options: categories,
          change: (value) => editor.change(withCategory(editor, value)),
        })}
        ${groupMessages(form, '/category')}
      </div>
      ${checkField(form, {
        pointer: '/allow_category_change',
        label: t.allowChange,
        optional: rulebook === 'whatsapp',
        fallback: rulebook === 'whatsapp',
        readonly: isEdit,
      })}
      ${
        rulebook === 'whatsapp'
          ? selectField(form, {
              pointer: '/parameter_format',
              label: t.parameterFormat,
              options: Object.entries(t.formats),
              fallback: 'POSITIONAL',
            })
          : nothing
      }
    `,
  );
}

function nameHint(editor) {
  const name = editor.value('/name');
  // A further language has the name of its template.
  const isShared = editor.languageOf !== null && name === editor.source?.name;
  const isFree =
    !isShared &&
    editor.isChecked &&
    typeof name === 'string' &&
    name !== '' &&
    !editor.violations.some((it) => it.pointer === '/name');
  return isFree ? html`<span class="is-free">${icon('check')}${t.nameFree}</span>` : t.nameHint[editor.rulebook];
}

/** Under `v1` a translation has a name of its own: it follows the language until it is typed by hand. */
function withLanguage(editor, language) {
  const document = setAt(editor.document, '/language', language);
  const isFollowing = editor.languageOf !== null && editor.rulebook === 'v1' && !editor.nameTouched;
  return isFollowing ? setAt(document, '/name', `${editor.source.name}_${language.toLowerCase()}`) : document;
}

/** WhatsApp writes the texts of AUTHENTICATION templates itself, and they have an OTP button. */
function withCategory(editor, category) {
  const document = setAt(editor.document, '/category', category);
  const body = model.componentPointer(document, '/components', 'BODY');
  if (editor.rulebook !== 'whatsapp' || body === null) return document;
  const text = editor.value(`${body}/text`);
  if (category !== 'AUTHENTICATION') return text === undefined ? setAt(document, `${body}/text`, '') : document;
  const bare = text === '' ? removeAt(document, `${body}/text`) : document;
  const hasButtons = model.componentPointer(bare, '/components', 'BUTTONS') !== null;
  const buttons = [{ type: 'OTP', otp_type: 'COPY_CODE' }];
  return hasButtons ? bare : model.withComponent(bare, '/components', { type: 'BUTTONS', buttons });
}
