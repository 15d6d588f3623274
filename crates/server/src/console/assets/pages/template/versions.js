// The versions of a template with author, decision and time; show, compare, restore.
import { html, nothing, repeat } from '../../lit.js';
import { api } from '../../api.js';
import { template as t } from '../../strings/template.js';
import { author } from '../../ui/author.js';
import { badge } from '../../ui/badge.js';
import { confirm } from '../../ui/dialog.js';
import { icon } from '../../ui/icons.js';
import { timeAgo } from '../../ui/time.js';
import { toast } from '../../ui/toast.js';

const AT_FIRST = 5;

/** @param {import('../template.js').Shared} shared @param {(version: number) => void} compare */
export function versionsCard(shared, compare) {
  let all = false;

  /** @param {number} version */
  async function restore(version) {
    const manual = api.session?.account.review === 'manual' || Boolean(shared.template.upstream);
    const sure = await confirm({ title: t.restoreVersion(version), text: t.restoreText(version, manual), action: t.restore });
    if (!sure) return;
    try {
      await api.patch(`message_templates/${shared.template.id}`, { body: { restore_version: version }, ifMatch: shared.etag });
      toast(t.restored(version));
      await shared.reload();
    } catch (error) {
      shared.fail(error);
    }
  }

  /** @param {any} it @param {boolean} first whether nothing is older */
  const entry = (it, first) => html`
    <li class="version ${it.version === shared.shown ? 'is-shown' : ''}" data-version=${it.version}>
      <span class="version-number" aria-hidden="true">${it.version}</span>
      <div class="version-text">
        <p class="version-head"><strong>${t.version(it.version)}</strong> ${badge(it.status)}
          ${it.version === shared.template.live_version ? html`<span class="badge tone-live">${t.live}</span>` : nothing}</p>
        <p class="quiet">${timeAgo(it.created_at)} ${t.by} <bdi>${author(it.created_by, it.created_by_name)}</bdi></p>
        ${it.decided_at ? html`<p class="quiet">${t.decided[it.status] ?? it.status} ${timeAgo(it.decided_at)} ${t.by} <bdi>${author(it.decided_by, it.decided_by_name)}</bdi></p>` : nothing}
        ${it.reason ? html`<p class="version-reason" dir="auto">${it.reason}</p>` : nothing}
      </div>
      <div class="version-actions">
        ${it.version === shared.shown
    ? html`<span class="quiet version-shown">${icon('eye')}${t.shown}</span>`
    : html`<button class="button button-small" type="button" aria-label=${t.showVersion(it.version)} @click=${() => shared.show(it.version)}>${t.show}</button>`}
        ${first ? nothing : html`<button class="button button-small" type="button" aria-label=${t.compareVersion(it.version)} @click=${() => compare(it.version)}>${t.compare}</button>`}
        ${it.version !== shared.template.version && api.can('write') && !['DISABLED', 'ARCHIVED'].includes(shared.template.status)
    ? html`<button class="button button-small" type="button" aria-label=${t.restoreVersion(it.version)} @click=${() => restore(it.version)}>${t.restore}</button>` : nothing}
      </div>
    </li>`;

  return {
    changed() {},
    view() {
      const { versions } = shared;
      const visible = all ? versions : versions.slice(0, AT_FIRST);
      return html`<section class="card" aria-labelledby="versions-title">
        <header class="card-head"><h2 id="versions-title">${t.versions}</h2></header>
        <ol class="versions">${repeat(visible, (it) => it.version, (it) => entry(it, it === versions.at(-1)))}</ol>
        ${visible.length < versions.length ? html`<div class="card-foot"><button class="button button-quiet button-small" type="button"
          @click=${() => { all = true; shared.context.update(); }}>${t.allVersions(versions.length)}</button></div>` : nothing}
      </section>`;
    },
  };
}
