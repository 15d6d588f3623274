// One template: how it looks, its versions, values filled in, events.
import { html, nothing } from '../lit.js';
import { api, isAbort } from '../api.js';
import { paths, style } from '../router.js';
import { proofView } from '../proof.js';
import { strings } from '../strings.js';
import { template as t } from '../strings/template.js';
import { badge, statusMark } from '../ui/badge.js';
import { icon } from '../ui/icons.js';
import { language } from '../ui/language.js';
import { failure, loading, notice } from '../ui/state.js';
import { timeAgo } from '../ui/time.js';
import { actions } from './template/actions.js';
import { eventsCard } from './template/events.js';
import { valuesCard } from './template/values.js';
import { versionsCard } from './template/versions.js';

const MOST_VERSIONS = 100;

/**
 * What the parts of the page share.
 * @typedef {object} Shared
 * @property {import('../main.js').Context} context
 * @property {any} template       newest version
 * @property {string|null} etag
 * @property {any[]} versions     newest first
 * @property {number} shown       the version whose proof is shown
 * @property {(version: number) => void} show
 * @property {() => Promise<void>} reload
 * @property {(error: unknown) => void} fail
 */

/** @param {Shared} shared */
function standing({ template: it }) {
  const edit = api.can('write') ? html` <a href=${paths.edit(it.id)}>${t.actions.editAgain}</a>` : nothing;
  if (it.status === 'PENDING') {
    return html`<div class="notice notice-wait">${icon('clock')}<div>${it.live_version ? t.pendingLive(it.version, it.live_version) : t.pending(it.version)}
      ${api.can('review') ? html` <a href=${paths.review(it.id)}>${t.actions.review}</a>` : nothing}</div></div>`;
  }
  if (it.status === 'REJECTED') {
    return html`<div class="notice notice-bad" data-testid="rejection">${icon('close')}<div><strong><bdi>${it.live_version ? t.rejectedLive(it.version, it.live_version) : t.rejected(it.version)}</bdi></strong>
      <bdi>${it.rejection_reason ?? t.noReason}</bdi>${edit}</div></div>`;
  }
  if (it.status === 'PAUSED') return html`<div class="notice">${icon('pause')}<div>${t.paused}</div></div>`;
  if (it.status === 'DISABLED') return html`<div class="notice">${icon('stop')}<div>${t.disabled}</div></div>`;
  if (it.status === 'ARCHIVED') return html`<div class="notice">${icon('info')}<div>${t.archived}</div></div>`;
  return nothing;
}

/** @param {Shared} shared */
const facts = ({ template: it }) => html`
  <dl class="facts">
    <div><dt>${t.facts.category}</dt><dd>${strings.category[it.category] ?? it.category}</dd></div>
    <div><dt>${t.facts.language}</dt><dd>${language(it.language)}</dd></div>
    <div><dt>${t.facts.live}</dt><dd>${it.live_version ?? t.facts.noLive}</dd></div>
    <div><dt>${t.facts.updated}</dt><dd>${timeAgo(it.updated_at)}</dd></div>
    <div><dt>${t.facts.created}</dt><dd>${timeAgo(it.created_at)}</dd></div>
    <div><dt>${t.facts.id}</dt><dd><code>${it.id}</code></dd></div>
  </dl>`;

/** The other languages of the name. @param {any[]} siblings @param {string} id */
const languages = (siblings, id) => (siblings.length > 1
  ? html`<nav class="siblings" aria-label=${t.otherLanguages}>${siblings.map((it) => html`
      <a class="sibling" href=${paths.template(it.id)} aria-current=${it.id === id ? 'page' : nothing}>${statusMark(it.status)}<code>${it.language}</code></a>`)}</nav>`
  : nothing);

