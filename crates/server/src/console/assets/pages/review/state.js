// The state of the review queue: who waits, what is open, what was decided.

import { api, isAbort } from '../../api.js';
import { editableDocument } from '../editor/document.js';
import { baseOf } from './base.js';
import { mergeFirstPage } from './merge.js';

const PAGE_SIZE = 100;
const MOST_VERSIONS = 100;
/** With so few items left after the open one, the next page is read. */
const READ_AHEAD = 10;
/** How often the queue is read again while the page is visible and a person is there. */
export const REFRESH_MS = 30_000;
/** How long an item is shown before it can be decided: a second press, meant for the item before, decides nothing. */
const READING_MS = 700;

/** @typedef {{id: string, name: string, language: string, category: string, status: string, version: number, updated_at: string}} Waiting */

/** The queue as last read, so that the next item shows it at once. @type {{account: string, items: Waiting[], after: string | undefined, readAt: number} | null} */
let remembered = null;

/**
 * Reads a page of the queue: templates that await a decision, in the order of their creation.
 * @param {AbortSignal} signal @param {string} [after]
 * @returns {Promise<{items: Waiting[], after: string | undefined}>}
 */
async function readPage(signal, after) {
  const query = { awaiting_review: true, order: 'oldest', limit: PAGE_SIZE, after };
  const { data } = await api.get('message_templates', { query, signal });
  return { items: data.data, after: data.paging.next ? data.paging.cursors.after : undefined };
}

/** Reads one template with all that its review shows. */
async function readItem(id, signal) {
  const path = `message_templates/${id}`;
  const [{ data: template, etag }, versions] = await Promise.all([
    api.get(path, { signal }),
    api.get(`${path}/versions`, { query: { limit: MOST_VERSIONS }, signal }),
  ]);
  /** @type {any[]} */
  const all = versions.data.data;
  const base = baseOf(template, all);
  const proofOf = (version) =>
    api.get(`${path}/proof`, { query: { version }, signal }).then(
      ({ data }) => data,
      (error) => {
        if (isAbort(error)) throw error;
        return null;
      },
    );
  const [before, proof, baseProof] = await Promise.all([
    base === null ? null : api.get(path, { query: { version: base.version }, signal }),
    proofOf(template.version),
    base === null ? null : proofOf(base.version),
  ]);
  return {
    template,
    etag,
    proof,
    /** The version that it is compared with; `null` for the first one. */
    base,
    baseProof,
    document: editableDocument(template),
    baseDocument: before === null ? null : editableDocument(before.data),
    author: all.find((it) => it.version === template.version) ?? null,
  };
}

export class Review {
  /** @param {import('../../main.js').Context} context */
  constructor(context) {
    this.context = context;
    this.id = context.params.id ?? null;
    const account = api.session?.account.id ?? '';
    this.queue = remembered?.account === account ? remembered.items : null;
    /** Where the queue goes on. */
    this.after = this.queue === null ? undefined : remembered?.after;
    /** @type {Awaited<ReturnType<typeof readItem>> | null} */
    this.item = null;
    this.error = null;
    /** What came of the decision, if it was refused. @type {any} */
    this.refusal = null;
    this.reason = '';
    this.isReasonMissing = false;
    this.isDeciding = false;
    /** Whether the shown version has been visible long enough. */
    this.isReady = false;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
  }

  /** Whether more wait than were read. */
  get isLonger() {
    return this.after !== undefined;
  }

  get canDecide() {
    return api.can('review');
  }

  /** Whether the signed-in token made the open version. Who has written an earlier one learns it from the refusal. */
  get isOwn() {
    const session = api.session;
    return Boolean(session?.account.four_eyes && this.item?.author?.created_by === session.token.id);
  }

  get isPending() {
    return this.item !== null && this.item.author?.status === 'PENDING';
  }

  get index() {
    return this.queue?.findIndex((it) => it.id === this.id) ?? -1;
  }

  /** The one that opens after the open one. */
  neighbour(step) {
    const { queue, index } = this;
    if (!queue || queue.length === 0) return null;
    if (index < 0) return queue[0].id;
    const next = queue[index + step]?.id ?? null;
    return next;
  }

  async load() {
    // Going from one item to the next does not read the queue each time.
    const isFresh = this.index >= 0 && Date.now() - (remembered?.readAt ?? 0) < REFRESH_MS;
    const queue = isFresh ? this.loadMore() : this.loadQueue().then(() => this.loadMore());
    await Promise.all([queue, this.id === null ? undefined : this.loadItem()]);
  }

  /** Reads the first page of the queue again; what was read behind it stays, so that the open item keeps its neighbours. */
  async loadQueue() {
    await this.#read(undefined, (first) => mergeFirstPage({ items: this.queue ?? [], after: this.after }, first));
  }

  /** Reads the next page if few items are left after the open one. */
  async loadMore() {
    const { length } = this.queue ?? [];
    if (!this.isLonger || length - this.index > READ_AHEAD) return;
    await this.#read(this.after, (page) => ({ items: [...(this.queue ?? []), ...page.items], after: page.after }));
  }

  /** Reads one page and makes it part of the queue. */
  async #read(from, join) {
    try {
      const { items, after } = join(await readPage(this.context.signal, from));
      this.queue = items;
      this.after = after;
      remembered = { account: api.session?.account.id ?? '', items, after, readAt: Date.now() };
    } catch (error) {
      if (this.context.signal.aborted) return;
      if (this.queue === null) this.error = error;
    }
    this.context.update();
  }

  async loadItem() {
    try {
      this.item = await readItem(this.id, this.context.signal);
      this.refusal = null;
      this.error = null;
      this.#startReading();
    } catch (error) {
      if (this.context.signal.aborted) return;
      this.error = error;
    }
    this.context.update();
  }

  /** Counts from the frame that shows the item. */
  #startReading() {
    this.isReady = false;
    clearTimeout(this.timer);
    requestAnimationFrame(() => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => {
        this.isReady = true;
        this.context.update();
      }, READING_MS);
    });
  }

  dispose() {
    clearTimeout(this.timer);
  }

  /**
   * Decides about exactly the version that is shown.
   * @param {'approve' | 'reject'} decision
   * @returns {Promise<{name: string, next: string | null} | null>} `null` if nothing was decided
   */
  async decide(decision) {
    if (this.isDeciding || !this.isReady || !this.isPending || this.item === null) return null;
    const reason = this.reason.trim();
    this.isReasonMissing = decision === 'reject' && reason === '';
    if (this.isReasonMissing) {
      this.context.update();
      return null;
    }
    this.isDeciding = true;
    this.refusal = null;
    this.context.update();
    try {
      const { version } = this.item.template;
      const body = reason === '' ? { decision, version } : { decision, version, reason };
      await api.post(`message_templates/${this.id}/review`, { body, ifMatch: this.item.etag });
      return this.#decided();
    } catch (error) {
      this.refusal = error;
      return null;
    } finally {
      this.isDeciding = false;
      this.context.update();
    }
  }

  /** Takes the item off the queue; the one that takes its place opens next. */
  #decided() {
    const { index } = this;
    const name = this.item.template.name;
    this.queue = (this.queue ?? []).filter((it) => it.id !== this.id);
    if (remembered) remembered = { ...remembered, items: remembered.items.filter((it) => it.id !== this.id) };
    const next = this.queue[Math.min(Math.max(index, 0), this.queue.length - 1)]?.id ?? null;
    return { name, next };
  }
}
