// Starts the console: router, session, shell.
//
// A page is a module `pages/{name}.js` that exports
//
//   export function page(context) → {
//     title: string | (() => string),      the document's title and what a screen reader hears
//     view(): TemplateResult,              called for every render; must have one <h1 tabindex="-1">
//     shortcuts?: Shortcut[],              see ui/shortcuts.js; registered while the page is shown
//     queryChanged?(query): boolean,       the query changed, the path did not: true if the page took it over
//     scroll?: number,                     where to scroll to; 0 if absent
//     dispose?(): void,                    the visitor has left
//   }
//
// and gets a `Context`:
//
//   params      of the path, such as { id }
//   query       URLSearchParams of the address
//   signal      AbortSignal that fires when the visitor leaves: pass it to every request
//   back        whether the visitor came with the browser's back or forward button
//   update()    render again, once per frame however often it is called
//   navigate(path, { replace?, keepFocus? })   go to another page, or the same with another query
//   announce(text)                             tell screen readers (polite)
//
// Links are plain `<a href="/console/…">`: clicks are taken over here.

import { render } from './lit.js';
import { api } from './api.js';
import { captureLink } from './link.js';
import { match, paths } from './router.js';
import { shell } from './shell.js';
import { strings as t } from './strings.js';
import { applyTheme } from './ui/theme.js';
import { register, listen } from './ui/shortcuts.js';
import { failure, loading } from './ui/state.js';
import { globalShortcuts } from './shell-shortcuts.js';

/** @typedef {import('./ui/shortcuts.js').Shortcut} Shortcut */
/**
 * @typedef {object} Page
 * @property {string|(() => string)} title
 * @property {() => unknown} view
 * @property {Shortcut[]} [shortcuts]
 * @property {(query: URLSearchParams) => boolean} [queryChanged]
 * @property {number} [scroll]
 * @property {() => void} [dispose]
 *
 * @typedef {object} Context
 * @property {Record<string, string>} params
 * @property {URLSearchParams} query
 * @property {AbortSignal} signal
 * @property {boolean} back
 * @property {() => void} update
 * @property {(path: string, options?: {replace?: boolean, keepFocus?: boolean}) => void} navigate
 * @property {(text: string) => void} announce
 */

const root = /** @type {HTMLElement} */ (document.getElementById('app'));
/** @type {{path: string, name: string, page: Page, stop: AbortController, unregister: () => void}|null} */
let current = null;
let shownAddress = '';
let turn = 0;
let frame = 0;
/** Until when a pressed pointer holds drawing back: until it has clicked, or for a second. */
let heldUntil = 0;

function draw() {
  frame = 0;
  const title = typeof current?.page.title === 'function' ? current.page.title() : current?.page.title;
  document.title = title ? `${title} · ${t.product}` : t.product;
  let content;
  try {
    content = current ? current.page.view() : loading();
  } catch (error) {
    console.error(error);
    content = failure(error, () => location.reload());
  }
  render(shell(current?.name ?? '', content), root);
}

/** Draws, but not under a pressed pointer: a click counts only if it ends where it began. @param {number} now */
function tick(now) {
  if (now < heldUntil) frame = requestAnimationFrame(tick);
  else draw();
}

function update() {
  frame ||= requestAnimationFrame(tick);
}

/** @param {string} text */
function announce(text) {
  const region = /** @type {HTMLElement} */ (document.getElementById('polite'));
  region.textContent = '';
  setTimeout(() => (region.textContent = text), 50);
}

/** @param {unknown} error @returns {Page} */
const failed = (error) => ({ title: t.errors.title, view: () => failure(error, () => location.reload()) });

/** Shows the page of the present address. */
async function show({ keepFocus = false, back = false } = {}) {
  const mine = ++turn;
  shownAddress = location.pathname + location.search;
  const route = match(location.pathname);
  const query = new URLSearchParams(location.search);
  const isLeft = current?.stop.signal.aborted;
  if (!isLeft && current?.path === location.pathname && current.page.queryChanged?.(query)) return update();
  if (!api.session && route.name !== 'sign-in') {
    return navigate(paths.signIn(location.pathname + location.search), { replace: true });
  }
  // The visitor has left, although the page is shown until the next one is there.
  current?.stop.abort();
  let module;
  try {
    module = await route.load();
  } catch (error) {
    module = { page: () => failed(error) };
  }
  if (mine !== turn) return;
  const first = !current;
  current?.unregister();
  current?.page.dispose?.();
  const stop = new AbortController();
  const context = { params: route.params, query, signal: stop.signal, back, update, navigate, announce };
  const page = module.page(context);
  current = {
    path: location.pathname,
    name: route.name,
    page,
    stop,
    unregister: register(page.shortcuts ?? []),
  };
  if (frame) cancelAnimationFrame(frame);
  draw();
  if (first || keepFocus) return;
  scrollTo(0, page.scroll ?? 0);
  /** @type {HTMLElement|null} */ (root.querySelector('h1'))?.focus({ preventScroll: true });
}

/** @type {Context['navigate']} */
function navigate(path, { replace = false, keepFocus = false } = {}) {
  const address = new URL(path, location.href);
  const dir = new URLSearchParams(location.search).get('dir');
  if (dir) address.searchParams.set('dir', dir);
  history[replace ? 'replaceState' : 'pushState'](null, '', address);
  void show({ keepFocus });
}

/** @param {MouseEvent} event */
function takeOver(event) {
  heldUntil = 0;
  if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const link = /** @type {Element} */ (event.target).closest?.('a[href]');
  if (!(link instanceof HTMLAnchorElement) || link.target || link.hasAttribute('download')) return;
  if (link.origin !== location.origin || !/^\/console(\/|$)/.test(link.pathname)) return;
  if (link.hash && link.pathname === location.pathname) return;
  event.preventDefault();
  navigate(link.pathname + link.search);
}

async function start() {
  captureLink();
  const dir = new URLSearchParams(location.search).get('dir');
  document.documentElement.lang = t.lang;
  document.documentElement.dir = dir === 'rtl' || dir === 'ltr' ? dir : t.dir;
  applyTheme();
  const ahead = match(location.pathname).load();
  ahead.catch(() => undefined);
  draw();
  document.addEventListener('click', takeOver);
  document.addEventListener('pointerdown', (event) => (heldUntil = event.timeStamp + 1000));
  addEventListener('popstate', () => {
    // A link within the page, such as the skip link, is no other page.
    if (!captureLink() && shownAddress === location.pathname + location.search) return;
    void show({ back: true });
  });
  listen();
  register(globalShortcuts(navigate));
  api.onSessionEnd(() => {
    const next = location.pathname + location.search;
    navigate(`/console/sign-in?ended=1&next=${encodeURIComponent(next)}`, { replace: true });
  });
  document.addEventListener('galley:update', update);
  api.onOtherTab((before) => {
    if (before?.account.id === api.session?.account.id) return update();
    // What this tab shows belongs to another account; the sign-in page goes on by itself.
    if (match(location.pathname).name === 'sign-in') void show();
    else navigate(paths.list());
  });
  try {
    // The sign-in page asks nothing: without a session the answer would be an error in the browser's console.
    if (match(location.pathname).name !== 'sign-in') await api.loadSession();
  } catch (error) {
    render(shell('', failure(error, () => location.reload())), root);
    return;
  }
  await show();
}

void start();
