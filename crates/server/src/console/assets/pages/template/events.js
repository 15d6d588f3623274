// Events of a template. The feed is that of the account, so the newest part of it is read and filtered.
import { html } from '../../lit.js';
import { api, isAbort } from '../../api.js';
import { template as t } from '../../strings/template.js';
import { author } from '../../ui/author.js';
import { loading, notice } from '../../ui/state.js';
import { timeAgo } from '../../ui/time.js';

const PAGE = 100;
const MOST_PAGES = 5;
const ENOUGH = 30;

/** @param {string} id @param {AbortSignal} signal */
async function readEvents(id, signal) {
  const newest = Number((await api.get('events', { query: { after: 'latest' }, signal })).data.paging.cursors.after);
  /** @type {any[]} */
  const found = [];
  let end = newest;
  for (let pages = 0; end > 0 && pages < MOST_PAGES && found.length < ENOUGH; pages++) {
    const after = Math.max(0, end - PAGE);
    try {
      const { data } = await api.get('events', { query: { after, limit: end - after }, signal });
      found.push(...data.data.filter((/** @type {any} */ it) => it.template_id === id).reverse());
    } catch (error) {
      if (isAbort(error) || /** @type {any} */ (error).slug !== 'events-forgotten') throw error;
      break;
    }
    end = after;
  }
  return { found, looked: newest - end };
}

/** @param {import('../template.js').Shared} shared */
export function eventsCard(shared) {
  const { context } = shared;
  /** @type {any[]|null} */
  let events = null;
  let looked = 0;
  /** @type {unknown} */
  let error = null;

  async function load() {
    try {
      ({ found: events, looked } = await readEvents(shared.template.id, context.signal));
    } catch (problem) {
      if (isAbort(problem)) return;
      error = problem;
    }
    context.update();
  }

  return {
    changed: () => void load(),
    view: () => html`<section class="card" aria-labelledby="events-title">
      <header class="card-head"><h2 id="events-title">${t.events}</h2>${events?.length ? html`<span class="quiet">${t.eventsNote(looked)}</span>` : ''}</header>
      ${error ? html`<div class="card-body">${notice(error)}</div>` : !events ? html`<div class="card-body">${loading(1)}</div>` : !events.length ? html`<p class="card-body quiet">${t.noEvents}</p>` : html`
        <ol class="events">${events.map((it) => html`
          <li class="event"><span class="event-dot dot dot-${it.data.status}"></span>
            <span><strong>${t.event[it.type] ?? it.type}</strong> <span class="quiet">v${it.version} · ${t.by} <bdi>${author(it.actor, it.actor_name)}</bdi></span>
              ${it.data.reason ? html`<span class="event-reason" dir="auto">${it.data.reason}</span>` : ''}</span>
            <span class="quiet event-time">${timeAgo(it.at)}</span></li>`)}</ol>`}
    </section>`,
  };
}
