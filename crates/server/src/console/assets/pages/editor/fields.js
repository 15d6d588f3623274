// Form fields: label, highlighted text, counter, samples of the original, violations.

import { classMap, html, ifDefined, live, nothing, repeat } from '../../lit.js';
import { editor as t } from '../../strings/editor.js';
import { icon } from '../../ui/icons.js';
import { placeholderMarks, segments, violationMarks } from '../../violations.js';
import { idOf } from './focus.js';
import { messagesAt } from './messages.js';
import { at, removeAt, setAt } from './pointer.js';

/**
 * What the sections of the form share during one rendering.
 * @typedef {{
 *   editor: import('./state.js').Editor,
 *   violations: import('../../violations.js').Placement,
 *   warnings: import('../../violations.js').Placement,
 *   checked: unknown,
 *   original: (pointer: string) => string | undefined,
 * }} Form
 */

const shown = (value) =>
  typeof value === 'string' ? value : value === undefined || value === null ? '' : JSON.stringify(value);

/**
 * A text field. Placeholders and violations are marked behind a plain textarea.
 * @param {Form} form
 * @param {{pointer: string, label: string, hint?: unknown, limit?: {max: number, whatsapp?: number}, lines?: number,
 *   optional?: boolean, code?: boolean, readonly?: boolean, list?: string, hideLabel?: boolean, tools?: (id: string) => unknown,
 *   input?: (value: string) => void, wide?: boolean}} options
 */
export function textField(form, options) {
  const { pointer, label, hint, limit, lines = 1, optional = false, code = false, readonly = false } = options;
  const { editor } = form;
  const value = shown(editor.value(pointer));
  const id = idOf(pointer);
  const messages = messagesAt(form, pointer);
  const original = form.original(pointer);
  const isCurrent = shown(at(form.checked, pointer)) === value;
  const marks = [
    ...(code ? [] : placeholderMarks(value)),
    ...(isCurrent ? violationMarks(messages.warnings, 'warning') : []),
    ...(isCurrent ? violationMarks(messages.violations, 'violation') : []),
  ];
  const describedBy = [hint ? `${id}-hint` : '', limit ? `${id}-count` : '', messages.id].filter(Boolean).join(' ');
  const input = options.input ?? ((text) => setText(editor, pointer, text, optional));
  return html`<div class=${classMap({ field: true, 'field-text': true, 'field-pair': original !== undefined })}>
    <div class="field-head">
      <label class=${options.hideLabel ? 'visually-hidden' : 'label'} for=${id}
        >${label}${optional ? html` <span class="quiet">${t.optional}</span>` : nothing}</label
      >
      ${limit ? counter(id, value, limit) : nothing}
    </div>
    ${original === undefined ? nothing : originalText(editor, original)}
    <div class="field-main">
      ${options.tools?.(id) ?? nothing}
      <div class=${classMap({ marked: true, 'marked-code': code, 'is-invalid': messages.violations.length > 0 })}>
        <div class="marked-back" aria-hidden="true" dir="auto">${segments(value, marks).map(markedPart)}${'\u200b'}</div>
        <textarea
          id=${id}
          class="marked-input"
          rows=${lines}
          dir="auto"
          spellcheck=${code ? 'false' : 'true'}
          autocapitalize=${code ? 'none' : 'sentences'}
          autocomplete="off"
          ?readonly=${readonly}
          aria-invalid=${messages.violations.length > 0 ? 'true' : 'false'}
          aria-describedby=${describedBy}
          .value=${live(value)}
          @keydown=${lines === 1 ? onlyOneLine : nothing}
          @input=${(event) => input(lines === 1 ? event.target.value.replaceAll(/[\r\n]+/g, ' ') : event.target.value)}
        ></textarea>
      </div>
      ${original !== undefined && original !== '' && original === value ? html`<p class="hint untranslated">${icon('info')}${t.untranslated}</p>` : nothing}
      ${hint ? html`<p class="hint" id=${`${id}-hint`}>${hint}</p>` : nothing} ${messages.view}
    </div>
  </div>`;
}

const markedPart = ({ text, kinds }) =>
  kinds.length ? html`<mark class=${kinds.map((it) => `mark-${it}`).join(' ')}>${text}</mark>` : text;

function onlyOneLine(event) {
  if (event.key === 'Enter' && !event.isComposing && !event.ctrlKey && !event.metaKey) event.preventDefault();
}

function setText(editor, pointer, text, optional) {
  editor.change(optional && text === '' ? removeAt(editor.document, pointer) : setAt(editor.document, pointer, text));
}

function counter(id, value, limit) {
  const { length } = [...value];
  const isOver = length > limit.max;
  const isOverWhatsapp = limit.whatsapp !== undefined && length > limit.whatsapp;
  return html`<span
    id=${`${id}-count`}
    class=${classMap({ count: true, 'is-over': isOver, 'is-near': isOverWhatsapp && !isOver })}
  >
    ${t.count(length, limit.max)}${isOverWhatsapp ? t.countWhatsapp(limit.whatsapp) : ''}
  </span>`;
}

