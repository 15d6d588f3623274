// The list: one row per name that opens to its languages. Search and filters are in the address.
import { html, nothing, repeat, live } from '../lit.js';
import { api, isAbort } from '../api.js';
import { paths } from '../router.js';
import { strings } from '../strings.js';
import { list as t } from '../strings/list.js';
import { icon } from '../ui/icons.js';
import { pager } from '../ui/pager.js';
import { empty, failure, loading } from '../ui/state.js';
import { languageName } from '../ui/language.js';
import { row } from './list/row.js';

/** @typedef {import('./list/row.js').Group} Group */

const STATUSES = ['PENDING', 'APPROVED', 'REJECTED', 'PAUSED', 'DISABLED', 'ARCHIVED'];
const CATEGORIES = ['MARKETING', 'UTILITY', 'AUTHENTICATION'];
const PAGE = 25;
const MOST = 100;
const TYPING_MS = 180;
const SEARCH_LAG = 'galley-search-lag';

/** @param {URLSearchParams} query */
const filtersOf = (query) => ({
  q: query.get('q') ?? '',
  status: (query.get('status') ?? '').split(',').filter((it) => STATUSES.includes(it)),
  category: query.get('category') ?? '',
  language: query.get('language') ?? '',
});

/** The cursor in `paging.next`. @param {any} data @returns {string|null} */
const cursorOf = (data) => new URLSearchParams(data.paging?.next ?? data.next ?? '').get('after');

/** What was shown when the visitor left, so that "back" finds it again. @type {{account: string|undefined, search: string, groups: Group[], cursor: string|null, open: Set<string>, scroll: number}|null} */
let left = null;

