// The virtual clock of the account: what it shows, and how to move it.
import { html, nothing } from '../../lit.js';
import { api, isAbort } from '../../api.js';
import { emulator as t } from '../../strings/emulator.js';
import { icon } from '../../ui/icons.js';
import { notice } from '../../ui/state.js';
import { marked } from '../../ui/text.js';
import { clockText, duration, fieldTime, shownTime } from './clock-time.js';
import { reading } from './reading.js';

const QUICK = ['1m', '10m', '1h', '24h'];
const TICK_MS = 1_000;
/** Less than this is the time that a request takes. */
const AHEAD_MS = 5_000;

/** @param {import('../../main.js').Context} context @param {() => unknown} moved */
export function clockCard(context, moved) {
  const { signal, update } = context;
  /** The change under way: the next one waits for it. */
  let last = Promise.resolve();
  /** What the last change has done. */
  let result = '';
  /** What was wrong with the last change, and the field that shows it. @type {{field: string, text?: string, error?: unknown}|null} */
  let refused = null;

  const clock = reading(context, async () => {
    const { data } = await api.get('emulator/clock', { signal });
    return { ...data, readAt: Date.now() };
  });

  /** @param {{advance: string}|{set: string}|{follow: true}} change @param {string} field @param {HTMLFormElement} [form] */
  const move = (change, field, form) => (last = last.then(() => send(change, field, form)));

  /** @type {(...change: Parameters<typeof move>) => Promise<void>} */
  async function send(change, field, form) {
    refused = null;
    try {
      const { data } = await api.post('emulator/clock', { body: change, signal });
      clock.value = { ...data, readAt: Date.now() };
      result = data.follows ? t.running(data.applied) : t.moved(clockText(data.now), data.applied);
      form?.reset();
      moved();
    } catch (error) {
      if (isAbort(error)) return;
      result = '';
      const { slug, violations = [], detail } = /** @type {any} */ (error);
      const found = violations.find((/** @type {any} */ it) => it.pointer === `/${field}`);
      if (found) refused = { field, text: found.hint ? `${found.message}; ${found.hint}` : found.message };
      else if (slug === 'clock-backwards') refused = { field, text: detail };
      else refused = { field: '', error };
    }
    update();
    if (refused?.field) document.getElementById(`clock-${refused.field}`)?.focus();
  }

  /** @param {SubmitEvent} event */
  function advance(event) {
    event.preventDefault();
    const form = /** @type {HTMLFormElement} */ (event.currentTarget);
    void move({ advance: String(new FormData(form).get('advance')).trim() }, 'advance', form);
  }

  /** @param {SubmitEvent} event */
  function set(event) {
    event.preventDefault();
    const form = /** @type {HTMLFormElement} */ (event.currentTarget);
    const at = fieldTime(String(new FormData(form).get('set')));
    if (at) return void move({ set: at }, 'set', form);
    refused = { field: 'set', text: t.setMissing };
    update();
    document.getElementById('clock-set')?.focus();
  }

  /** @param {string} field @param {unknown} input @param {string} hint @param {string} label @param {string} action @param {(event: SubmitEvent) => void} submit */
  const form = (field, input, hint, label, action, submit) => html`<form class="field clock-form" @submit=${submit} novalidate>
    <label for="clock-${field}">${label}</label>
    <div class="clock-input">${input}<button class="button" type="submit">${action}</button></div>
    <p class="hint" id="clock-${field}-hint">${hint}</p>
    ${refused?.field === field ? html`<p class="field-error" id="clock-${field}-error" role="alert">${marked(refused.text ?? '')}</p>` : nothing}
  </form>`;

  /** @param {string} field */
  const invalid = (field) => (refused?.field === field ? 'true' : nothing);
  /** @param {string} field */
  const described = (field) => `clock-${field}-hint${refused?.field === field ? ` clock-${field}-error` : ''}`;

  function face() {
    const value = /** @type {any} */ (clock.value);
    const now = shownTime(value, Date.now());
    const ahead = now - Date.now();
    return html`<div class="clock-face">
      <p class="clock-time"><time dir="auto" datetime=${new Date(now).toISOString()} data-testid="clock">${clockText(now)}</time>
        <span class="badge ${value.follows ? 'tone-ok' : 'tone-hold'}">${icon(value.follows ? 'clock' : 'pause')}${value.follows ? t.runs : t.stands}</span></p>
      <p class="quiet">${ahead > AHEAD_MS ? html`${t.ahead(duration(ahead))} · ` : nothing}${t.clockLead}</p>
      <button class="button" type="button" aria-disabled=${value.follows ? 'true' : nothing} @click=${() => !value.follows && move({ follow: true }, '')}>${icon('clock')}${t.follow}</button>
    </div>`;
  }

  const controls = () => html`<div class="clock-controls">
    <div class="field" role="group" aria-labelledby="clock-quick"><span class="label" id="clock-quick">${t.advanceBy}</span>
      <div class="button-row">
        ${QUICK.map((it) => html`<button class="button" type="button" title=${t.quickTitle(t.durations[it])} @click=${() => move({ advance: it }, '')}><bdi dir="ltr">${t.quick(it)}</bdi></button>`)}
      </div></div>
    ${form('advance', html`<input class="input mono" id="clock-advance" name="advance" dir="ltr" autocomplete="off" spellcheck="false" aria-invalid=${invalid('advance')} aria-describedby=${described('advance')}>`, t.durationHint, t.duration, t.advance, advance)}
    ${form('set', html`<input class="input" id="clock-set" name="set" type="datetime-local" step="1" aria-invalid=${invalid('set')} aria-describedby=${described('set')}>`, t.setHint, t.set, t.setAction, set)}
  </div>`;

  const timer = setInterval(() => {
    if (document.visibilityState === 'visible' && clock.value?.follows) update();
  }, TICK_MS);

  return {
    load: clock.load,
    dispose: () => clearInterval(timer),
    view: () => html`<section class="card clock" aria-labelledby="clock-title">
      <h2 class="visually-hidden" id="clock-title">${t.clock}</h2>
      ${clock.state(1)}
      ${clock.value ? html`${face()}${controls()}` : nothing}
      ${refused?.error ? html`<div class="clock-result">${notice(refused.error)}</div>` : nothing}
      <p class="clock-result" role="status" data-testid="clock-result">${result}</p>
    </section>`,
  };
}
