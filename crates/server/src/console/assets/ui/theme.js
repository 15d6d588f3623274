// Light, dark or the system's choice. Kept in localStorage; the session is not.

/** @typedef {'system'|'light'|'dark'} Theme */
const KEY = 'galley.theme';
const ORDER = /** @type {Theme[]} */ (['system', 'light', 'dark']);

/** @param {string} key @returns {string|null} */
export function preference(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

/** @param {string} key @param {string|null} value */
export function setPreference(key, value) {
  try {
    if (value === null) localStorage.removeItem(key);
    else localStorage.setItem(key, value);
  } catch {
    // Storage is full or forbidden: the preference lasts until the page is closed.
  }
}

/** @returns {Theme} */
export function theme() {
  const kept = preference(KEY);
  return kept === 'light' || kept === 'dark' ? kept : 'system';
}

export function applyTheme() {
  document.documentElement.dataset.theme = theme();
}

export function nextTheme() {
  const next = ORDER[(ORDER.indexOf(theme()) + 1) % ORDER.length];
  setPreference(KEY, next === 'system' ? null : next);
  document.documentElement.dataset.theme = next;
  return next;
}
