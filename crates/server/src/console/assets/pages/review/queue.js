// The queue beside the open item.

import { html, nothing, repeat } from '../../lit.js';
import { paths } from '../../router.js';
import { review as t } from '../../strings/review.js';
import { tag } from '../../ui/badge.js';
import { timeAgo } from '../../ui/time.js';

/** @param {import('./state.js').Review} review */
export function queueView(review) {
  const queue = review.queue ?? [];
  return html`<nav class="queue" aria-label=${t.queue}>
    <details class="queue-fold" ?open=${matchMedia('(min-width: 62rem)').matches}>
      <summary class="queue-head">
        <span class="label">${t.queue}</span><span class="quiet">${t.waiting(queue.length, review.isLonger)}</span>
      </summary>
      <ol class="queue-list">
        ${repeat(
          queue,
          (it) => it.id,
          (it) => entry(it, it.id === review.id),
        )}
      </ol>
      ${review.isLonger ? html`<p class="quiet queue-more">${t.more(queue.length)}</p>` : nothing}
    </details>
  </nav>`;
}

const entry = (it, isOpen) => html`<li>
  <a class="queue-item" href=${paths.review(it.id)} aria-current=${isOpen ? 'true' : nothing} data-testid="queue-item">
    <span class="queue-name"><bdi>${it.name}</bdi></span>
    <span class="queue-meta">${tag(it.language)} ${timeAgo(it.updated_at)}</span>
  </a>
</li>`;
