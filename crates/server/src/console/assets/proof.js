// Renders a proof (what the recipient sees) as a chat bubble. Remote media are never loaded.

import { blocks } from './proof/blocks.js';
import { classMap, html, ifDefined, nothing, svg } from './lit.js';
import { proof as t } from './strings/proof.js';

/**
 * @typedef {{text: string, style: string[], placeholder?: {name: string, filled: boolean}}} Run
 * @typedef {{format: string, text?: Run[], media?: Record<string, string>, location?: Record<string, string>}} Header
 * @typedef {{type: string, text: string, url?: string, phone_number?: string, code?: string, autofill_text?: string}} Button
 * @typedef {{direction: 'ltr'|'rtl', header?: Header, body: Run[], footer?: Run[], buttons?: Button[], cards?: any[],
 *   offer?: any, code?: string, call_permission_request?: boolean, truncated?: boolean}} Proof
 */

const SHAPES = {
  URL: svg`<path d="M14 4h6v6M20 4l-9 9M18 14v5a1 1 0 0 1-1 1H5a1 1 0 0 1-1-1V7a1 1 0 0 1 1-1h5"/>`,
  PHONE_NUMBER: svg`<path d="M6 3h3l2 5-2.500 1.500a12 12 0 0 0 6 6L16 13l5 2v3a2 2 0 0 1-2 2A16 16 0 0 1 4 5a2 2 0 0 1 2-2z"/>`,
  QUICK_REPLY: svg`<path d="M10 8 5 13l5 5M5 13h9a5 5 0 0 0 5-5V6"/>`,
  COPY_CODE: svg`<rect x="9" y="9" width="11" height="11" rx="2"/><path d="M5 15H4V6a2 2 0 0 1 2-2h9v1"/>`,
  FLOW: svg`<rect x="4" y="4" width="16" height="16" rx="3"/><path d="M8 9h8M8 13h8M8 17h4"/>`,
  CATALOG: svg`<path d="M5 8h14l-1 12H6zM9 8a3 3 0 0 1 6 0"/>`,
  IMAGE: svg`<rect x="3" y="5" width="18" height="14" rx="2"/><circle cx="8.500" cy="10" r="1.500"/><path d="m4 18 5-5 3 3 4-4 5 5"/>`,
  VIDEO: svg`<circle cx="12" cy="12" r="9"/><path d="m10 8.500 6 3.500-6 3.500z"/>`,
  DOCUMENT: svg`<path d="M6 3h8l5 5v13H6zM14 3v5h5M9 13h7M9 17h5"/>`,
  LOCATION: svg`<path d="M12 21s7-6.500 7-12a7 7 0 0 0-14 0c0 5.500 7 12 7 12z"/><circle cx="12" cy="9" r="2.500"/>`,
  OFFER: svg`<path d="M4 12V5a1 1 0 0 1 1-1h7l8 8-8 8z"/><path d="M8 8h.01" stroke-width="3"/>`,
};
SHAPES.OTP = SHAPES.COPY_CODE;
SHAPES.GIF = SHAPES.VIDEO;
SHAPES.MEDIA = SHAPES.IMAGE;
SHAPES.PRODUCT = SHAPES.MPM = SHAPES.SPM = SHAPES.ORDER_DETAILS = SHAPES.CATALOG;
SHAPES.VOICE_CALL = SHAPES.PHONE_NUMBER;

const shape = (name) =>
  html`<svg class="proof-icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
    ${SHAPES[name] ?? SHAPES.FLOW}
  </svg>`;

/** One run of text with its styles. @param {Run} run */
function inline(run) {
  const name = run.placeholder?.name;
  let part = run.placeholder
    ? html`<span
        class=${run.placeholder.filled ? 'proof-value' : 'proof-slot'}
        title=${t.placeholder(name, run.placeholder.filled)}
        >${run.text}</span
      >`
    : html`${run.text}`;
  if (run.style.includes('monospace')) part = html`<code>${part}</code>`;
  if (run.style.includes('strike')) part = html`<s>${part}</s>`;
  if (run.style.includes('italic')) part = html`<em>${part}</em>`;
  if (run.style.includes('bold')) part = html`<strong>${part}</strong>`;
  return part;
}

const line = (runs) => runs.map(inline);

function block({ kind, lines }) {
  if (kind === 'list')
    return html`<ul class="proof-list">
      ${lines.map((it) => html`<li>${line(it)}</li>`)}
    </ul>`;
  if (kind === 'numbered')
    return html`<div class="proof-numbered">${lines.map((it) => html`<div>${line(it)}</div>`)}</div>`;
  if (kind === 'quote')
    return html`<blockquote class="proof-quote">${lines.map((it) => html`<div>${line(it)}</div>`)}</blockquote>`;
  return lines[0].some((it) => it.text !== '') ? html`<p class="proof-text">${line(lines[0])}</p>` : nothing;
}

