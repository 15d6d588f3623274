// Keyboard shortcuts: a registry, one listener, and a switch (WCAG 2.1.4).
//
//   { keys: 'j', label: 'Next template', run(event) {}, when?: () => boolean }
//
// `keys` is one key (`j`, `?`, `/`, `Enter`), two in sequence (`g l`), or one with a modifier
// (`mod+s`, `mod+Enter`: Ctrl, or Command on a Mac). Single keys are ignored while the visitor types
// in a field or a dialog is open; those with `mod` always work.

import { preference, setPreference } from './theme.js';

/** @typedef {{keys: string, label: string, run: (event: KeyboardEvent) => void, when?: () => boolean}} Shortcut */

const KEY = 'galley.shortcuts';
const SEQUENCE_MS = 900;
/** @type {Set<Shortcut>} */
const active = new Set();
let prefix = '';
let prefixAt = 0;

/** @param {Shortcut[]} shortcuts @returns {() => void} removes them again */
export function register(shortcuts) {
  for (const it of shortcuts) active.add(it);
  return () => shortcuts.forEach((it) => active.delete(it));
}

/** The shortcuts that work on the present page. */
export const registered = () => [...active];
export const enabled = () => preference(KEY) !== 'off';
/** @param {boolean} on */
export const setEnabled = (on) => setPreference(KEY, on ? null : 'off');

/** @param {EventTarget|null} target */
const typing = (target) =>
  target instanceof HTMLElement &&
  (target.isContentEditable || target.matches('input:not([type=checkbox],[type=radio],[type=button]), textarea, select'));

/** @param {KeyboardEvent} event */
function onKey(event) {
  if (event.defaultPrevented || event.isComposing || event.altKey) return;
  const mod = event.ctrlKey || event.metaKey;
  if (!mod && (!enabled() || typing(event.target) || document.querySelector('dialog[open]'))) return;
  // A button or a link takes Enter and Space itself.
  if (!mod && (event.key === 'Enter' || event.key === ' ') && event.target instanceof Element
    && event.target.closest('a, button, summary, [role=button]')) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const sequence = prefix && event.timeStamp - prefixAt < SEQUENCE_MS ? `${prefix} ${key}` : '';
  const wanted = mod ? `mod+${key}` : key;
  const usable = [...active].reverse().filter((it) => it.when?.() ?? true);
  const found = usable.find((it) => it.keys === sequence) ?? usable.find((it) => it.keys === wanted);
  prefix = '';
  if (found) {
    event.preventDefault();
    found.run(event);
  } else if (!mod && usable.some((it) => it.keys.startsWith(`${key} `))) {
    prefix = key;
    prefixAt = event.timeStamp;
  }
}

export function listen() {
  document.addEventListener('keydown', onKey);
}