/** @param {import('../main.js').Context} context */
export function page({ query, signal, back, update, navigate, announce }) {
  let filters = filtersOf(query);
  /** What the search field shows: `filters.q` as it was typed, spaces included. */
  let search = filters.q;
  let address = query.toString();
  /** @type {Group[]|null} */
  let groups = null;
  /** @type {string|null} */
  let cursor = null;
  let busy = false;
  let lag = false;
  /** @type {unknown} */
  let error = null;
  let timer = 0;
  /** @type {AbortController|null} */
  let request = null;
  /** Languages that were seen, for the filter. @type {Set<string>} */
  const languages = new Set(filters.language ? [filters.language] : []);
  const account = api.session?.account.id;
  const returned = back && left?.account === account && left?.search === query.toString() ? left : null;
  if (returned) ({ groups, cursor } = returned);
  /** Names whose row is open. @type {Set<string>} */
  const open = returned?.open ?? new Set();

  const filtered = () => Boolean(filters.q || filters.status.length || filters.category || filters.language);

  /** Without any template, there is one thing to do, and one button for it. */
  const isEmpty = () => groups?.length === 0 && !filtered();

  async function load(more = false, limit = PAGE) {
    request?.abort();
    request = new AbortController();
    const mine = request;
    busy = true;
    error = null;
    update();
    try {
      const answer = await api.get('message_templates', {
        query: { group: 'name', ...filters, limit: more ? PAGE : limit, after: more ? cursor : null },
        signal: AbortSignal.any([signal, mine.signal]),
      });
      groups = more ? [...(groups ?? []), ...answer.data.data] : answer.data.data;
      cursor = cursorOf(answer.data);
      lag = answer.headers.has(SEARCH_LAG);
      for (const group of answer.data.data) for (const it of group.templates) languages.add(it.language);
      announce(t.shown(groups?.length ?? 0, cursor !== null));
    } catch (problem) {
      if (isAbort(problem)) return;
      error = problem;
    }
    busy = false;
    update();
  }

  /** Puts filters into the address; `queryChanged` then loads. @param {Partial<typeof filters>} change */
  function filter(change) {
    const next = { ...filters, q: search, ...change };
    clearTimeout(timer);
    const params = new URLSearchParams();
    if (next.q.trim()) params.set('q', next.q.trim());
    if (next.status.length) params.set('status', next.status.join(','));
    if (next.category) params.set('category', next.category);
    if (next.language) params.set('language', next.language);
    const text = params.toString();
    navigate(paths.list(text && `?${text}`), { replace: true, keepFocus: true });
  }

  /** @param {InputEvent} event */
  function typed(event) {
    search = /** @type {HTMLInputElement} */ (event.target).value;
    clearTimeout(timer);
    timer = setTimeout(() => filter({}), TYPING_MS);
  }

  /** @param {string} status */
  function toggleStatus(status) {
    const on = filters.status.includes(status);
    filter({ status: on ? filters.status.filter((it) => it !== status) : [...filters.status, status] });
  }

  /** @param {string} name */
  function toggleRow(name) {
    if (!open.delete(name)) open.add(name);
    update();
  }

  /** Moves the focus along the rows. @param {number} step */
  function move(step) {
    const rows = [...document.querySelectorAll('.group-main')];
    const at = rows.findIndex((it) => it.closest('.group')?.contains(document.activeElement));
    const next = rows[at < 0 ? (step > 0 ? 0 : rows.length - 1) : at + step];
    if (next instanceof HTMLElement) next.focus();
  }

  const toolbar = () => html`
    <form class="toolbar" role="search" @submit=${(/** @type {Event} */ event) => event.preventDefault()}>
      <div class="search">
        ${icon('search')}
        <input class="input" id="q" type="search" aria-label=${t.search} placeholder=${t.searchPlaceholder} dir="auto"
          autocomplete="off" spellcheck="false" .value=${live(search)} @input=${typed}>
        <kbd aria-hidden="true">/</kbd>
      </div>
      <select class="select" aria-label=${t.category} .value=${live(filters.category)}
        @change=${(/** @type {any} */ event) => filter({ category: event.target.value })}>
        <option value="" ?selected=${!filters.category}>${t.anyCategory}</option>
        ${CATEGORIES.map((it) => html`<option value=${it} ?selected=${it === filters.category}>${strings.category[it]}</option>`)}
      </select>
      <select class="select select-language" aria-label=${t.language} .value=${live(filters.language)}
        @change=${(/** @type {any} */ event) => filter({ language: event.target.value })}>
        <option value="">${t.anyLanguage}</option>
        ${repeat([...languages].sort(), (it) => it, (it) => html`<option value=${it} ?selected=${it === filters.language}>${languageName(it)} (${it})</option>`)}
      </select>
      <div class="chips" role="group" aria-label=${t.status}>
        <button class="chip" type="button" aria-pressed=${!filters.status.length} @click=${() => filter({ status: [] })}>${t.allStatuses}</button>
        ${STATUSES.map((it) => html`<button class="chip" type="button" aria-pressed=${filters.status.includes(it)}
          @click=${() => toggleStatus(it)}><span class="dot dot-${it}"></span>${strings.status[it]}</button>`)}
      </div>
    </form>`;

  const content = () => {
    if (error && !groups?.length) return failure(error, () => load());
    if (!groups) return loading(8);
    if (!groups.length) {
      return filtered()
        ? empty({ title: t.noneTitle, text: t.noneText, mark: 'search', action: html`<a class="button" href=${paths.list()}>${t.clear}</a>` })
        : empty({
          title: t.emptyTitle, text: t.emptyText,
          action: api.can('write') ? html`<a class="button button-primary" href=${paths.create()}>${t.create}</a>` : nothing,
        });
    }
    return html`
      ${lag ? html`<div class="notice" role="status">${icon('clock')}<div>${t.lag}</div></div>` : nothing}
      <ul class="groups card" aria-busy=${busy}>
        ${repeat(groups, (it) => it.name, (it) => row(it, open.has(it.name), () => toggleRow(it.name)))}
      </ul>
      ${error ? failure(error, () => load(true)) : pager({ more: cursor !== null, busy, load: () => load(true) })}`;
  };

  // Rows of an earlier visit are shown at once and read again.
  void load(false, Math.min(MOST, Math.max(PAGE, groups?.length ?? 0)));
  return {
    title: t.title,
    view: () => html`
      <div class="page-head">
        <h1 tabindex="-1">${t.title}</h1>
        <div class="page-actions">
          ${api.can('write') && !isEmpty() ? html`<a class="button button-primary" href=${paths.create()}>${icon('plus')}${t.create}</a>` : nothing}
        </div>
      </div>
      ${isEmpty() ? nothing : toolbar()}
      ${content()}`,
    shortcuts: [
      { keys: '/', label: t.shortcuts.search, run: () => document.getElementById('q')?.focus() },
      { keys: 'j', label: t.shortcuts.next, run: () => move(1) },
      { keys: 'k', label: t.shortcuts.previous, run: () => move(-1) },
      { keys: 'x', label: t.shortcuts.clear, run: () => navigate(paths.list(), { keepFocus: true }), when: filtered },
    ],
    queryChanged(/** @type {URLSearchParams} */ changed) {
      filters = filtersOf(changed);
      // The address has the words without the spaces around them, which are still being typed.
      if (filters.q !== search.trim()) {
        search = filters.q;
        clearTimeout(timer);
      }
      address = changed.toString();
      if (filters.language) languages.add(filters.language);
      void load();
      return true;
    },
    scroll: returned?.scroll,
    dispose() {
      clearTimeout(timer);
      if (groups) left = { account, search: address, groups, cursor, open, scroll: scrollY };
    },
  };
}
