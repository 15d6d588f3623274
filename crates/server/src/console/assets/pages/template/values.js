// Fill values into the live version: fields or JSON, the message, the payload to copy.
import { html, nothing } from '../../lit.js';
import { api, isAbort, Problem } from '../../api.js';
import { proofView } from '../../proof.js';
import { template as t } from '../../strings/template.js';
import { copyButton } from '../../ui/copy.js';
import { loading, notice } from '../../ui/state.js';
import { marked } from '../../ui/text.js';
import { curl, typedOf, valueFields, valuesOf } from './value-fields.js';

const TYPING_MS = 200;

/** @param {import('./value-fields.js').ValueField} field */
function label(field) {
  if (field.kind === 'media') return t.mediaUrl;
  if (field.kind === 'suffix') return t.urlEnd(field.label);
  if (field.kind === 'code') return t.code;
  return t.placeholder(field.part === 'header' ? t.header : t.body, field.label);
}

/** @param {import('../template.js').Shared} shared */
export function valuesCard(shared) {
  const { context } = shared;
  /** The live version. @type {any} */
  let live = null;
  /** @type {ReturnType<typeof valueFields>} */
  let form = { fields: [], complete: true };
  /** @type {Map<string, string>} */
  let typed = new Map();
  let json = '';
  let asJson = false;
  let badJson = false;
  /** @type {any} */
  let proof = null;
  /** @type {any} */
  let payload = null;
  /** @type {unknown} */
  let error = null;
  /** @type {import('../../api.js').Violation[]} */
  let violations = [];
  let turn = 0;
  let timer = 0;

  const values = () => (asJson ? JSON.parse(json || '{}') : valuesOf(form.fields, typed));
  const document_ = () => {
    const { name, language, category, components, parameter_format } = live;
    return { name, language, category, components, ...(parameter_format ? { parameter_format } : {}) };
  };

  async function render() {
    const mine = ++turn;
    let input;
    try {
      input = values();
      badJson = false;
    } catch {
      badJson = true;
      payload = null;
      return context.update();
    }
    try {
      const shown = await api.post('message_templates/proof', { body: { document: document_(), values: input }, signal: context.signal });
      if (mine !== turn) return;
      proof = shown.data;
      violations = proof.value_violations ?? [];
      error = null;
      // The proof already tells what render would refuse, so that no refused request is sent.
      const rendered = violations.length
        ? null
        : (await api.post(`message_templates/${shared.template.id}/render`, { body: input, signal: context.signal })).data.payload;
      if (mine !== turn) return;
      payload = rendered;
    } catch (problem) {
      if (isAbort(problem) || mine !== turn) return;
      payload = null;
      error = problem;
      violations = problem instanceof Problem ? problem.violations : [];
    }
    if (mine === turn) context.update();
  }

  function later() {
    clearTimeout(timer);
    timer = setTimeout(render, TYPING_MS);
  }

  async function load() {
    live = null;
    if (!shared.template.live_version) return;
    try {
      live = shared.template.live_version === shared.template.version
        ? shared.template
        : (await api.get(`message_templates/${shared.template.id}`, { query: { version: shared.template.live_version }, signal: context.signal })).data;
      form = valueFields(live);
      asJson = !form.complete;
      json = JSON.stringify(valuesOf(form.fields, typed), null, 2);
      await render();
    } catch (problem) {
      shared.fail(problem);
    }
  }

  /** What was written in one view is kept in the other. @param {boolean} on */
  function switchTo(on) {
    if (on === asJson) return;
    const shown = () => JSON.stringify(valuesOf(form.fields, typed), null, 2);
    try {
      const read = typedOf(form.fields, JSON.parse(json || '{}'));
      if (!on) typed = read;
      // Members that have no field stay in the text unless a field has changed.
      else if (JSON.stringify(valuesOf(form.fields, read), null, 2) !== shown()) json = shown();
    } catch {
      // The text has to be valid before the fields can show it.
      return;
    }
    asJson = on;
    void render();
    context.update();
  }

  /** @param {import('./value-fields.js').ValueField} field */
  function input(field) {
    const id = `value${field.pointer.replaceAll('/', '-')}`;
    const wrong = violations.filter((it) => it.pointer === field.pointer || (field.key === '0' && it.pointer === `/${field.part}`));
    return html`<div class="field">
      <label for=${id}>${label(field)}</label>
      <input class="input" id=${id} dir=${field.kind === 'text' ? 'auto' : 'ltr'} .value=${typed.get(field.pointer) ?? field.sample}
        aria-invalid=${wrong.length ? 'true' : nothing} aria-describedby=${wrong.length ? `${id}-error` : nothing} autocomplete="off"
        @input=${(/** @type {any} */ event) => { typed.set(field.pointer, event.target.value); later(); }}>
      ${wrong.length ? html`<p class="field-error" id="${id}-error">${wrong.map((it) => html`<span>${marked(it.hint ? `${it.message}; ${it.hint}` : it.message)}</span>`)}</p>` : nothing}
    </div>`;
  }

  const others = () => {
    const known = asJson ? [] : form.fields.map((it) => it.pointer);
    const rest = violations.filter((it) => !known.includes(it.pointer) && (asJson || !form.fields.some((field) => it.pointer === `/${field.part}`)));
    if (rest.length) return html`<ul class="field-error">${rest.map((it) => html`<li><code>${it.pointer}</code> ${marked(it.message)}</li>`)}</ul>`;
    return error && !violations.length ? notice(error) : nothing;
  };

  const inputs = () => html`<div class="stack values-form">
    <div class="chips" role="group" aria-label=${t.valuesAs}>
      ${form.complete ? html`<button class="chip" type="button" aria-pressed=${!asJson} ?disabled=${badJson} @click=${() => switchTo(false)}>${t.asFields}</button>` : nothing}
      <button class="chip" type="button" aria-pressed=${asJson} @click=${() => switchTo(true)}>${t.asJson}</button>
    </div>
    ${asJson ? html`<div class="field"><label for="values-json">${t.valuesJson}</label>
        <textarea class="textarea mono values-json" id="values-json" dir="ltr" spellcheck="false" .value=${json} aria-invalid=${badJson ? 'true' : nothing}
          @input=${(/** @type {any} */ event) => { json = event.target.value; later(); }}></textarea>
        ${badJson ? html`<p class="field-error">${t.badJson}</p>` : nothing}</div>`
    : form.fields.length ? form.fields.map(input) : html`<p class="quiet">${t.noValues}</p>`}
    ${others()}
  </div>`;

  const result = () => html`<div class="stack">
    ${proof ? proofView(proof, { label: t.rendered, language: live.language }) : loading(1)}
  </div>`;

  const output = () => (payload ? html`<div class="card-body values-output stack">
      <div class="button-row"><h3>${t.payload}</h3>
        ${copyButton(() => JSON.stringify(payload, null, 2), t.copyPayload)}
        ${copyButton(() => curl({ origin: location.origin, phone: api.session?.phone_number_ids[0] ?? shared.template.phone_number_id, id: shared.template.id, values: values() }), t.copyCurl)}</div>
      <pre class="well" tabindex="0" aria-label=${t.payload}>${JSON.stringify(payload, null, 2)}</pre>
      <p class="quiet">${t.payloadNote}</p>
    </div>` : nothing);

  return {
    changed: () => void load(),
    view: () => html`<section class="card" aria-labelledby="values-title">
      <header class="card-head"><h2 id="values-title">${t.values}</h2>${live ? html`<span class="quiet">${t.valuesLead(live.version)}</span>` : nothing}</header>
      ${live ? html`<div class="card-body values">${inputs()}${result()}</div>${output()}` : html`<p class="card-body quiet">${shared.template.upstream ? t.notLiveThere : t.notLive}</p>`}
    </section>`,
  };
}
