// Saving: the bar at the foot of the editor, and what follows a save.

import { html, nothing } from '../../lit.js';
import { paths } from '../../router.js';
import { editor as t } from '../../strings/editor.js';
import { icon } from '../../ui/icons.js';
import { toast } from '../../ui/toast.js';

/** @param {import('./state.js').Editor} editor */
export function saveBar(editor) {
  const count = editor.shownViolations.length + (editor.shownViolations.length > 0 ? editor.moreViolations : 0);
  const warned = editor.warnings.length + editor.moreWarnings;
  return html`<div class="save-bar">
    <div class="save-state">
      ${stateChip(editor, count)}
      ${warned > 0 ? html`<span class="state-chip state-chip-wait">${icon('info')}${t.warnings(warned)}</span>` : nothing}
      <span class="quiet draft-state">${DRAFT[editor.draft.state]}</span>
    </div>
    <button
      class="button button-primary"
      type="submit"
      data-testid="save"
      ?disabled=${editor.saving || !editor.canSave || editor.jsonError !== ''}
    >
      ${editor.saving ? t.saving : t.save}
    </button>
  </div>`;
}

const DRAFT = { none: t.draftNone, changed: '', kept: t.draftKept, restored: t.draftKept, failed: t.draftFailed };

function stateChip(editor, count) {
  if (editor.jsonError !== '' || (editor.isPristine && editor.id === null)) return nothing;
  if (count > 0) {
    return html`<button class="state-chip state-chip-bad" type="button" title=${t.showFirst} @click=${showFirst}>
      ${icon('alert')}${t.problems(count)}
    </button>`;
  }
  if (editor.checkFailed) return html`<span class="state-chip state-chip-wait">${icon('alert')}${t.offline}</span>`;
  return editor.isChecked
    ? html`<span class="state-chip state-chip-ok">${icon('check')}${t.valid}</span>`
    : html`<span class="state-chip">${icon('clock')}${t.checking}</span>`;
}

/** Shows the first violation and moves the focus to its field. */
function showFirst() {
  const first = document.querySelector('[data-testid="violation"]');
  const field = first
    ?.closest('.field, .samples, .button-item, .part')
    ?.querySelector('textarea, input:not([type=radio]), select, button');
  first?.closest('details')?.setAttribute('open', '');
  first?.scrollIntoView({
    block: 'center',
    behavior: matchMedia('(prefers-reduced-motion: reduce)').matches ? 'auto' : 'smooth',
  });
  if (field instanceof HTMLElement) field.focus({ preventScroll: true });
}

/** Saves, and shows what follows. @param {import('./state.js').Editor} editor */
export async function save(editor) {
  if (editor.isChecked && editor.violations.length > 0) {
    editor.isPristine = false;
    editor.context.update();
    editor.context.announce(t.fixFirst(editor.violations.length));
    afterUpdate(showFirst);
    return;
  }
  const saved = await editor.save();
  if (saved !== null) toast(saved.isChanged ? t.savedBefore : (t.saved[saved.status] ?? t.savedOther));
  // The author has left: what comes later concerns no page.
  if (editor.context.signal.aborted) return;
  if (saved !== null) {
    if (!saved.isChanged) editor.context.navigate(paths.template(saved.id));
    else if (editor.id === null) editor.context.navigate(paths.edit(saved.id), { replace: true });
  } else if (editor.conflict) await resolve(editor);
  else if (editor.violations.length > 0) afterUpdate(showFirst);
}

/** Lets the author choose between the saved version and the own one. */
export async function resolve(editor) {
  // The comparison is loaded when it is wanted.
  const { chooseVersion } = await import('./conflict.js');
  const choice = await chooseVersion(editor);
  if (choice === undefined) return;
  editor.settle(choice);
  if (choice === 'mine') await save(editor);
}

function afterUpdate(run) {
  requestAnimationFrame(() => requestAnimationFrame(run));
}
