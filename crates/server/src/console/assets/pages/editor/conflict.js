// A save that met a newer revision: shows both, and lets the author choose.

import { html } from '../../lit.js';
import { editor } from '../../strings/editor.js';
import { style } from '../../router.js';
import { openDialog } from '../../ui/dialog.js';
import { changesView } from '../review/changes.js';

const t = editor.conflict;

/**
 * @param {import('./state.js').Editor} editor
 * @returns {Promise<'mine' | 'theirs' | undefined>}
 */
export async function chooseVersion(editor) {
  const { theirs } = editor.conflict;
  await style('review');
  return openDialog({
    title: t.title,
    wide: true,
    body: (close) => html`
      <p>${t.text}</p>
      <p class="conflict-key"><del>${t.theirs}</del> <ins>${t.mine}</ins></p>
      <div class="conflict-changes" tabindex="0" role="group" aria-label=${t.text}>
        ${changesView(theirs, editor.document)}
      </div>
      <footer class="dialog-foot">
        <button class="button" type="button" @click=${() => close(undefined)}>${t.goOn}</button>
        <button class="button" type="button" data-testid="take-theirs" @click=${() => close('theirs')}>
          ${t.takeTheirs}
        </button>
        <button class="button button-danger" type="button" data-testid="keep-mine" @click=${() => close('mine')}>
          ${t.keepMine}
        </button>
      </footer>
    `,
  });
}