const originalText = (editor, text) =>
  html`<div class="original">
    <span class="original-label">${t.original(String(editor.source?.language ?? ''))}</span>
    <p class="original-text" dir="auto">${text}</p>
  </div>`;

/**
 * A plain input: samples, numbers, phone numbers.
 * @param {Form} form
 * @param {{pointer: string, label: unknown, hint?: unknown, type?: string, optional?: boolean, readonly?: boolean, list?: string,
 *   input?: (value: string) => void, inputmode?: string}} options
 */
export function inputField(
  form,
  { pointer, label, hint, type = 'text', optional = false, readonly = false, list, input, inputmode },
) {
  const { editor } = form;
  const id = idOf(pointer);
  const messages = messagesAt(form, pointer);
  const set = (text) => {
    const isNumber = type === 'number' && text !== '' && Number.isFinite(Number(text));
    if (isNumber) editor.set(pointer, Number(text));
    else setText(editor, pointer, text, optional || type === 'number');
  };
  return html`<div class="field">
    <label class="label" for=${id}
      >${label}${optional ? html` <span class="quiet">${t.optional}</span>` : nothing}</label
    >
    <input
      id=${id}
      class="input"
      type=${type}
      dir=${type === 'text' ? 'auto' : 'ltr'}
      inputmode=${ifDefined(inputmode)}
      list=${ifDefined(list)}
      autocomplete="off"
      ?readonly=${readonly}
      aria-invalid=${messages.violations.length > 0 ? 'true' : 'false'}
      aria-describedby=${[hint ? `${id}-hint` : '', messages.id].filter(Boolean).join(' ')}
      .value=${live(shown(editor.value(pointer)))}
      @input=${(event) => (input ?? set)(event.target.value)}
    />
    ${hint ? html`<p class="hint" id=${`${id}-hint`}>${hint}</p>` : nothing} ${messages.view}
  </div>`;
}

/**
 * A choice from a few values.
 * @param {Form} form
 * @param {{pointer: string, label: string, options: [string, string][], change?: (value: string) => void, hideLabel?: boolean, fallback?: string}} options
 */
export function selectField(form, { pointer, label, options, change, hideLabel = false, fallback = '' }) {
  const { editor } = form;
  const id = idOf(pointer);
  const messages = messagesAt(form, pointer);
  const value = String(editor.value(pointer) ?? fallback).toUpperCase();
  const isKnown = options.some(([key]) => key === value);
  const choices = isKnown ? options : [[value, value], ...options];
  return html`<div class="field">
    <label class=${hideLabel ? 'visually-hidden' : 'label'} for=${id}>${label}</label>
    <select
      id=${id}
      class="select"
      aria-invalid=${messages.violations.length > 0 ? 'true' : 'false'}
      aria-describedby=${messages.id}
      .value=${live(value)}
      @change=${(event) => (change ? change(event.target.value) : setText(editor, pointer, event.target.value, options[0][0] === ''))}
    >
      ${repeat(
        choices,
        ([key]) => key,
        ([key, text]) => html`<option value=${key} ?selected=${key === value}>${text}</option>`,
      )}
    </select>
    ${messages.view}
  </div>`;
}

/**
 * A switch for a boolean.
 * @param {Form} form
 * @param {{pointer: string, label: string, optional?: boolean, fallback?: boolean}} options
 */
export function checkField(form, { pointer, label, optional = false, fallback = false, readonly = false }) {
  const { editor } = form;
  const messages = messagesAt(form, pointer);
  const change = (event) => {
    const { checked } = event.target;
    editor.change(
      optional && checked === fallback ? removeAt(editor.document, pointer) : setAt(editor.document, pointer, checked),
    );
  };
  return html`<div class="field">
    <label class="switch"
      ><input
        type="checkbox"
        id=${idOf(pointer)}
        ?disabled=${readonly}
        aria-describedby=${messages.id}
        .checked=${live((editor.value(pointer) ?? fallback) === true)}
        @change=${change}
      /><span>${label}</span></label
    >
    ${messages.view}
  </div>`;
}

/**
 * A choice that shows all its values at once.
 * @param {{name: string, legend: string, value: string, options: [string, string, string?][], change: (value: string) => void, disabled?: boolean, describedBy?: string}} options
 */
export const segmented = ({ name, legend, value, options, change, disabled = false, describedBy }) =>
  html`<fieldset class="segments" ?disabled=${disabled} aria-describedby=${ifDefined(describedBy)}>
    <legend class="label">${legend}</legend>
    <div class="segments-row">
      ${options.map(
        ([key, text, note]) =>
          html`<label class="segment"
            ><input
              type="radio"
              name=${name}
              value=${key}
              .checked=${live(key === value)}
              @change=${() => change(key)}
            /><span class="segment-text">${text}${note ? html`<small>${note}</small>` : nothing}</span></label
          >`,
      )}
    </div>
  </fieldset>`;
