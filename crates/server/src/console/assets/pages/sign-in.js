// Sign in with a token, or with the single-use link of `galley console`, whose secret is in the fragment.
import { html, nothing } from '../lit.js';
import { api, Problem } from '../api.js';
import { takeLink } from '../link.js';
import { paths } from '../router.js';
import { signIn as t } from '../strings/sign-in.js';
import { icon } from '../ui/icons.js';
import { explain } from '../ui/state.js';

/** Where to go afterwards: only into the console. @param {string|null} next */
const destination = (next) => (next && /^\/console(\/(?!\/)|\?|$)/.test(next) ? next : paths.list());

/** @param {import('../main.js').Context} context */
export function page({ query, update, navigate }) {
  let busy = false;
  let byLink = false;
  /** A link that would end the session of this browser. */
  let pending = '';
  let shown = false;
  let message = '';
  const go = () => navigate(destination(query.get('next')), { replace: true });

  /** @param {{token: string}|{link: string}} credentials */
  async function signIn(credentials) {
    busy = true;
    message = pending = '';
    update();
    try {
      await api.signIn(credentials);
      go();
    } catch (error) {
      const { title, text } = explain(error);
      message = (error instanceof Problem && t.problems[error.slug]) || `${title}. ${text}`;
      busy = false;
      byLink = false;
      update();
      requestAnimationFrame(() => document.getElementById('token')?.focus());
    }
  }

  /** @param {SubmitEvent} event */
  function submit(event) {
    event.preventDefault();
    const input = /** @type {HTMLInputElement} */ (document.getElementById('token'));
    const token = input.value.trim();
    if (!token) {
      message = t.required;
      input.focus();
      return update();
    }
    input.value = '';
    void signIn({ token });
  }

  /** A link of another origin must not exchange the account unnoticed. @param {string} link */
  async function open(link) {
    byLink = true;
    await api.loadSession().catch(() => null);
    if (!api.session) return signIn({ link });
    pending = link;
    update();
  }

  const link = takeLink();
  if (link) void open(link);
  else if (api.session) queueMicrotask(go);

  const form = () => html`
    <form class="sign-in-form" @submit=${submit} novalidate>
      <div class="field">
        <label for="token">${t.token}</label>
        <div class="input-group">
          <input class="input mono" id="token" name="token" type=${shown ? 'text' : 'password'} autocomplete="off" spellcheck="false"
            autocapitalize="none" dir="ltr" aria-describedby="token-hint${message ? ' sign-in-error' : ''}" aria-invalid=${message ? 'true' : nothing} ?disabled=${busy}>
          <button class="icon-button" type="button" aria-pressed=${shown} aria-label=${shown ? t.hide : t.show}
            @click=${() => { shown = !shown; update(); }}>${icon('eye')}</button>
        </div>
        <p class="hint" id="token-hint">${t.tokenHint}</p>
      </div>
      ${message ? html`<div class="notice notice-bad" role="alert" id="sign-in-error">${icon('alert')}<div>${message}</div></div>` : nothing}
      <button class="button button-primary" type="submit" data-testid="sign-in" ?disabled=${busy}>${busy ? t.busy : t.submit}</button>
    </form>
    <p class="quiet">${t.otherWay} <code>${t.command}</code></p>`;

  const confirm = () => html`
    <p>${t.replaces(api.session?.account.name ?? '')}</p>
    <div class="button-row">
      <button class="button button-primary" data-testid="replace" @click=${() => signIn({ link: pending })}>${t.replace}</button>
      <button class="button" @click=${go}>${t.stay}</button>
    </div>`;

  return {
    title: t.title,
    view: () => html`
      <div class="sign-in card">
        <h1 tabindex="-1">${t.title}</h1>
        <p class="sign-in-lead">${t.lead}</p>
        ${query.has('ended') && !message ? html`<div class="notice" role="status">${icon('info')}<div>${t.ended}</div></div>` : nothing}
        ${pending ? confirm() : byLink ? html`<p role="status">${t.byLink}</p>` : form()}
      </div>`,
  };
}