/** @param {import('../main.js').Context} context */
export function page(context) {
  const { params: { id }, signal, update, navigate } = context;
  /** @type {unknown} */
  let error = null;
  /** @type {unknown} */
  let trouble = null;
  /** @type {any[]} */
  let siblings = [];
  /** @type {any} */
  let proof = null;

  /** @type {Shared} */
  const shared = {
    context, template: null, etag: null, versions: [], shown: 0,
    show(version) {
      shared.shown = version;
      update();
      void loadProof();
      // The button that was pressed is gone.
      requestAnimationFrame(() => requestAnimationFrame(() => document.getElementById('shown-version')?.focus()));
    },
    async reload() {
      trouble = null;
      await load();
    },
    fail(problem) {
      if (isAbort(problem)) return;
      trouble = problem;
      update();
      requestAnimationFrame(() => document.querySelector('.trouble')?.scrollIntoView({ block: 'nearest' }));
    },
  };

  async function loadProof() {
    const version = shared.shown;
    try {
      const { data } = await api.get(`message_templates/${id}/proof`, { query: { version }, signal });
      if (version === shared.shown) proof = data;
      update();
    } catch (problem) {
      shared.fail(problem);
    }
  }

  async function loadSiblings() {
    if (api.session?.account.rulebook !== 'whatsapp') return;
    try {
      const { data } = await api.get('message_templates', { query: { group: 'name', name: shared.template.name }, signal });
      siblings = [...(data.data[0]?.templates ?? [])].sort((a, b) => a.language.localeCompare(b.language));
      update();
    } catch {
      // The page works without them.
    }
  }

  async function load() {
    try {
      const [template, versions] = await Promise.all([
        api.get(`message_templates/${id}`, { signal }),
        api.get(`message_templates/${id}/versions`, { query: { limit: MOST_VERSIONS }, signal }),
      ]);
      shared.template = template.data;
      shared.etag = template.etag;
      shared.versions = versions.data.data;
      shared.shown = template.data.version;
      void loadProof();
      void loadSiblings();
      parts ??= [versionsCard(shared, compare), valuesCard(shared), eventsCard(shared)];
      for (const part of parts) part.changed();
      if (template.data.upstream) void showUpstream();
    } catch (problem) {
      if (isAbort(problem)) return;
      error = problem;
    }
    update();
  }

  /** @type {ReturnType<typeof import('./template/compare.js').compareCard>|null} */
  let comparison = null;
  /** The comparison is loaded when it is wanted. @param {number} version */
  async function compare(version) {
    const [{ compareCard }] = await Promise.all([import('./template/compare.js'), style('review')]);
    comparison ??= compareCard(shared);
    comparison.open(version);
  }

  /** @type {{changed(): void, view(): unknown}|null} */
  let upstream = null;
  /** Only connected accounts need it. */
  async function showUpstream() {
    if (upstream) return upstream.changed();
    const [{ upstreamCard }] = await Promise.all([import('./template/upstream.js'), style('review')]);
    upstream ??= upstreamCard(shared);
    update();
  }

  /** @type {{changed(): void, view(): unknown}[]|null} */
  let parts = null;
  void load();

  const content = () => {
    if (error) return failure(error, () => { error = null; void load(); });
    if (!shared.template || !parts) return loading(5);
    const [versions, values, events] = parts;
    return html`
      ${languages(siblings, id)}
      <div class="trouble">${trouble ? html`${notice(trouble, shared.reload)}` : nothing}</div>
      <div class="standing">${standing(shared)}</div>
      <div class="template">
        <div class="template-main stack">
          ${shared.template.upstream && upstream ? upstream.view() : nothing} ${versions.view()} ${comparison?.view() ?? nothing} ${values.view()} ${events.view()}
        </div>
        <aside class="template-aside stack" aria-label=${t.proofOf(shared.shown)}>
          <h2 class="aside-title" id="shown-version" tabindex="-1">${t.proofHeading(shared.shown)} ${badge(shared.versions.find((it) => it.version === shared.shown)?.status ?? shared.template.status)}</h2>
          ${proof ? proofView(proof, { label: t.proofOf(shared.shown), language: shared.template.language }) : loading(1)}
          ${facts(shared)}
        </aside>
      </div>`;
  };

  // The heading stays the same element from the first render on, because it has the focus.
  const view = () => html`
    <nav class="crumbs" aria-label=${t.crumbs}><a href=${paths.list()}>${icon('chevron', 'crumb')}${t.back}</a></nav>
    <div class="page-head">
      <h1 tabindex="-1"><bdi>${shared.template?.name ?? t.heading}</bdi></h1>
      ${shared.template ? html`${badge(shared.template.status)} ${actions(shared)}` : nothing}
    </div>
    ${content()}`;

  return {
    title: () => shared.template?.name ?? t.back,
    view,
    shortcuts: [
      { keys: 'e', label: t.shortcuts.edit, run: () => navigate(paths.edit(id)), when: () => api.can('write') },
      { keys: 'r', label: t.shortcuts.review, run: () => navigate(paths.review(id)), when: () => api.can('review') && shared.template?.status === 'PENDING' },
      { keys: 'u', label: t.shortcuts.back, run: () => navigate(paths.list()) },
    ],
  };
}
