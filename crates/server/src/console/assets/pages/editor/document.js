// Template documents as the editor reads and changes them. The document is the only state: the
// form shows it field by field, the JSON view as a whole, and violations point into it.

import { at, parsePointer, setAt, toPointer } from './pointer.js';

/** Members of a template that the service adds when it is read. */
const READ_ONLY = new Set([
  'id',
  'status',
  'phone_number_id',
  'version',
  'live_version',
  'created_at',
  'updated_at',
  'rejection_reason',
  'previous_category',
  'reason',
  'quality_score',
  'account_id',
]);

/**
 * The document of a new template.
 * @param {"v1" | "whatsapp"} rulebook
 */
export function emptyDocument(rulebook) {
  const language = rulebook === 'v1' ? 'en_US' : 'en';
  const document = { name: '', language, category: 'UTILITY', allow_category_change: true };
  return { ...document, components: [{ type: 'BODY', text: '' }] };
}

/**
 * The document of an edit: a template as read, without what the service adds.
 * @param {Record<string, unknown>} template
 */
export function editableDocument(template) {
  return Object.fromEntries(Object.entries(template).filter(([key]) => !READ_ONLY.has(key)));
}

/**
 * The document of a copy. Names are unique under `v1`, also across languages.
 * @param {Record<string, unknown>} template
 * @param {"copy" | "language"} purpose
 * @param {"v1" | "whatsapp"} rulebook
 */
export function copyOf(template, purpose, rulebook) {
  const document = editableDocument(template);
  if (purpose === 'copy') return { ...document, name: `${document.name}_copy` };
  return { ...document, name: rulebook === 'v1' ? `${document.name}_` : document.name, language: '' };
}

/** Whether the form can show the value: an object whose components are a list of objects. */
export function fitsForm(document) {
  const isObject = (it) => it !== null && typeof it === 'object' && !Array.isArray(it);
  if (!isObject(document)) return false;
  const { components = [] } = document;
  return Array.isArray(components) && components.every(isObject);
}

/** @returns {"POSITIONAL" | "NAMED"} */
export function parameterFormat(document) {
  return String(document?.parameter_format ?? '').toUpperCase() === 'NAMED' ? 'NAMED' : 'POSITIONAL';
}

/**
 * The pointer of the component of a type in a list; `null` if there is none.
 * @param {unknown} document
 * @param {string} list pointer of the list
 * @param {string} type
 */
export function componentPointer(document, list, type) {
  const components = at(document, list);
  if (!Array.isArray(components)) return null;
  const index = components.findIndex((it) => String(it?.type ?? '').toUpperCase() === type);
  return index < 0 ? null : `${list}/${index}`;
}

/**
 * A pointer with the types of components instead of their indices, which change with every part that is
 * added or removed: `/components/1/text` → `/components/BODY/text`.
 * @param {unknown} document
 * @param {string} pointer
 */
export function stablePointer(document, pointer) {
  const path = parsePointer(pointer);
  const named = path.map((segment, index) => {
    if (path[index - 1] !== 'components') return segment;
    const { type } = at(document, path.slice(0, index + 1)) ?? {};
    return typeof type === 'string' ? type.toUpperCase() : segment;
  });
  return toPointer(named);
}

/** The order in which new components are put into a list. */
const ORDER = ['HEADER', 'LIMITED_TIME_OFFER', 'BODY', 'FOOTER', 'BUTTONS', 'CAROUSEL'];

/** The document with a component added to a list, in its usual position. */
export function withComponent(document, list, component) {
  const components = at(document, list) ?? [];
  const rank = (it) => ORDER.indexOf(String(it?.type ?? '').toUpperCase());
  const before = components.findIndex((it) => rank(it) > rank(component));
  const index = before < 0 ? components.length : before;
  return setAt(document, list, [...components.slice(0, index), component, ...components.slice(index)]);
}

/** The document with a list item in another position. */
export function moved(document, list, from, to) {
  const items = [...at(document, list)];
  const [item] = items.splice(from, 1);
  items.splice(to, 0, item);
  return setAt(document, list, items);
}

/**
 * The distinct placeholders of a text: in numerical order, or by first appearance if named.
 * @param {unknown} text
 * @param {"POSITIONAL" | "NAMED"} format
 * @returns {string[]}
 */
export function placeholderNames(text, format) {
  if (typeof text !== 'string') return [];
  const pattern = format === 'NAMED' ? /\{\{([a-z_][a-z0-9_]*)\}\}/g : /\{\{([1-9][0-9]{0,2})\}\}/g;
  const names = [...new Set([...text.matchAll(pattern)].map((match) => match[1]))];
  return format === 'NAMED' ? names : names.sort((a, b) => Number(a) - Number(b));
}

/** The next placeholder to insert into a text. */
export function nextPlaceholder(text, format) {
  const names = placeholderNames(text, format);
  if (format === 'POSITIONAL') return `{{${Number(names.at(-1) ?? 0) + 1}}}`;
  let number = names.length + 1;
  while (names.includes(`value_${number}`)) number += 1;
  return `{{value_${number}}}`;
}

const listOf = (value) => (Array.isArray(value) ? value : value === undefined || value === null ? [] : [value]);

