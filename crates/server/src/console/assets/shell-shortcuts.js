// Shortcuts that work on every page.
import { api } from './api.js';
import { paths } from './router.js';
import { strings as t } from './strings.js';

/** Shows the list of shortcuts; the dialog is loaded when it is wanted. */
export async function openShortcuts() {
  (await import('./ui/shortcuts-dialog.js')).openShortcuts();
}

/** @param {(path: string) => void} navigate */
export function globalShortcuts(navigate) {
  const signedIn = () => api.session !== null;
  return [
    { keys: '?', label: t.shortcuts.help, run: openShortcuts },
    { keys: 'g l', label: t.shortcuts.list, run: () => navigate(paths.list()), when: signedIn },
    { keys: 'g r', label: t.shortcuts.review, run: () => navigate(paths.review()), when: () => api.can('review') },
    { keys: 'g a', label: t.shortcuts.account, run: () => navigate(paths.account()), when: signedIn },
    { keys: 'g e', label: t.shortcuts.emulator, run: () => navigate(paths.emulator()), when: () => api.session?.account.emulator !== undefined },
    { keys: 'n', label: t.shortcuts.create, run: () => navigate(paths.create()), when: () => api.can('write') },
  ];
}
