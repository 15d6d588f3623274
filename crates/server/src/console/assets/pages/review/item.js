// The open item: what changes, both proofs, and the decision.

import { api } from '../../api.js';
import { html, live, nothing } from '../../lit.js';
import { proofView } from '../../proof.js';
import { paths } from '../../router.js';
import { strings } from '../../strings.js';
import { review as t } from '../../strings/review.js';
import { proof as proofTexts } from '../../strings/proof.js';
import { author as authorName } from '../../ui/author.js';
import { badge, tag } from '../../ui/badge.js';
import { icon } from '../../ui/icons.js';
import { keys } from '../../ui/shortcuts-dialog.js';
import { enabled } from '../../ui/shortcuts.js';
import { explain } from '../../ui/state.js';
import { timeAgo } from '../../ui/time.js';
import { changesView, placeholderSummary } from './changes.js';

export const REASON_ID = 'review-reason';

/** The heading stays the same element while the item loads, so that it keeps the focus. @param {import('./state.js').Review} review */
export const itemHead = (review) => html`<header class="page-head review-head">
  <h1 tabindex="-1"><bdi>${review.item?.template.name ?? review.queue?.[review.index]?.name ?? t.title}</bdi></h1>
  ${review.item === null ? nothing : facts(review)}
</header>`;

function facts(review) {
  const { template, author } = review.item;
  const name = author && authorName(author.created_by, author.created_by_name);
  return html`${tag(template.language)} ${tag(strings.category[template.category] ?? template.category)}
    ${review.isPending ? nothing : badge(template.status)}
    <div class="page-actions">
      <a class="button button-small" href=${paths.template(template.id)}>${t.open}</a>
      ${api.can('write') ? html`<a class="button button-small" href=${paths.edit(template.id)}>${icon('edit')}${t.edit}</a>` : nothing}
    </div>
    <p class="page-lead review-lead">
      ${icon('clock')}${timeAgo(author?.created_at ?? template.updated_at)}
      ${name ? html`<bdi>${t.by(name)}</bdi>` : nothing}
      ${review.index >= 0 ? html`<span class="quiet">${t.position(review.index + 1, review.queue.length)}</span>` : nothing}
    </p>`;
}

/** @param {import('./state.js').Review} review */
export function itemView(review) {
  const { document, base, baseDocument } = review.item;
  return html`
    ${review.isPending ? nothing : decidedNotice(review)}
    ${review.isOwn ? notice('wait', 'info', t.own) : nothing}
    ${base === null && review.isPending ? notice('plain', 'info', t.newTemplate) : nothing}
    ${base?.reason ? notice('bad', 'close', html`<strong><bdi>${t.rejectedBefore(base.version)}</bdi></strong> <bdi>${base.reason}</bdi>`) : nothing}
    ${
      base === null
        ? nothing
        : html`<section class="card" aria-labelledby="review-changes">
          <div class="card-head"><h2 id="review-changes">${t.changes}</h2><span class="quiet">${t.comparedWith[base.kind](base.version)}</span></div>
          <div class="card-body review-changes">
            ${placeholderSummary(baseDocument, document)}${changesView(baseDocument, document, { rest: t.rest })}
          </div>
        </section>`
    }
    <section class="review-proofs" aria-label=${t.proofs}>${proofs(review)}</section>
  `;
}

function proofs({ item, isPending }) {
  const { template, proof, base, baseProof } = item;
  const one = (title, it, kind) => html`<div class="review-proof review-proof-${kind}">
    <h2>${title}</h2>
    ${proofView(it, { label: title, language: template.language, empty: proofTexts.failed })}
  </div>`;
  return html`${base === null ? nothing : one(t.base[base.kind](base.version), baseProof, 'base')}
  ${one(isPending ? t.proposed(template.version) : t.version(template.version), proof, 'proposed')}`;
}

/** The item was decided elsewhere: says so, and leads on. */
function decidedNotice(review) {
  const next = review.queue?.find((it) => it.id !== review.id);
  return html`<div class="notice notice-wait">
    ${icon('info')}
    <div>${t.notPending}</div>
    ${next ? html`<a class="button button-small notice-action" href=${paths.review(next.id)}>${t.openNext}</a>` : nothing}
  </div>`;
}

const notice = (tone, mark, content) =>
  html`<div class="notice notice-${tone}">${icon(mark)}<div>${content}</div></div>`;

/** Why the service refused the decision. */
function refusal(review) {
  if (review.refusal === null) return nothing;
  const isStale = review.refusal.slug === 'revision-outdated';
  const { title, text } = explain(review.refusal);
  return html`<div class="notice notice-bad" role="alert" data-testid="refusal" data-problem=${review.refusal.slug}>
    ${icon('alert')}
    <div>${isStale ? t.stale : html`<strong>${title}.</strong> ${text}`}</div>
    ${
      isStale || review.refusal.slug === 'move-not-possible'
        ? html`<button class="button button-small notice-action" type="button" @click=${() => void Promise.all([review.loadQueue(), review.loadItem()])}>${t.staleAction}</button>`
        : nothing
    }
  </div>`;
}

/**
 * @param {import('./state.js').Review} review
 * @param {(decision: 'approve' | 'reject') => void} decide
 */
export function decisionBar(review, decide) {
  if (!review.isPending) return nothing;
  if (!review.canDecide) return notice('wait', 'info', t.mayNot);
  const hint = (combination) =>
    enabled() ? html`<span class="key-hint" aria-hidden="true">${keys(combination)}</span>` : nothing;
  return html`<section class="decision" aria-label=${t.decision}>
    ${refusal(review)}
    <div class="decision-row">
      <div class="field decision-reason">
        <label class="label" for=${REASON_ID}>${t.reason}</label>
        <textarea
          id=${REASON_ID}
          class="textarea"
          rows="1"
          dir="auto"
          maxlength="1024"
          data-testid="reason"
          aria-describedby="reason-hint"
          aria-invalid=${review.isReasonMissing ? 'true' : 'false'}
          .value=${live(review.reason)}
          @input=${(event) => {
            review.reason = event.target.value;
            if (review.reason.trim() !== '') review.isReasonMissing = false;
            review.context.update();
          }}
        ></textarea>
        <p class=${review.isReasonMissing ? 'hint reason-missing' : 'hint'} id="reason-hint" role=${review.isReasonMissing ? 'alert' : nothing}>
          ${review.isReasonMissing ? t.reasonMissing : t.reasonHint}
        </p>
      </div>
      <div class="decision-buttons">
        <button class="button button-reject" type="button" data-testid="reject" ?disabled=${review.isDeciding || !review.isReady} @click=${() => decide('reject')}>
          ${icon('close')}${t.reject}${hint('r')}
        </button>
        <button class="button button-primary" type="button" data-testid="approve" ?disabled=${review.isDeciding || !review.isReady} @click=${() => decide('approve')}>
          ${icon('check')}${t.approve}${hint('a')}
        </button>
      </div>
    </div>
  </section>`;
}
