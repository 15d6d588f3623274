// The frame around every page: skip link, header with navigation, main.
import { html, nothing } from './lit.js';
import { api } from './api.js';
import { paths } from './router.js';
import { strings as t } from './strings.js';
import { icon } from './ui/icons.js';
import { explain } from './ui/state.js';
import { nextTheme, theme } from './ui/theme.js';
import { toast } from './ui/toast.js';
import { openShortcuts } from './shell-shortcuts.js';

const THEME_ICON = { system: 'auto', light: 'sun', dark: 'moon' };

/** Leaves only once the session has ended: at a shared computer, the sign-in page says that it has. */
async function signOut() {
  try {
    await api.signOut();
  } catch (error) {
    toast(t.stillSignedIn(explain(error).title), 'bad');
    return;
  }
  location.assign('/console/sign-in');
}

function toggleTheme() {
  nextTheme();
  document.dispatchEvent(new Event('galley:update'));
}

/** @param {string} name @param {string} path @param {string} label @param {string[]} here */
const link = (name, path, label, here) =>
  html`<a href=${path} aria-current=${here.includes(name) ? 'page' : nothing}>${label}</a>`;

/** @param {string} name of the route @param {unknown} content */
export function shell(name, content) {
  const session = api.session;
  const here = [name === 'template' || name === 'editor' ? 'list' : name];
  return html`
    <a class="skip" href="#main">${t.skip}</a>
    <header class="bar">
      <a class="mark" href=${session ? paths.list() : paths.signIn()} aria-label=${t.home}>
        <svg class="mark-sign" viewBox="0 0 24 24" aria-hidden="true"><path d="M4 5h16M4 10.500h16M4 16h8"/><path class="tick" d="m14.500 16.500 2.500 2.500 4-5"/></svg>
        <span>${t.product}</span></a>
      ${session ? html`
        <nav class="bar-nav" aria-label=${t.navigation}>
          ${link('list', paths.list(), t.nav.list, here)}
          ${api.can('review') ? link('review', paths.review(), t.nav.review, here) : nothing}
          ${session.account.emulator ? link('emulator', paths.emulator(), t.nav.emulator, here) : nothing}
          ${link('account', paths.account(), t.nav.account, here)}
        </nav>` : nothing}
      <div class="bar-tools">
        ${session ? html`<span class="bar-account" title=${t.signedInAs(session.token.name || session.token.id)}><bdi>${session.account.name}</bdi></span>` : nothing}
        <button class="icon-button" type="button" aria-label=${t.theme[theme()]} title=${t.theme[theme()]} @click=${toggleTheme}>${icon(THEME_ICON[theme()])}</button>
        ${session ? html`
          <button class="icon-button" type="button" aria-label=${t.shortcuts.title} title=${t.shortcuts.title} @click=${openShortcuts}>${icon('keyboard')}</button>
          <button class="icon-button" type="button" aria-label=${t.actions.signOut} title=${t.actions.signOut} @click=${signOut}>${icon('leave', 'flip')}</button>` : nothing}
      </div>
    </header>
    <main id="main" tabindex="-1" class="page page-${name}">${content}</main>`;
}
