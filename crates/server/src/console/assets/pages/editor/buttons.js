// The buttons of a message: add, remove, reorder, change.

import { html, nothing } from '../../lit.js';
import { editor as t } from '../../strings/editor.js';
import { icon } from '../../ui/icons.js';
import * as model from './document.js';
import { checkField, inputField, selectField, textField } from './fields.js';
import { focusSoon, idOf } from './focus.js';
import { buttonFields, buttonTypes, lengths, maxButtons, newButton } from './limits.js';
import { groupMessages } from './messages.js';
import { removeAt, setAt } from './pointer.js';

/**
 * @param {import('./fields.js').Form} form
 * @param {string} list pointer of the list of components
 * @param {{types?: string[], max?: number}} [options]
 */
export function buttons(
  form,
  list,
  { types = buttonTypes(form.editor.rulebook), max = maxButtons(form.editor.rulebook) } = {},
) {
  const { editor } = form;
  const pointer = model.componentPointer(editor.document, list, 'BUTTONS');
  const items = pointer === null ? [] : `${pointer}/buttons`;
  const found = pointer === null ? [] : editor.value(items);
  const all = Array.isArray(found) ? found : [];
  return html`
    ${
      all.length === 0
        ? html`<p class="hint">${t.noButtons}</p>`
        : html`<ol class="button-items">
            ${all.map((button, index) => item(form, { items, index, count: all.length, button, types, pointer }))}
          </ol>`
    }
    ${all.length < max ? adder(form, list, pointer, types) : nothing}
    ${pointer === null ? nothing : groupMessages(form, pointer)}
  `;
}

function item(form, { items, index, count, button, types, pointer }) {
  const { editor } = form;
  const own = `${items}/${index}`;
  const move = (to) => {
    editor.forget(items);
    editor.change(model.moved(editor.document, items, index, to));
    editor.context.announce(t.moved(to + 1));
    const wanted = to > index ? 'down' : 'up';
    const isAtEdge = to === 0 || to === count - 1;
    const other = wanted === 'down' ? 'up' : 'down';
    focusSoon(`#${idOf(`${items}/${to}`)}-${isAtEdge ? other : wanted}`);
  };
  const remove = () => {
    editor.forget(items);
    editor.change(removeAt(editor.document, count === 1 ? pointer : own));
    editor.context.announce(t.removed);
    focusSoon(
      count === 1
        ? `#${idOf(pointer.replace(/\/\d+$/, ''))}-add`
        : `#${idOf(`${items}/${Math.max(0, index - 1)}`)}-remove`,
    );
  };
  const options = types.map((it) => [it, t.buttonTypes[it] ?? it]);
  return html`<li class="button-item" aria-label=${t.button(index + 1)}>
    <div class="button-item-head">
      ${selectField(form, {
        pointer: `${own}/type`,
        label: `${t.button(index + 1)}: ${t.buttonType}`,
        hideLabel: true,
        options,
        change: (type) => editor.set(own, newButton(type, button)),
      })}
      <div class="button-item-tools">
        <button
          class="icon-button"
          type="button"
          id=${`${idOf(own)}-up`}
          aria-label=${t.up(index + 1)}
          title=${t.up(index + 1)}
          ?disabled=${index === 0}
          @click=${() => move(index - 1)}
        >
          ${icon('up')}
        </button>
        <button
          class="icon-button"
          type="button"
          id=${`${idOf(own)}-down`}
          aria-label=${t.down(index + 1)}
          title=${t.down(index + 1)}
          ?disabled=${index === count - 1}
          @click=${() => move(index + 1)}
        >
          ${icon('down')}
        </button>
        <button
          class="icon-button"
          type="button"
          id=${`${idOf(own)}-remove`}
          aria-label=${t.remove(index + 1)}
          title=${t.remove(index + 1)}
          @click=${remove}
        >
          ${icon('trash')}
        </button>
      </div>
    </div>
    <div class="button-item-fields">${fields(form, own, button)}</div>
    ${groupMessages(form, own)}
  </li>`;
}

