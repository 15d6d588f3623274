// The review queue: oldest template first, one item at a time, the next opens by itself.

import { html, nothing } from '../lit.js';
import { paths } from '../router.js';
import { review as t } from '../strings/review.js';
import { empty, failure, loading } from '../ui/state.js';
import { toast } from '../ui/toast.js';
import { decisionBar, itemHead, itemView, REASON_ID } from './review/item.js';
import { isIdle, notice } from './review/presence.js';
import { queueView } from './review/queue.js';
import { REFRESH_MS, Review } from './review/state.js';

/** How long after `g` a further key may still belong to it. */
const GO_MS = 2500;

/** @param {import('../main.js').Context} context */
export function page(context) {
  const review = new Review(context);
  const decide = (decision) => void decideAndGoOn(review, decision);
  void review.load().then(() => openFirst(review));
  const refresh = () => void review.loadQueue().then(() => openFirst(review));
  const timer = setInterval(() => {
    if (document.visibilityState === 'visible' && !isIdle()) refresh();
  }, REFRESH_MS);
  notice(context.signal, refresh);
  return {
    title: () => (review.item ? `${t.title} ${review.item.template.name}` : t.title),
    view: () => view(review, decide),
    shortcuts: shortcuts(review, decide),
    dispose() {
      clearInterval(timer);
      review.dispose();
    },
  };
}

/** Without an id in the address, the oldest one opens. */
function openFirst(review) {
  if (review.id !== null || review.context.signal.aborted) return;
  const first = review.queue?.[0];
  if (first) review.context.navigate(paths.review(first.id), { replace: true });
}

function shortcuts(review, decide) {
  const isOpen = () => review.isPending && review.canDecide;
  const go = (step) => {
    const id = review.neighbour(step);
    if (id !== null) review.context.navigate(paths.review(id));
  };
  const reason = () => document.getElementById(REASON_ID);
  let goPressedAt = -GO_MS;
  document.addEventListener('keydown', (event) => event.key === 'g' && (goPressedAt = event.timeStamp), {
    signal: review.context.signal,
  });
  return [
    {
      keys: 'a',
      label: t.shortcuts.approve,
      // A key that is held down, or the end of a slow `g a`, approves nothing.
      run: (event) => !event.repeat && event.timeStamp - goPressedAt > GO_MS && decide('approve'),
      when: isOpen,
    },
    { keys: 'r', label: t.shortcuts.reject, run: () => reason()?.focus(), when: isOpen },
    {
      keys: 'mod+Enter',
      label: t.shortcuts.send,
      run: () => document.activeElement === reason() && decide('reject'),
      when: isOpen,
    },
    { keys: 'j', label: t.shortcuts.next, run: () => go(1) },
    { keys: 'k', label: t.shortcuts.previous, run: () => go(-1) },
  ];
}

async function decideAndGoOn(review, decision) {
  const decided = await review.decide(decision);
  if (decided === null) {
    if (review.isReasonMissing) document.getElementById(REASON_ID)?.focus();
    return;
  }
  toast(decision === 'approve' ? t.approved(decided.name) : t.rejected(decided.name));
  // A late response does not take away the page that was opened meanwhile.
  if (review.context.signal.aborted) return;
  review.context.navigate(paths.review(decided.next ?? ''));
}

function view(review, decide) {
  if (review.error !== null && review.item === null) {
    return html`<h1 tabindex="-1" class="visually-hidden">${t.title}</h1>
      <div class="review">
        ${review.queue?.length ? queueView(review) : nothing}
        <div class="review-main">${failure(review.error, () => void review.load())}</div>
      </div>`;
  }
  if (review.queue?.length === 0 && review.id === null) {
    return html`<header class="page-head"><h1 tabindex="-1">${t.title}</h1></header>
      ${empty({ title: t.empty, text: t.emptyText, mark: 'check' })}`;
  }
  return html`<div class="review">
    ${review.queue === null ? nothing : queueView(review)}
    <div class="review-main">
      ${itemHead(review)} ${review.item === null ? loading() : html`${itemView(review)}${decisionBar(review, decide)}`}
    </div>
  </div>`;
}
