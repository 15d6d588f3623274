// The editor: create, edit, duplicate, add a language. The form and the JSON view show one document.

import { html, nothing } from '../lit.js';
import { proofView } from '../proof.js';
import { editor as t } from '../strings/editor.js';
import { badge } from '../ui/badge.js';
import { icon } from '../ui/icons.js';
import { failure, loading, notice } from '../ui/state.js';
import { ago } from '../ui/time.js';
import { fitsForm } from './editor/document.js';
import { segmented } from './editor/fields.js';
import { focusSoon } from './editor/focus.js';
import { form } from './editor/form.js';
import { resolve, save, saveBar } from './editor/save.js';
import { Editor } from './editor/state.js';

/** @param {import('../main.js').Context} context */
export function page(context) {
  const editor = new Editor(context);
  editor.onCountChange = (count) => context.announce(count === 0 ? t.valid : t.problems(count));
  addEventListener('pagehide', () => editor.draft.flush(), { signal: context.signal });
  void editor.load();
  return {
    title: () => title(editor),
    view: () => view(editor),
    shortcuts: [{ keys: 'mod+s', label: t.save, run: () => void save(editor) }],
    dispose: () => editor.dispose(),
  };
}

function title(editor) {
  const name = String(editor.source?.name ?? '');
  if (editor.id !== null) return t.edit(name);
  if (editor.from !== null) return t.copy(name);
  return editor.languageOf !== null ? t.addLanguage(name) : t.create;
}

function view(editor) {
  if (editor.loadError !== null) {
    return html`<h1 tabindex="-1" class="visually-hidden">${title(editor)}</h1>
      ${failure(editor.loadError, () => void editor.load())}`;
  }
  const isReady = editor.document !== undefined;
  return html`
    <header class="page-head editor-head">
      <h1 tabindex="-1" dir="auto">${title(editor)}</h1>
      ${editor.id !== null && editor.source ? badge(editor.source.status) : nothing}
      <div class="page-actions">${isReady ? viewSwitch(editor) : nothing}</div>
    </header>
    ${isReady ? content(editor) : loading()}
  `;
}

function viewSwitch(editor) {
  const isJson = editor.text !== null;
  const isStuck = isJson && (editor.jsonError !== '' || !fitsForm(editor.document));
  return html`<div class="view-switch">
    ${segmented({
      name: 'view',
      legend: t.view,
      value: isJson ? 'json' : 'form',
      options: [
        ['form', t.form],
        ['json', t.json],
      ],
      disabled: isStuck,
      change: (value) => (value === 'json' ? editor.showJson() : editor.showForm()),
    })}
  </div>`;
}

function content(editor) {
  return html`
    ${notices(editor)}
    <form
      class="editor"
      novalidate
      @submit=${(event) => {
        event.preventDefault();
        void save(editor);
      }}
    >
      <div class="editor-form">${editor.text === null ? form(editor) : json(editor)}</div>
      <aside class="editor-proof" aria-label=${t.proof} tabindex="0">
        <div class="editor-proof-head">
          <h2>${t.proof}</h2>
          <p class="quiet">${t.proofHint}</p>
        </div>
        ${proofView(editor.proof, { label: t.proof, language: String(editor.document?.language ?? '') })}
        ${
          editor.languageOf !== null && editor.sourceProof
            ? html`<div class="editor-proof-head"><h2>${t.original(editor.source.language)}</h2></div>
                ${proofView(editor.sourceProof, { label: t.originalProof, language: editor.source.language })}`
            : nothing
        }
      </aside>
      ${saveBar(editor)}
    </form>
  `;
}

/** The JSON view; it is loaded when it is wanted. @type {((editor: Editor) => unknown) | undefined} */
let jsonView;

function json(editor) {
  if (jsonView) return jsonView(editor);
  void import('./editor/json-view.js')
    .then((module) => (jsonView = module.jsonView))
    .catch((error) => (jsonView = () => failure(error, () => location.reload())))
    .then(() => editor.context.update());
  return loading(1);
}

function notices(editor) {
  const reason = editor.id !== null ? editor.source?.rejection_reason : undefined;
  const shown = [
    reason
      ? plainNotice('bad', 'alert', html`<strong><bdi>${t.rejected}</bdi></strong> <bdi>${reason}</bdi>`)
      : nothing,
    editor.canSave ? nothing : plainNotice('wait', 'info', t.readOnly),
    editor.draft.state === 'restored' ? draftNotice(editor) : nothing,
    editor.conflict ? conflictNotice(editor) : nothing,
    notice(editor.problem),
  ];
  return html`<div class="editor-notices">${shown}</div>`;
}

const plainNotice = (tone, mark, content) =>
  html`<div class="notice notice-${tone}">${icon(mark)}<div>${content}</div></div>`;

const draftNotice = (editor) => html`<div class="notice" role="status" data-testid="draft">
  ${icon('clock')}
  <div>${t.draftRestored(ago(new Date(editor.draft.savedAt).toISOString()))}</div>
  <button class="button button-small notice-action" type="button" @click=${() => void editor.discardDraft().then(() => focusSoon('#f-name', 'main h1'))}>${t.discard}</button>
</div>`;

const conflictNotice = (editor) => html`<div class="notice notice-bad" role="alert" data-testid="conflict">
  ${icon('alert')}
  <div>${t.conflict.notice}</div>
  <button class="button button-small notice-action" type="button" @click=${() => void resolve(editor)}>${t.conflict.compare}</button>
</div>`;
