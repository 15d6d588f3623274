// Which values a template takes, and the values document from what was typed. Pure.

/**
 * @typedef {object} ValueField
 * @property {string} pointer   of the value in the values document, such as `/body/0`
 * @property {'header'|'body'|'buttons'} part
 * @property {string} key       index, name or button index
 * @property {'text'|'media'|'suffix'|'code'} kind
 * @property {string} label     the placeholder's name, or the button's text
 * @property {string} sample
 * @property {boolean} named
 */

const PLACEHOLDER = /\{\{\s*([^{}\s]+)\s*\}\}/g;
const MEDIA = ['MEDIA', 'IMAGE', 'VIDEO', 'DOCUMENT', 'GIF'];
/** Buttons that need values which do not fit one field. */
const COMPLEX_BUTTONS = ['MPM', 'ORDER_DETAILS', 'SPM'];

/** @param {string} text */
const names = (text) => [...new Set([...text.matchAll(PLACEHOLDER)].map((it) => it[1]))];

/** @param {any} component @param {'header'|'body'} part @param {string} name */
function sampleOf(component, part, name) {
  const named = component.example?.[`${part}_text_named_params`];
  if (named) return named.find((/** @type {any} */ it) => it.param_name === name)?.example ?? '';
  const list = component.example?.[`${part}_text`];
  const values = Array.isArray(list?.[0]) ? list[0] : list ?? [];
  return values[Number(name) - 1] ?? '';
}

/** @param {any} component @param {'header'|'body'} part @returns {ValueField[]} */
function textFields(component, part) {
  return names(component.text ?? '').map((name) => {
    const named = !/^\d+$/.test(name);
    const key = named ? name : String(Number(name) - 1);
    return { pointer: `/${part}/${key}`, part, key, kind: 'text', label: name, sample: sampleOf(component, part, name), named };
  });
}

/** @param {any} button @param {number} index @returns {ValueField[]} */
function buttonFields(button, index) {
  const base = { pointer: `/buttons/${index}`, part: /** @type {const} */ ('buttons'), key: String(index), named: true };
  if (button.type === 'URL' && /\{\{[^{}]+\}\}$/.test(button.url ?? '')) {
    const prefix = button.url.replace(/\{\{[^{}]+\}\}$/, '');
    const sample = String([button.example].flat()[0] ?? '');
    return [{ ...base, kind: 'suffix', label: button.text ?? '', sample: sample.startsWith(prefix) ? sample.slice(prefix.length) : sample }];
  }
  if (button.type === 'COPY_CODE') return [{ ...base, kind: 'code', label: button.text ?? '', sample: String([button.example].flat()[0] ?? '') }];
  return [];
}

/**
 * The fields of a template, and whether they are all that it takes.
 * @param {any} template @returns {{fields: ValueField[], complete: boolean}}
 */
export function valueFields(template) {
  /** @type {ValueField[]} */
  const fields = [];
  let complete = true;
  for (const component of template.components ?? []) {
    if (component.type === 'HEADER') {
      if (MEDIA.includes(component.format)) {
        const sample = component.example?.media_url ?? '';
        fields.push({ pointer: '/header/0', part: 'header', key: '0', kind: 'media', label: '', sample, named: false });
      } else if (component.text) fields.push(...textFields(component, 'header'));
      else complete = false;
    } else if (component.type === 'BODY') {
      if (component.text) fields.push(...textFields(component, 'body'));
      else fields.push({ pointer: '/body/0', part: 'body', key: '0', kind: 'code', label: '', sample: '123456', named: false });
    } else if (component.type === 'BUTTONS') {
      component.buttons?.forEach((/** @type {any} */ it, /** @type {number} */ index) => fields.push(...buttonFields(it, index)));
      if (component.buttons?.some((/** @type {any} */ it) => COMPLEX_BUTTONS.includes(it.type))) complete = false;
    } else if (component.type !== 'FOOTER') complete = false;
  }
  return { fields, complete };
}

/** @param {ValueField[]} fields @param {Map<string, string>} typed by pointer @returns {Record<string, any>} */
export function valuesOf(fields, typed) {
  /** @type {Record<string, any>} */
  const values = {};
  for (const field of fields) {
    const value = typed.get(field.pointer) ?? field.sample;
    values[field.part] ??= field.named ? {} : [];
    values[field.part][field.named ? field.key : Number(field.key)] = value;
  }
  return values;
}

/** What the fields show of a values document. @param {ValueField[]} fields @param {any} values @returns {Map<string, string>} by pointer */
export function typedOf(fields, values) {
  const typed = new Map();
  for (const { pointer, part, key } of fields) {
    const value = values?.[part]?.[key];
    typed.set(pointer, typeof value === 'string' || typeof value === 'number' ? String(value) : '');
  }
  return typed;
}

/** A word of a POSIX shell. @param {string} text */
const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/** The call that renders, with the credentials as shell variables. @param {{origin: string, phone: string, id: string, values: unknown}} call */
export const curl = ({ origin, phone, id, values }) => [
  `curl -sS "${origin}/api/v1.0/${phone}/$KEY/message_templates/${id}/render"`,
  '-H "Authorization: Bearer $TOKEN"',
  "-H 'Content-Type: application/json'",
  `-d ${quoted(JSON.stringify(values))}`,
].join(' \\\n  ');
