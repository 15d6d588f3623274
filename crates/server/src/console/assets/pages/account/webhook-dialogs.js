// Dialogs of webhook endpoints: register one, see a secret once, replay a period.
import { html } from '../../lit.js';
import { api } from '../../api.js';
import { strings } from '../../strings.js';
import { account as t } from '../../strings/account.js';
import { copyButton } from '../../ui/copy.js';
import { openDialog } from '../../ui/dialog.js';
import { notice } from '../../ui/state.js';
import { marked } from '../../ui/text.js';

const TYPES = ['template.created', 'template.edited', 'template.approved', 'template.rejected', 'template.paused', 'template.resumed',
  'template.disabled', 'template.deleted', 'template.category_changed', 'template.category_announced', 'template.archived',
  'template.unarchived', 'template.flagged', 'template.quality_changed', 'template.review_passed', 'template.submitted',
  'template.upstream_refused', 'template.drifted', 'template.gone', 'upstream.degraded', 'upstream.recovered', 'webhook.disabled'];

/** @param {(value?: any) => void} close @param {string} action @param {boolean} busy */
const foot = (close, action, busy) => html`<footer class="dialog-foot">
  <button class="button" type="button" @click=${() => close()}>${strings.actions.cancel}</button>
  <button class="button button-primary" type="submit" ?disabled=${busy}>${action}</button></footer>`;

/** Registers an endpoint; resolves with it and its secret, or undefined. @returns {Promise<any>} */
export function addEndpoint() {
  /** @type {unknown} */
  let error = null;
  let busy = false;
  let some = false;
  return openDialog({
    title: t.addTitle,
    body: (close, update) => {
      /** @param {SubmitEvent} event */
      async function submit(event) {
        event.preventDefault();
        const form = new FormData(/** @type {HTMLFormElement} */ (event.currentTarget));
        busy = true;
        update();
        try {
          const events = some ? form.getAll('event') : [];
          close((await api.post('webhooks', { body: { url: String(form.get('url')).trim(), events } })).data);
        } catch (problem) {
          error = problem;
          busy = false;
          update();
        }
      }
      const violations = /** @type {any} */ (error)?.violations ?? [];
      return html`<form class="stack" @submit=${submit} novalidate>
        <div class="field"><label for="hook-url">${t.url}</label>
          <input class="input mono" id="hook-url" name="url" type="url" dir="ltr" autofocus autocomplete="off" aria-describedby="hook-hint" placeholder="https://shop.example/hooks/galley">
          <p class="hint" id="hook-hint">${t.urlHint}</p></div>
        <fieldset class="stack choices"><legend class="label">${t.eventTypes}</legend>
          <label class="switch"><input type="radio" name="which" .checked=${!some} @change=${() => { some = false; update(); }}>${t.allEvents}</label>
          <label class="switch"><input type="radio" name="which" .checked=${some} @change=${() => { some = true; update(); }}>${t.someEvents}</label>
          ${some ? html`<div class="event-types">${TYPES.map((it) => html`<label class="switch"><input type="checkbox" name="event" value=${it}><code>${it}</code></label>`)}</div>` : ''}
        </fieldset>
        ${violations.length ? html`<div class="notice notice-bad" role="alert"><ul>${violations.map((/** @type {any} */ it) => html`<li>${marked(it.hint ? `${it.message}; ${it.hint}` : it.message)}</li>`)}</ul></div>` : notice(error)}
        ${foot(close, t.register, busy)}
      </form>`;
    },
  });
}

/** @param {string} secret */
export const showSecret = (secret) => openDialog({
  title: t.secretTitle,
  isSecret: true,
  body: (close) => html`<p>${t.secretText}</p>
    <pre class="well" tabindex="0">${secret}</pre>
    <footer class="dialog-foot">${copyButton(secret, strings.actions.copy, 'button')}
      <button class="button button-primary" type="button" @click=${() => close()}>${t.done}</button></footer>`,
});

/** Asks since when to replay; resolves with a timestamp or undefined. @returns {Promise<string|undefined>} */
export const askSince = () => openDialog({
  title: t.replayTitle,
  body: (close) => html`<form class="stack" @submit=${(/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const value = String(new FormData(/** @type {HTMLFormElement} */ (event.currentTarget)).get('since'));
    close(new Date(value).toISOString());
  }}>
    <p>${t.replayText}</p>
    <div class="field"><label for="since">${t.since}</label><input class="input" id="since" name="since" type="datetime-local" required autofocus></div>
    ${foot(close, t.replay, false)}
  </form>`,
});