/**
 * The samples of a header or body with their pointers, one for each placeholder of its text.
 * @param {unknown} document
 * @param {string} pointer of the component
 * @returns {{name: string, pointer: string, value: string}[]}
 */
export function samples(document, pointer) {
  const component = at(document, pointer);
  const format = parameterFormat(document);
  const part = String(component?.type ?? '').toUpperCase() === 'HEADER' ? 'header_text' : 'body_text';
  return placeholderNames(component?.text, format).map((name, index) => {
    const { path, value } =
      format === 'NAMED' ? namedSample(component, part, name, index) : numberedSample(component, part, index);
    return { name, pointer: pointer + toPointer(['example', ...path]), value: typeof value === 'string' ? value : '' };
  });
}

function namedSample(component, part, name, index) {
  const list = listOf(component.example?.[`${part}_named_params`]);
  const found = list.findIndex((it) => it?.param_name === name);
  return { path: [`${part}_named_params`, found < 0 ? index : found, 'example'], value: list[found]?.example };
}

function numberedSample(component, part, index) {
  const written = component.example?.[part];
  if (typeof written === 'string')
    return { path: index === 0 ? [part] : [part, index], value: index === 0 ? written : '' };
  const nested = Array.isArray(written?.[0]);
  const isFlat = part === 'header_text' || (Array.isArray(written) && written.length > 0 && !nested);
  return isFlat
    ? { path: [part, index], value: written?.[index] }
    : { path: [part, 0, index], value: written?.[0]?.[index] };
}

/**
 * The samples by placeholder after a fix of the component's text. They stay with their placeholders; a placeholder
 * that got another name takes its sample along. A list of samples that fits the corrected text belongs to that.
 * @param {unknown} before
 * @param {unknown} after
 * @param {string} pointer of the component
 * @returns {Map<string, string>}
 */
export function samplesAfterFix(before, after, pointer) {
  const old = new Map(samples(before, pointer).map((it) => [it.name, it.value]));
  const fresh = samples(after, pointer);
  const { example } = at(before, pointer) ?? {};
  const written = Object.values(example ?? {}).map((it) => (Array.isArray(it?.[0]) ? it[0] : listOf(it)).length);
  if (old.size !== fresh.length && written[0] === fresh.length) return new Map(fresh.map((it) => [it.name, it.value]));
  const gone = [...old.keys()].filter((name) => !fresh.some((it) => it.name === name));
  const come = fresh.filter((it) => !old.has(it.name));
  if (gone.length === 1 && come.length === 1) old.set(come[0].name, old.get(gone[0]) ?? '');
  return old;
}

/**
 * The document whose component has exactly one sample for each placeholder of its text.
 * @param {unknown} document
 * @param {string} pointer of the component
 * @param {Map<string, string>} values samples by placeholder, those of removed placeholders included
 * @param {"v1" | "whatsapp"} rulebook
 */
export function withSamples(document, pointer, values, rulebook) {
  const component = at(document, pointer);
  const format = parameterFormat(document);
  const isHeader = String(component?.type ?? '').toUpperCase() === 'HEADER';
  const names = placeholderNames(component?.text, format);
  const part = isHeader ? 'header_text' : 'body_text';
  const { example: _, ...rest } = component;
  const isOptional = rulebook === 'v1' && isHeader && names.every((name) => !values.get(name));
  if (names.length === 0 || isOptional) return setAt(document, pointer, rest);
  const list = names.map((name) => values.get(name) ?? '');
  const example =
    format === 'NAMED'
      ? { [`${part}_named_params`]: names.map((name, index) => ({ param_name: name, example: list[index] })) }
      : { [part]: isHeader ? list : [list] };
  return setAt(document, pointer, { ...rest, example });
}

/**
 * The range of the value at a pointer in a JSON text, for the JSON view; `null` if there is none.
 * @param {string} text valid JSON
 * @param {string[]} path
 * @returns {{start: number, end: number} | null}
 */
export function locate(text, path) {
  let position = 0;
  const space = () => {
    while (/\s/.test(text[position] ?? '')) position += 1;
  };
  const string = () => {
    const start = position;
    position += 1;
    while (position < text.length && text[position] !== '"') position += text[position] === '\\' ? 2 : 1;
    position += 1;
    return JSON.parse(text.slice(start, position));
  };
  // Reads one value; returns the range of what `rest` leads to, seen from this value.
  const value = (rest) => {
    space();
    const start = position;
    let found = null;
    const close = { '{': '}', '[': ']' }[text[position]];
    if (close !== undefined) {
      position += 1;
      for (let index = 0; ; index += 1) {
        space();
        if (text[position] === close || position >= text.length) break;
        let key = String(index);
        if (close === '}') {
          key = string();
          space();
          position += 1;
        }
        const inner = value(rest !== null && rest[0] === key ? rest.slice(1) : null);
        found ??= inner;
        space();
        if (text[position] === ',') position += 1;
      }
      position += 1;
    } else if (text[position] === '"') string();
    else while (position < text.length && !/[\s,\]}]/.test(text[position])) position += 1;
    if (rest === null) return null;
    return rest.length === 0 ? { start, end: position } : found;
  };
  try {
    return value(path);
  } catch {
    return null;
  }
}
