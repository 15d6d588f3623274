// Reads something again and again: what was read stays while a later reading fails.
import { html, nothing } from '../../lit.js';
import { isAbort } from '../../api.js';
import { loading, notice } from '../../ui/state.js';

/**
 * @template T
 * @param {import('../../main.js').Context} context
 * @param {() => Promise<T>} read
 */
export function reading(context, read) {
  /** @type {T|null} */
  let value = null;
  /** @type {unknown} */
  let error = null;
  /** @type {Promise<void>|null} */
  let underWay = null;
  let changes = 0;

  async function load() {
    const before = changes;
    try {
      const now = await read();
      // What was read before a change is outdated.
      if (changes === before) value = now;
      error = null;
    } catch (problem) {
      if (isAbort(problem)) return;
      error = problem;
    }
    context.update();
  }

  return {
    get value() {
      return value;
    },
    set value(now) {
      changes += 1;
      value = now;
      error = null;
      context.update();
    },
    /** Reads it; a reading that is under way is used. */
    load: () => (underWay ??= load().finally(() => (underWay = null))),
    /** Reads it once more, after a change that a reading under way may not have seen. */
    async reload() {
      await underWay;
      underWay = null;
      await load();
    },
    /** The error of the last reading, and placeholders before the first one. @param {number} rows */
    state: (rows) => html`${error ? html`<div class="card-body">${notice(error)}</div>` : nothing}
      ${value === null && !error ? html`<div class="card-body">${loading(rows)}</div>` : nothing}`,
  };
}
