// Checks a document while it is written. Requests run for the newest input only: debounced, the
// older one aborted, and an older answer never applied after a newer one.

import { api } from '../../api.js';

/** How long typing may pause before a check begins. */
export const DEBOUNCE_MS = 100;

/**
 * @template Input, Output
 * @param {{
 *   run: (input: Input, signal: AbortSignal) => Promise<Output>,
 *   apply: (output: Output, input: Input) => void,
 *   fail: (error: unknown) => void,
 *   delay?: number,
 * }} options
 */
export function latestOnly({ run, apply, fail, delay = DEBOUNCE_MS }) {
  let sequence = 0;
  let timer;
  /** @type {AbortController | undefined} */
  let running;

  async function start(input, mine) {
    running = new AbortController();
    const { signal } = running;
    try {
      const output = await run(input, signal);
      if (mine === sequence) apply(output, input);
    } catch (error) {
      if (mine === sequence && !signal.aborted) fail(error);
    }
  }

  function stop() {
    sequence += 1;
    clearTimeout(timer);
    running?.abort();
  }

  return {
    /** Replaces whatever waits or runs. @param {Input} input */
    schedule(input, { now = false } = {}) {
      stop();
      const mine = sequence;
      if (now) void start(input, mine);
      else timer = setTimeout(() => void start(input, mine), delay);
    },
    stop,
  };
}

/**
 * Asks what is wrong with a document.
 * @param {string} text the document as JSON
 * @param {string | null} id of the template that it edits
 * @param {AbortSignal} signal
 */
export async function validate(text, id, signal) {
  const query = id === null ? undefined : { template: id };
  const { data } = await api.post('message_templates/validate', { text, query, signal });
  return data;
}

/**
 * Asks what the message of a document looks like.
 * @param {string} text the document as JSON
 * @param {AbortSignal} signal
 */
export async function prove(text, signal) {
  // The service takes `null` for an absent document.
  if (text.trim() === 'null') return null;
  const { data } = await api.post('message_templates/proof', { text: `{"document":${text}}`, signal });
  return data;
}