/** A formatted text. @param {Run[]|undefined} runs */
export const richText = (runs) => (runs?.length ? blocks(runs).map(block) : nothing);

/** @param {Header} header */
function headerView(header) {
  if (header.format === 'TEXT')
    return header.text?.length ? html`<p class="proof-header">${line(header.text)}</p>` : nothing;
  const kind = header.media?.kind?.toUpperCase() ?? header.format;
  const name = header.media?.filename ?? header.media?.url ?? header.media?.handle ?? header.location?.name ?? '';
  const place = header.location?.address ?? '';
  return html`<div class="proof-media proof-media-${kind.toLowerCase()}">
    ${shape(kind)}<span class="proof-media-kind">${t.formats[kind] ?? kind}</span>
    ${name ? html`<span class="proof-media-name" dir="auto">${name}</span>` : nothing}
    ${place ? html`<span class="proof-media-name" dir="auto">${place}</span>` : nothing}
  </div>`;
}

/** @param {Button} button */
function buttonView(button) {
  const target = button.url ?? button.phone_number ?? button.code;
  return html`<li class="proof-button">
    <span class="proof-button-label">${shape(button.type)}<span dir="auto">${button.text || t.untitled}</span></span>
    ${target ? html`<span class="proof-button-target" dir="ltr">${target}</span>` : nothing}
  </li>`;
}

const buttonList = (buttons) =>
  buttons?.length
    ? html`<ul class="proof-buttons" aria-label=${t.buttons}>
        ${buttons.map(buttonView)}
      </ul>`
    : nothing;

const offerView = (offer) =>
  html`<div class="proof-offer">
    ${shape('OFFER')}
    <div>
      <strong dir="auto">${offer.text}</strong>
      ${offer.has_expiration ? html`<div class="proof-small">${t.expires}</div>` : nothing}
      ${offer.code ? html`<div class="proof-small">${t.code} <code>${offer.code}</code></div>` : nothing}
    </div>
  </div>`;

const cardView = (card, index, count) =>
  html`<li class="proof-card" aria-label=${t.card(index + 1, count)}>
    ${card.header ? headerView(card.header) : nothing}
    <div class="proof-body">${richText(card.body)}</div>
    ${buttonList(card.buttons)}
  </li>`;

/**
 * @param {Proof|null|undefined} proof
 * @param {{label?: string, language?: string, empty?: string}} [options]
 */
export function proofView(proof, { label = t.title, language, empty = t.empty } = {}) {
  const tag = /^[a-z]{2,3}(_[A-Z]{2})?$/.test(language ?? '') ? language.replace('_', '-') : undefined;
  const hasText =
    proof &&
    (proof.body.length > 0 || proof.header || proof.footer?.length || proof.offer || proof.code || proof.cards?.length);
  return html`<figure
    class="proof"
    data-testid="proof"
    aria-label=${label}
    dir=${proof?.direction ?? 'auto'}
    lang=${ifDefined(tag)}
  >
    <div class=${classMap({ 'proof-bubble': true, 'proof-bubble-empty': !hasText })}>
      ${proof?.header ? headerView(proof.header) : nothing} ${proof?.offer ? offerView(proof.offer) : nothing}
      ${hasText ? html`<div class="proof-body">${richText(proof.body)}</div>` : html`<p class="proof-empty" dir="auto">${empty}</p>`}
      ${proof?.code && !proof.body.some((it) => it.text.includes(proof.code)) ? html`<p class="proof-code"><code>${proof.code}</code></p>` : nothing}
      ${proof?.footer?.length ? html`<p class="proof-footer">${line(proof.footer)}</p>` : nothing}
      ${proof?.truncated ? html`<p class="proof-footer">${t.truncated}</p>` : nothing} ${buttonList(proof?.buttons)}
      ${
        proof?.call_permission_request
          ? html`<ul class="proof-buttons" aria-label=${t.buttons}>
              ${buttonView({ type: 'VOICE_CALL', text: t.callPermission })}
            </ul>`
          : nothing
      }
    </div>
    ${
      proof?.cards?.length
        ? html`<ul class="proof-cards" tabindex="0" aria-label=${t.cards}>
            ${proof.cards.map((card, index) => cardView(card, index, proof.cards.length))}
          </ul>`
        : nothing
    }
  </figure>`;
}
