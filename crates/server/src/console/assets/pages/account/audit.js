// The audit feed, newest first. The feed itself is oldest first, so it is read to its end.
import { html } from '../../lit.js';
import { api } from '../../api.js';
import { strings } from '../../strings.js';
import { account as t } from '../../strings/account.js';
import { author } from '../../ui/author.js';
import { timeAgo } from '../../ui/time.js';
import { part } from './part.js';

const PAGE = 100;
const MOST_PAGES = 50;
const SHOWN = 25;

/** @param {unknown} value */
const text = (value) => (Array.isArray(value) ? value.join(', ') : typeof value === 'object' ? JSON.stringify(value) : String(value).replaceAll(',', ', '));

/** The details that say something. @param {Record<string, unknown>} details */
const summary = (details = {}) => Object.entries(details)
  .filter(([, value]) => value !== null && value !== '' && value !== false && !(Array.isArray(value) && !value.length))
  .map(([key, value]) => `${key.replaceAll('_', ' ')}: ${text(value)}`).join(' · ');

/** @param {import('../../main.js').Context} context */
export function auditCard(context) {
  /** @type {any[]|null} */
  let entries = null;
  let shown = SHOWN;

  async function load() {
    /** @type {any[]} */
    let all = [];
    /** @type {string|null} */
    let after = null;
    for (let page = 0; page < MOST_PAGES; page++) {
      const { data } = await api.get('audit', { query: { limit: PAGE, after }, signal: context.signal });
      all = [...all, ...data.data].slice(-5 * PAGE);
      after = new URLSearchParams(data.paging?.next ?? '').get('after');
      if (after === null) break;
    }
    entries = all.reverse();
  }

  return part(context, {
    id: 'audit-title',
    title: t.audit,
    lead: t.auditLead,
    scope: 'audit',
    load,
    loaded: () => entries !== null,
    content: () => (entries?.length
      ? html`<ol class="events">${entries.slice(0, shown).map((it) => html`<li class="event"><span class="dot event-dot"></span>
          <span><strong>${it.type}</strong> <span class="quiet">${t.auditBy} <bdi>${author(it.actor, it.actor_name)}</bdi></span>
            <span class="audit-details quiet" dir="auto">${summary(it.details)}</span></span>
          <span class="quiet">${timeAgo(it.at)}</span></li>`)}</ol>
        ${entries.length > shown ? html`<div class="card-foot"><button class="button button-small button-quiet" type="button" @click=${() => { shown += 100; context.update(); }}>${strings.actions.showMore}</button></div>` : ''}`
      : html`<p class="card-body quiet">${t.noAudit}</p>`),
  });
}
