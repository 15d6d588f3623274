// The deliveries of an endpoint: filter, page, replay.
import { html, nothing, repeat } from '../../lit.js';
import { api, isAbort } from '../../api.js';
import { paths } from '../../router.js';
import { strings } from '../../strings.js';
import { account as t } from '../../strings/account.js';
import { badge } from '../../ui/badge.js';
import { pager } from '../../ui/pager.js';
import { loading, notice } from '../../ui/state.js';
import { timeAgo } from '../../ui/time.js';
import { toast } from '../../ui/toast.js';
import { askSince } from './webhook-dialogs.js';

const PAGE = 10;
const STATUSES = ['', 'waiting', 'delivered', 'failed'];

/** @param {string} id of the endpoint @param {import('../../main.js').Context} context */
export function deliveriesOf(id, { signal, update }) {
  /** @type {any[]|null} */
  let deliveries = null;
  /** @type {string|null} */
  let cursor = null;
  let status = '';
  let busy = false;
  /** @type {unknown} */
  let error = null;

  async function load(more = false) {
    busy = true;
    error = null;
    update();
    const wanted = status;
    try {
      const { data } = await api.get(`webhooks/${id}/deliveries`, { query: { status, limit: PAGE, after: more ? cursor : null }, signal });
      if (wanted !== status) return;
      deliveries = more ? [...(deliveries ?? []), ...data.data] : data.data;
      cursor = new URLSearchParams(data.paging?.next ?? '').get('after');
    } catch (problem) {
      if (isAbort(problem)) return;
      error = problem;
    }
    busy = false;
    update();
  }

  /** @param {{event: number}|{since: string}} body */
  async function replay(body) {
    try {
      const { data } = await api.post(`webhooks/${id}/replay`, { body });
      toast(t.replayed(data.events));
      await load();
    } catch (problem) {
      error = problem;
      update();
    }
  }

  async function replaySince() {
    const since = await askSince();
    if (since) await replay({ since });
  }

  /** @param {any} it */
  const line = (it) => html`<tr data-testid="delivery">
    <td data-label=${t.event}><span><span class="quiet">#${it.seq}</span> ${it.template_id ? html`<a href=${paths.template(it.template_id)}>${it.type ?? '?'}</a>` : it.type ?? '?'}</span></td>
    <td data-label=${t.result}>${badge(it.status)} <span class="quiet">${it.response_status ? t.http(it.response_status) : it.failure ?? ''}</span></td>
    <td data-label=${t.lastAttempt}><span class="quiet">${t.tried(it.attempts)}${it.last_attempt_at ? html`, ${timeAgo(it.last_attempt_at)}` : nothing}${it.next_attempt_at && it.status === 'waiting' ? html`; ${t.nextAttempt} ${timeAgo(it.next_attempt_at)}` : nothing}</span></td>
    <td><button class="button button-small" type="button" aria-label=${t.replayEvent(it.seq)} @click=${() => replay({ event: it.seq })}>${t.replay}</button></td>
  </tr>`;

  void load();
  return {
    view: () => html`<div class="deliveries">
      <div class="deliveries-head">
        <div class="chips" role="group" aria-label=${t.deliveryStatus}>
          ${STATUSES.map((it) => html`<button class="chip" type="button" aria-pressed=${it === status} @click=${() => { status = it; void load(); }}>${it ? strings.status[it] : t.anyStatus}</button>`)}
        </div>
        <button class="button button-small button-quiet" type="button" @click=${replaySince}>${t.replayFrom}</button>
      </div>
      ${notice(error)}
      ${!deliveries ? loading(2) : !deliveries.length ? html`<p class="quiet deliveries-none">${t.noDeliveries}</p>` : html`
        <table class="table"><thead><tr><th scope="col">${t.event}</th><th scope="col">${t.result}</th><th scope="col">${t.lastAttempt}</th><th scope="col"><span class="visually-hidden">${t.replay}</span></th></tr></thead>
          <tbody>${repeat(deliveries, (it) => it.seq, line)}</tbody></table>
        ${pager({ more: cursor !== null, busy, load: () => load(true) })}`}
    </div>`,
  };
}
