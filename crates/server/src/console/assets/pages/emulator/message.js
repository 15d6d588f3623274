// The texts of a sandbox message as a proof, which shows them as the recipient reads them. Pure.
import { formatted, plain } from '../../proof/formatting.js';

/**
 * @typedef {object} Texts
 * @property {string} [header]  a text, or the address of an attachment
 * @property {string} [body]
 * @property {string} [footer]
 * @property {import('../../proof.js').Button[]} [buttons]
 * @property {{text: string, expiration_time_ms?: number}} [offer]
 * @property {boolean} [call_permission_request]
 * @property {Texts[]} [cards]
 */

const RTL = /^(ar|ckb|dv|fa|he|iw|ji|nqo|prs|ps|sd|syr|ug|ur|yi)(_|$)/;

/** A component of a template or of a card. @param {any} owner @param {string} type */
const component = (owner, type) => owner?.components?.find((/** @type {any} */ it) => it.type?.toUpperCase() === type);

/** @param {string} text @param {any} owner the template or the card; undefined if it is not known */
function header(text, owner) {
  const guess = /^https?:\/\/\S+$/.test(text) ? 'MEDIA' : 'TEXT';
  const format = component(owner, 'HEADER')?.format?.toUpperCase() ?? guess;
  if (format === 'TEXT') return { format, text: plain(text) };
  return format === 'LOCATION' ? { format, location: { name: text } } : { format, media: { url: text } };
}

/** @param {Texts} texts @param {any} owner */
const part = (texts, owner) => ({
  header: texts.header ? header(texts.header, owner) : undefined,
  body: formatted(texts.body ?? ''),
  footer: texts.footer ? plain(texts.footer) : undefined,
  buttons: texts.buttons,
});

/**
 * @param {Texts} texts
 * @param {any} [template] the version that was sent
 * @param {string} [copyCode] the label of buttons that have none
 * @returns {import('../../proof.js').Proof}
 */
export function proofOf(texts, template, copyCode) {
  const cards = component(template, 'CAROUSEL')?.cards ?? [];
  const message = part(texts, template);
  return {
    ...message,
    direction: RTL.test(template?.language ?? '') ? 'rtl' : 'auto',
    buttons: message.buttons?.map((it) => ({ ...it, text: it.text || copyCode || '' })),
    offer: texts.offer ? { text: texts.offer.text, has_expiration: texts.offer.expiration_time_ms !== undefined } : undefined,
    call_permission_request: texts.call_permission_request,
    cards: texts.cards?.map((it, index) => part(it, cards[index])),
  };
}

/** A phone number as people write it. @param {string} to digits */
export const phoneNumber = (to) => (/^\d+$/.test(to) ? `+${to}` : to);

/** @param {string} text */
const quoted = (text) => `'${text.replaceAll("'", String.raw`'\''`)}'`;

/** @param {string} url @param {unknown} body */
const curl = (url, body) => [
  `curl -sS "${url}"`,
  '-H "Authorization: Bearer $TOKEN"',
  "-H 'Content-Type: application/json'",
  `-d ${quoted(JSON.stringify(body))}`,
].join(' \\\n  ');

/** The calls that create a template and send it; the token is not part of them. @param {{origin: string, account: string, phone?: string}} options */
export function firstMessage({ origin, account, phone = '$PHONE_NUMBER_ID' }) {
  const [name, language] = ['hello', 'en_US'];
  const components = [{ type: 'BODY', text: 'Hello from the emulator!' }];
  const template = { name, language: { code: language } };
  return [
    curl(`${origin}/v23.0/${account}/message_templates`, { name, language, category: 'UTILITY', components }),
    curl(`${origin}/v23.0/${phone}/messages`, { messaging_product: 'whatsapp', to: '15550100', type: 'template', template }),
  ].join('\n\n');
}
