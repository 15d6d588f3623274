// What the parts of the account page have in common: a card that needs a scope and loads itself.
import { html } from '../../lit.js';
import { api, isAbort } from '../../api.js';
import { account as t } from '../../strings/account.js';
import { icon } from '../../ui/icons.js';
import { loading, notice } from '../../ui/state.js';

/**
 * @param {import('../../main.js').Context} context
 * @param {{id: string, title: string, lead: string, scope: string, load: () => Promise<void>, loaded: () => boolean,
 *   content: () => unknown, tools?: () => unknown}} options
 */
export function part(context, { id, title, lead, scope, load, loaded, content, tools = () => '' }) {
  /** @type {unknown} */
  let error = null;
  const allowed = () => api.can(scope);

  /** Runs something that may fail, then shows the result. @param {() => Promise<unknown>} action */
  async function attempt(action) {
    error = null;
    try {
      await action();
    } catch (problem) {
      if (isAbort(problem)) return;
      error = problem;
    }
    context.update();
  }

  if (allowed()) void attempt(load);
  return {
    attempt,
    view: () => html`<section class="card" aria-labelledby=${id}>
      <header class="card-head"><div><h2 id=${id}>${title}</h2><p class="quiet">${lead}</p></div>${allowed() ? tools() : ''}</header>
      ${error ? html`<div class="card-body">${notice(error)}</div>` : ''}
      ${!allowed() ? html`<p class="card-body locked quiet">${icon('key')}${t.needsScope(scope)}</p>`
    : loaded() ? content() : error ? '' : html`<div class="card-body">${loading(2)}</div>`}
    </section>`,
  };
}
