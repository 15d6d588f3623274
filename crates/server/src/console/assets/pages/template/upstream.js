// The template at the provider: its state there, both contents if they differ, and what one can do about it.
import { html, nothing } from '../../lit.js';
import { api, isAbort } from '../../api.js';
import { proofView } from '../../proof.js';
import { strings } from '../../strings.js';
import { upstream as t } from '../../strings/upstream.js';
import { proof as proofTexts } from '../../strings/proof.js';
import { confirm } from '../../ui/dialog.js';
import { icon } from '../../ui/icons.js';
import { loading } from '../../ui/state.js';
import { timeAgo } from '../../ui/time.js';
import { toast } from '../../ui/toast.js';
import { upstreamBadge } from '../../ui/upstream-badge.js';
import { changesView } from '../review/changes.js';
import { actionsOf, comparable, isCategoryHeld, isCompared, isMoving } from './upstream-actions.js';

const SCOPE = 'upstream';
/** How often the template is read again while its state changes by itself. */
const REFRESH_MS = 2_000;

/** @param {string} term @param {unknown} detail */
const fact = (term, detail) => (detail && detail !== nothing ? html`<div><dt>${term}</dt><dd>${detail}</dd></div>` : nothing);

/** @param {import('../template.js').Shared} shared */
export function upstreamCard(shared) {
  const { context } = shared;
  /** Both sides of a drifted template. @type {{document: any, here: any, there: any}|null} */
  let sides = null;
  let busy = false;
  let timer = 0;
  context.signal.addEventListener('abort', () => clearTimeout(timer));

  /** A proof, or nothing: the page works without it. @param {Promise<import('../../api.js').Answer>} answer */
  const proofOf = (answer) => answer.then(({ data }) => data, (error) => {
    if (isAbort(error)) throw error;
    return null;
  });

  /** Reads what the provider has, if it is something else. */
  async function compare() {
    const { id, name, language, version } = shared.template;
    sides = null;
    try {
      const { data: { document } } = await api.get(`message_templates/${id}/upstream`, { signal: context.signal });
      if (!document) return;
      const [here, there] = await Promise.all([
        proofOf(api.get(`message_templates/${id}/proof`, { query: { version }, signal: context.signal })),
        proofOf(api.post('message_templates/proof', { body: { document: { ...document, name, language } }, signal: context.signal })),
      ]);
      if (shared.template.version === version) sides = { document, here, there };
      context.update();
    } catch (error) {
      shared.fail(error);
    }
  }

  function changed() {
    const { state } = shared.template.upstream;
    clearTimeout(timer);
    if (isMoving(state)) timer = setTimeout(() => void shared.reload(), REFRESH_MS);
    if (isCompared(state) && api.can(SCOPE)) void compare();
    else sides = null;
  }

  /** @param {string} action */
  async function act(action) {
    // Without another content, accepting ends the hold because of the category.
    const wording = action === 'accept' && shared.template.upstream.state !== 'drifted' ? 'acceptCategory' : action;
    const question = t.confirm[wording];
    if (question && !await confirm({ ...question, action: t.actions[action] })) return;
    busy = true;
    context.update();
    try {
      await api.post(`message_templates/${shared.template.id}/upstream/${action}`, { ifMatch: shared.etag });
      toast(t.done[wording]);
      await shared.reload();
    } catch (error) {
      shared.fail(error);
    }
    busy = false;
    context.update();
  }

  /** @param {any} error of the provider */
  const refusal = (error) => html`<div class="notice notice-bad" data-testid="upstream-error">${icon('alert')}<div>
    ${error.title ? html`<strong><bdi>${error.title}</bdi></strong> ` : nothing}<bdi>${error.message}</bdi>
    <span class="quiet">${t.code(error.code, error.subcode)}</span></div></div>`;

  /** @param {string} title @param {any} it */
  const side = (title, it) => html`<div class="review-proof"><h3>${title}</h3>
    ${proofView(it, { label: title, language: shared.template.language, empty: proofTexts.failed })}</div>`;

  /** @param {string} state */
  const comparison = (state) => (sides
    ? html`<div class="review-proofs" data-testid="upstream-sides">${side(t.here(shared.template.version), sides.here)} ${side(t.there, sides.there)}</div>
      <h3>${t.differences}</h3>${changesView(comparable(shared.template), comparable(sides.document))}`
    : state === 'drifted' ? loading(1) : nothing);

  /** @param {any} it */
  const facts = (it) => html`<dl class="facts">
    ${fact(t.facts.id, it.id ? html`<code>${it.id}</code>` : nothing)}
    ${fact(t.facts.status, strings.status[it.status] ?? it.status)}
    ${fact(t.facts.category, strings.category[it.category] ?? it.category)}
    ${fact(t.facts.quality, it.quality === 'UNKNOWN' ? nothing : it.quality)}
    ${fact(t.facts.observed, it.observed_at ? timeAgo(it.observed_at) : nothing)}
  </dl>`;

  changed();
  return {
    changed,
    view() {
      const it = shared.template.upstream;
      const isHeld = isCategoryHeld(shared.template);
      const possible = actionsOf(it.state, isHeld);
      const actions = api.can(SCOPE) ? possible : [];
      return html`<section class="card" aria-labelledby="upstream-title" data-testid="upstream">
        <header class="card-head"><h2 id="upstream-title">${t.title}</h2>${upstreamBadge(it.state)}
          ${actions.length ? html`<div class="upstream-actions">${actions.map((action) => html`<button class="button button-small" type="button"
            data-testid="upstream-${action}" ?disabled=${busy} @click=${() => act(action)}>${t.actions[action]}</button>`)}</div>` : nothing}</header>
        <div class="card-body stack">
          <p>${t.meaning[it.state] ?? nothing}</p>
          ${isHeld ? html`<p data-testid="upstream-category">${t.categoryHeld(strings.category[shared.template.previous_category] ?? shared.template.previous_category, strings.category[shared.template.category] ?? shared.template.category)}</p>` : nothing}
          ${it.error ? refusal(it.error) : nothing}
          ${!api.can(SCOPE) && possible.length ? html`<p class="locked quiet">${icon('key')}${t.needsScope}</p>` : nothing}
          ${isCompared(it.state) && api.can(SCOPE) ? comparison(it.state) : nothing}
        </div>
        ${it.id ? facts(it) : nothing}
      </section>`;
    },
  };
}
