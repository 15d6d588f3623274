// Parts that a message may have: footer, offer, settings of the delivery.

import { html, nothing } from '../../lit.js';
import { editor as t } from '../../strings/editor.js';
import { icon } from '../../ui/icons.js';
import * as model from './document.js';
import { checkField, inputField, textField } from './fields.js';
import { focusPart } from './focus.js';
import { lengths } from './limits.js';
import { groupMessages } from './messages.js';
import { removeAt } from './pointer.js';

/** @typedef {import('./fields.js').Form} Form */

/** Adds a component. @param {import('./state.js').Editor} editor */
export const adder = (editor, list, component, label) =>
  html`<button
    class="button button-small"
    type="button"
    @click=${() => {
      editor.change(model.withComponent(editor.document, list, component));
      focusPart(component.type);
    }}
  >
    ${icon('plus')}${label}
  </button>`;

/** Removes a component that is there, from the head of its section. @param {Form} form */
export function remover({ editor }, list, type) {
  const pointer = model.componentPointer(editor.document, list, type);
  if (pointer === null) return nothing;
  return html`<button
    class="button button-small button-quiet"
    type="button"
    @click=${() => {
      editor.change(removeAt(editor.document, pointer));
      focusPart(type);
    }}
  >
    ${icon('trash')}${t.removePart}
  </button>`;
}

/** @param {Form} form @param {string} list */
export function footer(form, list) {
  const { editor } = form;
  const pointer = model.componentPointer(editor.document, list, 'FOOTER');
  if (pointer === null) {
    const isAuthentication =
      editor.rulebook === 'whatsapp' && String(editor.value('/category')).toUpperCase() === 'AUTHENTICATION';
    const fresh = isAuthentication ? { type: 'FOOTER', code_expiration_minutes: 10 } : { type: 'FOOTER', text: '' };
    return adder(editor, list, fresh, t.addFooter);
  }
  const minutes = `${pointer}/code_expiration_minutes`;
  const hasMinutes = editor.value(minutes) !== undefined;
  const hasText = !hasMinutes || editor.value(`${pointer}/text`) !== undefined;
  return html`
    ${hasMinutes ? inputField(form, { pointer: minutes, label: t.expiration, type: 'number', inputmode: 'numeric' }) : nothing}
    ${hasText ? textField(form, { pointer: `${pointer}/text`, label: t.footerText, limit: lengths(editor.rulebook).footer }) : nothing}
    ${groupMessages(form, pointer)}
  `;
}

/** @param {Form} form @param {string} list */
export function offer(form, list) {
  const { editor } = form;
  const pointer = model.componentPointer(editor.document, list, 'LIMITED_TIME_OFFER');
  if (pointer === null) {
    return adder(editor, list, { type: 'LIMITED_TIME_OFFER', limited_time_offer: { text: '' } }, t.addOffer);
  }
  const inner = `${pointer}/limited_time_offer`;
  return html`
    ${textField(form, { pointer: `${inner}/text`, label: t.offerText, limit: lengths('whatsapp').offer })}
    ${checkField(form, { pointer: `${inner}/has_expiration`, label: t.offerExpires, optional: true })}
    ${groupMessages(form, pointer)}
  `;
}

/** @param {Form} form */
export const delivery = (form) => html`
  ${inputField(form, { pointer: '/message_send_ttl_seconds', label: t.ttl, type: 'number', optional: true, inputmode: 'numeric' })}
  ${checkField(form, { pointer: '/cta_url_link_tracking_opted_out', label: t.tracking, optional: true })}
`;
