// One name of the list with its languages.
import { html, nothing, repeat } from '../../lit.js';
import { api } from '../../api.js';
import { paths } from '../../router.js';
import { strings } from '../../strings.js';
import { list as t } from '../../strings/list.js';
import { badge, statusMark, tag } from '../../ui/badge.js';
import { icon } from '../../ui/icons.js';
import { language } from '../../ui/language.js';
import { timeAgo } from '../../ui/time.js';

/**
 * @typedef {object} Item
 * @property {string} id
 * @property {string} language
 * @property {string} status
 * @property {string} category
 * @property {number} version
 * @property {number} [live_version]
 * @property {string} [reason]
 * @property {{state: string}} [upstream]
 * @property {string} created_at
 * @property {string} updated_at
 *
 * @typedef {{name: string, templates: Item[]}} Group
 */

/** Most urgent first: what a person has to act on. */
const URGENCY = ['REJECTED', 'PENDING', 'PAUSED', 'APPROVED', 'DISABLED', 'ARCHIVED'];
/** At most so many languages are named in a closed row. */
const MOST_CHIPS = 6;

/** @param {Item} it */
const canEdit = (it) => api.can('write') && !['DISABLED', 'ARCHIVED'].includes(it.status);

/** The reason of a rejection, and the way out. @param {Item} it @param {boolean} [named] */
const rejection = (it, named = false) => html`
  <div class="rejection">
    <p>${named ? html`<bdi><code>${it.language}</code></bdi> ` : nothing}<strong><bdi>${t.rejected}</bdi></strong> <bdi>${it.reason || t.noReason}</bdi></p>
    ${canEdit(it) ? html`<a class="button button-small" href=${paths.edit(it.id)}>${icon('edit')}${t.editAgain}</a>` : nothing}
  </div>`;

/** @param {Item} it */
const liveness = (it) => (it.live_version && it.live_version !== it.version
  ? html`<span class="quiet">${t.version(it.version)} · ${t.live(it.live_version)}</span>`
  : html`<span class="quiet">${t.version(it.version)}</span>`);

/** What is unusual about it at the provider. @param {Item} it */
const atProvider = (it) => (it.upstream && t.upstream[it.upstream.state]
  ? html`<span class="tag" data-upstream=${it.upstream.state}>${t.upstream[it.upstream.state]}</span>` : nothing);

/** @param {Item} it @param {string} name */
const languageRow = (it, name) => html`
  <li class="language-row" data-testid="language-row" data-id=${it.id}>
    <a class="language-link" href=${paths.template(it.id)}><span class="visually-hidden">${name}, </span>${language(it.language)}</a>
    ${badge(it.status)} ${atProvider(it)}
    ${liveness(it)}
    <span class="quiet language-time">${timeAgo(it.updated_at)}</span>
    <span class="language-actions">
      ${it.status === 'PENDING' && api.can('review') ? html`<a class="button button-small" href=${paths.review(it.id)}>${t.review}</a>` : nothing}
      ${canEdit(it) && it.status !== 'REJECTED' ? html`<a class="icon-button" href=${paths.edit(it.id)} title=${strings.actions.edit}
        aria-label="${strings.actions.edit}: ${name}, ${it.language}">${icon('edit')}</a>` : nothing}
    </span>
    ${it.status === 'REJECTED' ? rejection(it) : nothing}
  </li>`;

/** @param {Item[]} templates */
const chips = (templates) => html`
  <span class="language-chips">
    ${templates.slice(0, MOST_CHIPS).map((it) => html`<span class="language-chip">${statusMark(it.status)}<code>${it.language}</code></span>`)}
    ${templates.length > MOST_CHIPS ? html`<span class="language-chip">+${templates.length - MOST_CHIPS}</span>` : nothing}
  </span>`;

/** The newest change of any language. @param {Item[]} templates */
const newest = (templates) => templates.reduce((at, it) => (it.updated_at > at ? it.updated_at : at), '');

/** @param {Group} group */
function single({ name, templates: [it] }) {
  return html`<li class="group" data-testid="template-row" data-name=${name}>
    <a class="group-main" href=${paths.template(it.id)}>
      <span class="group-mark">${icon('sheet')}</span>
      <span class="group-name"><bdi>${name}</bdi></span>
      <span class="group-category">${tag(strings.category[it.category] ?? it.category)}</span>
      <span class="group-languages"><code>${it.language}</code>${badge(it.status)}${atProvider(it)}${it.live_version && it.live_version !== it.version ? html`<span class="quiet">${t.live(it.live_version)}</span>` : nothing}</span>
      <span class="group-time quiet">${timeAgo(it.updated_at)}</span>
    </a>
    ${it.status === 'REJECTED' ? rejection(it) : nothing}
  </li>`;
}

/** @param {Group} group @param {boolean} isOpen @param {() => void} toggle */
export function row(group, isOpen, toggle) {
  if (group.templates.length === 1) return single(group);
  const { name, templates } = group;
  const sorted = [...templates].sort((a, b) => URGENCY.indexOf(a.status) - URGENCY.indexOf(b.status) || a.language.localeCompare(b.language));
  const id = `languages-${templates[0].id}`;
  return html`<li class="group ${isOpen ? 'is-open' : ''}" data-testid="template-row" data-name=${name}>
    <button class="group-main" type="button" aria-expanded=${isOpen} aria-controls=${isOpen ? id : nothing} @click=${toggle}>
      <span class="group-mark">${icon('chevron', 'flip')}</span>
      <span class="group-name"><bdi>${name}</bdi></span>
      <span class="group-category">${tag(strings.category[templates[0].category] ?? templates[0].category)}</span>
      <span class="group-languages">${chips(sorted)}</span>
      <span class="group-time quiet">${timeAgo(newest(templates))}</span>
    </button>
    ${isOpen
    ? html`<ul class="language-rows" id=${id} aria-label=${t.showLanguages(name)}>
        ${repeat(sorted, (it) => it.id, (it) => languageRow(it, name))}
        ${api.can('write') && api.session?.account.rulebook === 'whatsapp' ? html`<li class="language-add"><a class="button button-small button-quiet" href=${paths.addLanguage(templates[0].id)}>${icon('plus')}${t.addLanguage}</a></li>` : nothing}
      </ul>`
    : sorted.filter((it) => it.status === 'REJECTED').slice(0, 2).map((it) => rejection(it, true))}
  </li>`;
}
