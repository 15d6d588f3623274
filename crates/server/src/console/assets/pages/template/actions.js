// What one can do with a template: edit, duplicate, hold, delete.
import { html, nothing } from '../../lit.js';
import { api } from '../../api.js';
import { paths } from '../../router.js';
import { strings } from '../../strings.js';
import { template as t } from '../../strings/template.js';
import { confirm, openDialog } from '../../ui/dialog.js';
import { icon } from '../../ui/icons.js';
import { toast } from '../../ui/toast.js';

/** Decisions that are possible besides those of a review. @param {any} it */
function holds(it) {
  // The provider decides about holds.
  if (it.upstream) return [];
  if (it.status === 'DISABLED' || it.status === 'ARCHIVED') return [];
  if (it.status === 'PAUSED') return ['resume', 'disable'];
  return it.status === 'APPROVED' || it.live_version ? ['pause', 'disable'] : ['disable'];
}

/** Asks for a reason; undefined if the visitor cancels. @param {'pause'|'resume'|'disable'} decision */
const askReason = (decision) => openDialog({
  title: t.decisions[decision].title,
  body: (close) => html`
    <form method="dialog" class="stack" @submit=${(/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    close(/** @type {HTMLTextAreaElement} */ (document.getElementById('hold-reason')).value.trim());
  }}>
      <p>${t.decisions[decision].text}</p>
      <div class="field">
        <label for="hold-reason">${t.reason}</label>
        <textarea class="textarea" id="hold-reason" maxlength="1024" dir="auto" autofocus aria-describedby="hold-hint"></textarea>
        <p class="hint" id="hold-hint">${t.reasonHint}</p>
      </div>
      <footer class="dialog-foot">
        <button class="button" type="button" @click=${() => close(undefined)}>${strings.actions.cancel}</button>
        <button class="button ${decision === 'disable' ? 'button-danger' : 'button-primary'}" type="submit">${t.actions[decision]}</button>
      </footer>
    </form>`,
});

/** @param {import('../template.js').Shared} shared @param {'pause'|'resume'|'disable'} decision */
async function hold(shared, decision) {
  const reason = await askReason(decision);
  if (reason === undefined) return;
  const { id, version } = shared.template;
  try {
    await api.post(`message_templates/${id}/review`, {
      body: reason ? { decision, version, reason } : { decision, version }, ifMatch: shared.etag,
    });
    toast(t.decisions[decision].done);
    await shared.reload();
  } catch (error) {
    shared.fail(error);
  }
}

/** @param {import('../template.js').Shared} shared */
async function remove(shared) {
  const { id, name, language } = shared.template;
  if (!await confirm({ title: t.deleteTitle, text: t.deleteText(name, language), action: t.actions.delete, danger: true })) return;
  try {
    await api.delete(`message_templates/${id}`, { ifMatch: shared.etag });
    toast(t.deleted(name));
    shared.context.navigate(paths.list());
  } catch (error) {
    shared.fail(error);
  }
}

/** A menu on <details>, closed by Escape, a choice, or focus elsewhere. @param {unknown} items */
function menu(items) {
  const close = (/** @type {Event} */ event) => /** @type {HTMLElement} */ (event.currentTarget).removeAttribute('open');
  return html`<details class="menu" @click=${(/** @type {Event} */ event) => {
    if (!(/** @type {Element} */ (event.target).closest('summary'))) close(event);
  }} @keydown=${(/** @type {KeyboardEvent} */ event) => {
    if (event.key !== 'Escape') return;
    close(event);
    /** @type {HTMLElement} */ (event.currentTarget).querySelector('summary')?.focus();
  }} @focusout=${(/** @type {FocusEvent} */ event) => {
    if (event.relatedTarget && !(/** @type {Element} */ (event.currentTarget).contains(/** @type {Node} */ (event.relatedTarget)))) close(event);
  }}>
    <summary class="button" aria-label=${t.actions.more} title=${t.actions.more}>${icon('more')}</summary>
    <div class="menu-items">${items}</div>
  </details>`;
}

/** @param {import('../template.js').Shared} shared */
export function actions(shared) {
  const it = shared.template;
  const whatsapp = api.session?.account.rulebook === 'whatsapp';
  const writes = api.can('write');
  return html`<div class="page-actions">
    ${it.status === 'PENDING' && api.can('review') ? html`<a class="button" href=${paths.review(it.id)}>${t.actions.review}</a>` : nothing}
    ${writes && it.status !== 'DISABLED' && it.status !== 'ARCHIVED' ? html`<a class="button button-primary" href=${paths.edit(it.id)}>${icon('edit')}${it.status === 'REJECTED' ? t.actions.editAgain : t.actions.edit}</a>` : nothing}
    ${writes || api.can('review') ? menu(html`
      ${writes ? html`<a href=${paths.duplicate(it.id)}>${icon('copy')}${t.actions.duplicate}</a>` : nothing}
      ${writes && whatsapp ? html`<a href=${paths.addLanguage(it.id)}>${icon('globe')}${t.actions.addLanguage}</a>` : nothing}
      ${api.can('review') ? holds(it).map((decision) => html`<button type="button" @click=${() => hold(shared, /** @type {any} */ (decision))}>${icon(decision === 'disable' ? 'stop' : decision === 'pause' ? 'pause' : 'restore')}${t.actions[/** @type {'pause'} */ (decision)]}</button>`) : nothing}
      ${writes ? html`<button class="menu-danger" type="button" @click=${() => remove(shared)}>${icon('trash')}${t.actions.delete}</button>` : nothing}`) : nothing}
  </div>`;
}
