// Modal dialogs on the native <dialog>.
//
//   const reason = await openDialog({ title, body: (close) => html`…<button @click=${() => close(value)}>` });
//   if (await confirm({ title, text, action: 'Delete', danger: true })) …
//
// The promise resolves with what `close` was called with; Escape and a click on the backdrop resolve with undefined.
// With `isSecret` the backdrop closes nothing: what such a dialog shows is shown once.

import { html, render, nothing } from '../lit.js';
import { strings as t } from '../strings.js';
import { icon } from './icons.js';

let count = 0;

/**
 * @template T
 * @param {{title: string, body: (close: (value?: T) => void, update: () => void) => unknown, wide?: boolean, isSecret?: boolean}} options
 * @returns {Promise<T|undefined>}
 */
export function openDialog({ title, body, wide = false, isSecret = false }) {
  const host = document.createElement('div');
  const id = `dialog-${++count}`;
  const before = document.activeElement;
  document.getElementById('dialogs')?.append(host);
  return new Promise((resolve) => {
    /** @type {T|undefined} */
    let result;
    /** Whether the press began on the backdrop: one that begins in a field may end there. */
    let isOutside = false;
    const element = () => /** @type {HTMLDialogElement} */ (host.firstElementChild);
    const close = (/** @type {T|undefined} */ value) => {
      result = value;
      element().close();
    };
    const onClose = () => {
      resolve(result);
      render(nothing, host);
      host.remove();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
    const update = () => render(html`
      <dialog class="dialog ${wide ? 'dialog-wide' : ''}" aria-labelledby=${id} @close=${onClose}
        @pointerdown=${(/** @type {Event} */ event) => (isOutside = event.target === element())}
        @click=${(/** @type {Event} */ event) => !isSecret && isOutside && event.target === element() && close(undefined)}>
        <div class="dialog-body">
          <header class="dialog-head">
            <h2 id=${id}>${title}</h2>
            <button class="icon-button" type="button" aria-label=${t.actions.close} @click=${() => close(undefined)}>${icon('close')}</button>
          </header>
          ${body(close, update)}
        </div>
      </dialog>`, host);
    update();
    element().showModal();
    /** @type {HTMLElement|null} */ (host.querySelector('[autofocus]'))?.focus();
  });
}

/**
 * @param {{title: string, text: unknown, action: string, danger?: boolean}} options
 * @returns {Promise<boolean>}
 */
export async function confirm({ title, text, action, danger = false }) {
  const answer = await openDialog({
    title,
    body: (close) => html`
      <p>${text}</p>
      <footer class="dialog-foot">
        <button class="button" type="button" ?autofocus=${danger} @click=${() => close(false)}>${t.actions.cancel}</button>
        <button class="button ${danger ? 'button-danger' : 'button-primary'}" type="button" ?autofocus=${!danger}
          @click=${() => close(true)}>${action}</button>
      </footer>`,
  });
  return answer === true;
}
