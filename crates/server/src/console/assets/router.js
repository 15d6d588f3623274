// Maps paths to page modules. The server answers index.html for exactly these patterns.

/** @typedef {{name: string, params: Record<string, string>, load: () => Promise<{page: Function}>}} Route */

/** Name, path, style sheets beyond those of index.html, module. @type {[string, RegExp, string[], () => Promise<any>][]} */
const ROUTES = [
  ['list', /^\/console(?:\/(?:templates\/?)?)?$/, [], () => import('./pages/list.js')],
  ['editor', /^\/console\/new\/?$/, ['proof', 'fields', 'editor'], () => import('./pages/editor.js')],
  ['template', /^\/console\/templates\/(?<id>\d+)\/?$/, ['proof', 'template'], () => import('./pages/template.js')],
  ['editor', /^\/console\/templates\/(?<id>\d+)\/edit\/?$/, ['proof', 'fields', 'editor'], () => import('./pages/editor.js')],
  ['review', /^\/console\/review(?:\/(?<id>\d+))?\/?$/, ['proof', 'review'], () => import('./pages/review.js')],
  ['account', /^\/console\/account\/?$/, ['template', 'account'], () => import('./pages/account.js')],
  ['emulator', /^\/console\/emulator\/?$/, ['proof', 'emulator'], () => import('./pages/emulator.js')],
  ['sign-in', /^\/console\/sign-in\/?$/, [], () => import('./pages/sign-in.js')],
];

/** @type {Map<string, Promise<void>>} */
const sheets = new Map();

/** Links a style sheet once; resolves when it applies. A page without it still works. @param {string} name */
export function style(name) {
  const linked = sheets.get(name) ?? /** @type {Promise<void>} */ (new Promise((resolve) => {
    const link = document.createElement('link');
    link.rel = 'stylesheet';
    link.href = new URL(`./css/${name}.css`, import.meta.url).href;
    link.onload = link.onerror = () => resolve();
    document.head.append(link);
  }));
  sheets.set(name, linked);
  return linked;
}

/** @param {string} path @returns {Route} */
export function match(path) {
  for (const [name, pattern, styles, load] of ROUTES) {
    const found = pattern.exec(path);
    if (!found) continue;
    return { name, params: { ...found.groups }, load: async () => (await Promise.all([load(), ...styles.map(style)]))[0] };
  }
  return { name: 'not-found', params: {}, load: () => import('./pages/not-found.js') };
}

/** Addresses of the pages, so that no page builds a path by hand. */
export const paths = {
  list: (/** @type {string} */ query = '') => `/console/${query}`,
  create: () => '/console/new',
  duplicate: (/** @type {string} */ id) => `/console/new?from=${id}`,
  addLanguage: (/** @type {string} */ id) => `/console/new?language_of=${id}`,
  template: (/** @type {string} */ id) => `/console/templates/${id}`,
  edit: (/** @type {string} */ id) => `/console/templates/${id}/edit`,
  review: (/** @type {string} */ id = '') => (id ? `/console/review/${id}` : '/console/review'),
  account: () => '/console/account',
  emulator: () => '/console/emulator',
  signIn: (/** @type {string} */ next = '') =>
    next && next !== '/console/' ? `/console/sign-in?next=${encodeURIComponent(next)}` : '/console/sign-in',
};