function fields(form, own, button) {
  const wanted = buttonFields(button);
  return wanted.length === 0
    ? html`<p class="hint">${t.noFields}</p>`
    : wanted.map((it) => field(form, own, button, it));
}

function field(form, own, button, { key, kind, optional, options }) {
  const { editor } = form;
  const limits = lengths(editor.rulebook);
  const pointer = `${own}/${key}`;
  const label = t.buttonFields[key] ?? key;
  if (kind === 'label') return textField(form, { pointer, label, limit: limits.label, optional });
  if (kind === 'url') {
    return html`${textField(form, { pointer, label, limit: limits.url, hint: t.urlHint, input: (url) => setUrl(editor, own, url) })}${urlSample(form, own, button)}`;
  }
  if (kind === 'choice') {
    return selectField(form, {
      pointer,
      label,
      options: options.map((it) => [it, it === '' ? '–' : it.toLowerCase().replaceAll('_', ' ')]),
    });
  }
  if (kind === 'check') return checkField(form, { pointer, label });
  if (kind === 'code') {
    const isList = Array.isArray(button.example);
    return textField(form, { pointer: isList ? `${pointer}/0` : pointer, label, limit: limits.code, code: true });
  }
  return inputField(form, {
    pointer,
    label,
    optional,
    type: kind === 'phone' ? 'tel' : 'text',
    inputmode: kind === 'phone' ? 'tel' : undefined,
  });
}

const endsWithPlaceholder = (url) => typeof url === 'string' && /\{\{\w+\}\}$/.test(url);

/** Sets a URL; a sample that it has no place for goes. */
function setUrl(editor, own, url) {
  let document = setAt(editor.document, `${own}/url`, url);
  const sample = editor.value(`${own}/example`);
  const place = model.stablePointer(editor.document, own);
  if (!endsWithPlaceholder(url) && sample !== undefined) {
    editor.parked.set(place, sample);
    document = removeAt(document, `${own}/example`);
  } else if (endsWithPlaceholder(url) && sample === undefined && editor.rulebook === 'whatsapp') {
    document = setAt(document, `${own}/example`, editor.parked.get(place) ?? ['']);
  }
  editor.change(document);
}

function urlSample(form, own, button) {
  if (!endsWithPlaceholder(button.url) && button.example === undefined) return nothing;
  const pointer = Array.isArray(button.example) ? `${own}/example/0` : `${own}/example`;
  return inputField(form, { pointer, label: t.urlSample, optional: form.editor.rulebook === 'v1' });
}

function adder(form, list, pointer, types) {
  const { editor } = form;
  const id = `${idOf(list)}-new`;
  const add = () => {
    const select = /** @type {HTMLSelectElement} */ (document.getElementById(id));
    const button = newButton(select.value);
    const items = pointer === null ? [] : (editor.value(`${pointer}/buttons`) ?? []);
    const next = [...(Array.isArray(items) ? items : []), button];
    editor.change(
      pointer === null
        ? model.withComponent(editor.document, list, { type: 'BUTTONS', buttons: next })
        : setAt(editor.document, `${pointer}/buttons`, next),
    );
    const owner = pointer ?? model.componentPointer(editor.document, list, 'BUTTONS');
    const first = buttonFields(button)[0];
    focusSoon(`#${idOf(`${owner}/buttons/${next.length - 1}/${first?.key ?? 'type'}`)}`);
  };
  return html`<div class="adder">
    <label class="visually-hidden" for=${id}>${t.newButtonType}</label>
    <select class="select" id=${id}>
      ${types.map((it) => html`<option value=${it}>${t.buttonTypes[it] ?? it}</option>`)}
    </select>
    <button class="button button-small" type="button" id=${`${idOf(list)}-add`} @click=${add}>
      ${icon('plus')}${t.addButton}
    </button>
  </div>`;
}
