// The connection to the provider, and its operations, newest first.
import { html, nothing, repeat } from '../../lit.js';
import { api } from '../../api.js';
import { paths } from '../../router.js';
import { upstream as t } from '../../strings/upstream.js';
import { pager } from '../../ui/pager.js';
import { timeAgo, timeFull } from '../../ui/time.js';
import { upstreamBadge } from '../../ui/upstream-badge.js';
import { part } from './part.js';

const PAGE = 25;

/** @param {string} term @param {unknown} detail */
const fact = (term, detail) => html`<div><dt>${term}</dt><dd>${detail}</dd></div>`;

/** @param {import('../../main.js').Context} context */
export function upstreamCard(context) {
  /** @type {any} */
  let connection = null;
  /** @type {any[]} */
  let operations = [];
  /** @type {string|null} */
  let before = null;
  let busy = false;

  /** @param {boolean} [more] */
  async function loadOperations(more = false) {
    const { data } = await api.get('upstream/operations', { query: { limit: PAGE, before: more ? before : null }, signal: context.signal });
    operations = more ? [...operations, ...data.data] : data.data;
    before = new URLSearchParams(data.paging?.next ?? '').get('before');
  }

  async function load() {
    const [answer] = await Promise.all([api.get('upstream', { signal: context.signal }), loadOperations()]);
    connection = answer.data;
  }

  async function more() {
    busy = true;
    context.update();
    await card.attempt(() => loadOperations(true));
    busy = false;
    context.update();
  }

  /** The templates that a suspicious sweep missed. @param {any} it */
  const unseen = (it) => html`<span data-testid="unseen">${it.data.map((/** @type {any} */ one) => html`<code><bdi>${one.name}</bdi></code> <span class="quiet"><bdi>${one.language}</bdi></span> `)}${it.count > it.data.length ? t.more(it.count - it.data.length) : nothing}</span>`;

  /** @param {any} it */
  const facts = (it) => html`<dl class="facts">
    ${fact(t.connection.provider, html`<bdi>${it.provider}</bdi>`)}
    ${fact(t.connection.waba, html`<code>${it.waba_id}</code>`)}
    ${fact(t.connection.since, timeAgo(it.connected_at))}
    ${it.last_sweep_at ? fact(t.connection.sweep, timeAgo(it.last_sweep_at)) : nothing}
    ${it.unseen ? fact(t.connection.unseen, unseen(it.unseen)) : nothing}
    ${it.degraded?.error ? fact(t.connection.error, html`<bdi>${it.degraded.error.message}</bdi> <span class="quiet">${t.code(it.degraded.error.code, it.degraded.error.subcode)}</span>`) : nothing}
    ${it.token_expires_at ? fact(t.connection.expires, timeFull(it.token_expires_at)) : nothing}
  </dl>`;

  /** Why an operation waits or failed. @param {any} it */
  const reason = (it) => html`${it.held_reason ? html`<span class="quiet">${t.heldReason[it.held_reason] ?? it.held_reason}${it.held_until ? html`, ${t.until} ${timeFull(it.held_until)}` : nothing}</span>` : nothing}
    ${it.error ? html`<span class="event-reason"><bdi>${it.error.title ?? it.error.message}</bdi></span>` : nothing}`;

  /** @param {any} it */
  const line = (it) => html`<tr data-testid="operation">
    <td data-label=${t.operation}><span><strong>${t.kind[it.kind] ?? it.kind}</strong> ${upstreamBadge(it.state)} ${reason(it)}</span></td>
    <td data-label=${t.template}><a href=${paths.template(it.template_id)}><code><bdi>${it.name ?? it.template_id}</bdi></code></a> <span class="quiet">${it.language ? html`<bdi>${it.language}</bdi>, ` : nothing}${t.version(it.version)}</span></td>
    <td data-label=${t.updated}><span class="quiet">${timeAgo(it.updated_at)}</span></td>
  </tr>`;

  const card = part(context, {
    id: 'upstream-title',
    title: t.account,
    lead: t.accountLead,
    scope: 'upstream',
    load,
    loaded: () => connection !== null,
    tools: () => (connection ? upstreamBadge(connection.state) : ''),
    content: () => html`${facts(connection)}
      ${operations.length
    ? html`<table class="table"><thead><tr><th scope="col">${t.operation}</th><th scope="col">${t.template}</th><th scope="col">${t.updated}</th></tr></thead>
        <tbody>${repeat(operations, (it) => it.id, line)}</tbody></table>${pager({ more: before !== null, busy, load: () => void more() })}`
    : html`<p class="card-body quiet">${t.noOperations}</p>`}`,
  });
  return card;
}
