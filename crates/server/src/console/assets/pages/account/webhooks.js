// Webhook endpoints with their state, actions and deliveries.
import { html, nothing, repeat } from '../../lit.js';
import { api } from '../../api.js';
import { account as t } from '../../strings/account.js';
import { confirm } from '../../ui/dialog.js';
import { icon } from '../../ui/icons.js';
import { timeAgo, timeFull } from '../../ui/time.js';
import { toast } from '../../ui/toast.js';
import { deliveriesOf } from './deliveries.js';
import { part } from './part.js';
import { addEndpoint, showSecret } from './webhook-dialogs.js';

/** @param {any} it */
function health(it) {
  if (it.disabled_at) return html`<span class="badge tone-off">${icon('stop')}${t.disabled}</span>`;
  if (it.failing_since) return html`<span class="badge tone-bad">${icon('alert')}${t.failing}</span>`;
  if (it.resting_until && Date.parse(it.resting_until) > Date.now()) return html`<span class="badge tone-wait">${icon('pause')}${t.resting}</span>`;
  return html`<span class="badge tone-ok">${icon('check')}${t.healthy}</span>`;
}

/** @param {import('../../main.js').Context} context */
export function webhooksCard(context) {
  /** @type {any[]|null} */
  let endpoints = null;
  /** Open lists of deliveries by endpoint. @type {Map<string, ReturnType<typeof deliveriesOf>>} */
  const open = new Map();
  const { signal, update } = context;

  async function load() {
    endpoints = (await api.get('webhooks', { signal })).data.data;
  }

  /** @param {any} it */
  function toggle(it) {
    if (!open.delete(it.id)) open.set(it.id, deliveriesOf(it.id, context));
    update();
  }

  async function add() {
    const created = await addEndpoint();
    if (!created) return;
    await card.attempt(load);
    await showSecret(created.secret);
  }

  /** @param {any} it */
  async function rotate(it) {
    const text = it.format === 'whatsapp' ? t.rotateMeta : t.rotateText;
    if (!await confirm({ title: t.rotateTitle, text, action: t.rotate })) return;
    await card.attempt(async () => {
      const { data } = await api.post(`webhooks/${it.id}/rotate`, { body: {} });
      await load();
      update();
      await showSecret(data.secret);
    });
  }

  /** @param {any} it */
  async function remove(it) {
    if (!await confirm({ title: t.removeTitle, text: t.removeText(it.url), action: t.remove, danger: true })) return;
    await card.attempt(async () => {
      await api.delete(`webhooks/${it.id}`);
      toast(t.removed);
      open.delete(it.id);
      await load();
    });
  }

  /** @param {any} it @param {boolean} disabled */
  const setDisabled = (it, disabled) => card.attempt(async () => {
    await api.patch(`webhooks/${it.id}`, { body: { disabled } });
    toast(disabled ? t.switchedOff : t.enabled);
    await load();
  });

  /** @param {any} it */
  const notes = (it) => html`
    ${it.disabled_at ? html`<p class="quiet">${t.disabled} ${timeAgo(it.disabled_at)}: ${t.disabledBecause[it.disabled_because] ?? it.disabled_because}</p>` : nothing}
    ${it.failing_since && !it.disabled_at ? html`<p class="quiet">${t.failingSince} ${timeFull(it.failing_since)}</p>` : nothing}
    ${it.behind ? html`<p class="quiet">${t.behind(it.behind)}</p>` : nothing}
    ${it.former_secret_until && Date.parse(it.former_secret_until) > Date.now() ? html`<p class="quiet">${t.formerUntil} ${timeFull(it.former_secret_until)}</p>` : nothing}`;

  /** @param {any} it */
  const endpoint = (it) => html`<li class="endpoint" data-testid="webhook" data-id=${it.id}>
    <div class="endpoint-head">
      <div class="endpoint-text">
        <p class="endpoint-url"><code dir="ltr">${it.url}</code> ${health(it)}</p>
        <p class="quiet">${it.events?.length ? it.events.join(', ') : t.allEventsShort}${it.format === 'whatsapp' ? ` · ${t.format} whatsapp` : ''}</p>
        ${notes(it)}
      </div>
      <div class="button-row endpoint-actions" role="group" aria-label=${t.actionsOf(it.url)}>
        <button class="button button-small" type="button" aria-expanded=${open.has(it.id)} @click=${() => toggle(it)}>${open.has(it.id) ? t.hideDeliveries : t.showDeliveries}</button>
        <button class="button button-small" type="button" @click=${() => setDisabled(it, !it.disabled_at)}>${it.disabled_at ? t.enable : t.disable}</button>
        <button class="button button-small" type="button" @click=${() => rotate(it)}>${t.rotate}</button>
        <button class="icon-button" type="button" aria-label=${t.remove} title=${t.remove} @click=${() => remove(it)}>${icon('trash')}</button>
      </div>
    </div>
    ${open.get(it.id)?.view() ?? nothing}
  </li>`;

  const card = part(context, {
    id: 'webhooks-title',
    title: t.webhooks,
    lead: t.webhooksLead,
    scope: 'webhooks',
    load,
    loaded: () => endpoints !== null,
    tools: () => html`<button class="button button-small" type="button" @click=${add}>${icon('plus')}${t.add}</button>`,
    content: () => (endpoints?.length
      ? html`<ul class="endpoints">${repeat(endpoints, (it) => it.id, endpoint)}</ul>`
      : html`<p class="card-body quiet">${t.noWebhooks}</p>`),
  });
  return card;
}
