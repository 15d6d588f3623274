// Keeps the draft of one editor: a moment after each change, and when the page goes away.

import { discardDraft, loadDraft, saveDraft } from '../../draft.js';

const DELAY_MS = 300;

export class DraftKeeper {
  /**
   * @param {string} key
   * @param {() => {document: unknown, etag?: string}} read what to keep
   * @param {() => void} changed called when the state has changed
   */
  constructor(key, read, changed) {
    this.key = key;
    this.read = read;
    this.changed = changed;
    /** @type {'none' | 'changed' | 'restored' | 'kept' | 'failed'} */
    this.state = 'none';
    this.savedAt = 0;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
  }

  /** The draft of an earlier visit, if it differs from the document. */
  restore(document) {
    const draft = loadDraft(this.key);
    if (draft === null || JSON.stringify(draft.document) === JSON.stringify(document)) return null;
    this.state = 'restored';
    this.savedAt = draft.saved_at;
    return draft;
  }

  schedule() {
    clearTimeout(this.timer);
    if (this.state === 'none') this.state = 'changed';
    this.timer = setTimeout(() => this.keep(), DELAY_MS);
  }

  keep() {
    this.#stop();
    this.state = saveDraft(this.key, this.read()) ? 'kept' : 'failed';
    this.changed();
  }

  /** Keeps a draft that still waits for its moment. */
  flush() {
    if (this.timer !== undefined) this.keep();
  }

  /** Keeps the draft under another key instead: that of the template that a create has made. */
  moveTo(key) {
    this.discard();
    this.key = key;
    this.keep();
  }

  discard() {
    this.#stop();
    discardDraft(this.key);
    this.state = 'none';
  }

  #stop() {
    clearTimeout(this.timer);
    this.timer = undefined;
  }
}
