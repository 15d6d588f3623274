// Carousel cards: each has a header, a text and buttons of its own.

import { html } from '../../lit.js';
import { editor as t } from '../../strings/editor.js';
import { icon } from '../../ui/icons.js';
import { body } from './body.js';
import { buttons } from './buttons.js';
import * as model from './document.js';
import { adder } from './extras.js';
import { focusSoon } from './focus.js';
import { groupMessages } from './messages.js';
import { removeAt } from './pointer.js';
import { header } from './header.js';

const MAX_CARDS = 10;
const CARD_HEADERS = ['IMAGE', 'VIDEO', 'PRODUCT'];
const CARD_BUTTONS = ['QUICK_REPLY', 'URL', 'PHONE_NUMBER', 'SPM'];

const newCard = () => ({
  components: [
    { type: 'HEADER', format: 'IMAGE', example: { header_handle: [''] } },
    { type: 'BODY', text: '' },
    { type: 'BUTTONS', buttons: [{ type: 'QUICK_REPLY', text: '' }] },
  ],
});

/** @param {import('./fields.js').Form} form */
export function cards(form) {
  const { editor } = form;
  const pointer = model.componentPointer(editor.document, '/components', 'CAROUSEL');
  if (pointer === null) {
    return adder(editor, '/components', { type: 'CAROUSEL', cards: [newCard(), newCard()] }, t.addCards);
  }
  const found = editor.value(`${pointer}/cards`);
  const all = Array.isArray(found) ? found : [];
  return html`
    <ol class="card-items">
      ${all.map((_, index) => card(form, `${pointer}/cards/${index}`, index))}
    </ol>
    <div class="adder">
      ${
        all.length < MAX_CARDS
          ? html`<button
              class="button button-small"
              type="button"
              @click=${() => {
                editor.set(`${pointer}/cards`, [...all, structuredClone(all.at(-1) ?? newCard())]);
                focusSoon(`.card-item:nth-child(${all.length + 1}) summary`);
              }}
            >
              ${icon('plus')}${t.addCard}
            </button>`
          : ''
      }
    </div>
    ${groupMessages(form, pointer)}
  `;
}

function card(form, own, index) {
  const { editor } = form;
  const list = `${own}/components`;
  if (!Array.isArray(editor.value(list))) {
    return html`<li class="card-item">${groupMessages(form, own)}</li>`;
  }
  const count = form.violations.countBelow(own);
  return html`<li class="card-item">
    <details ?open=${index === 0}>
      <summary><span class="label">${t.card(index + 1)}</span>${count > 0 ? html` <span class="state-chip state-chip-bad">${t.problems(count)}</span>` : ''}</summary>
      <div class="part-body">
        ${header(form, list, { formats: CARD_HEADERS })} ${body(form, list, { isCard: true })}
        ${buttons(form, list, { types: CARD_BUTTONS, max: 2 })}
        <button
          class="button button-small button-quiet part-remove"
          type="button"
          @click=${() => {
            editor.forget(own.replace(/\/\d+$/, ''));
            editor.change(removeAt(editor.document, own));
            focusSoon(`.card-item:nth-child(${Math.max(index, 1)}) summary`, '[aria-labelledby=part-cards] .part-body');
          }}
        >
          ${icon('trash')}${t.removeCard(index + 1)}
        </button>
      </div>
    </details>
    ${groupMessages(form, own)}
  </li>`;
}
