// Drafts of unsaved templates, in localStorage, per account and template. They hold documents only.

const PREFIX = 'galley.draft.';
const MAX_DRAFTS = 40;
const MAX_AGE_MS = 30 * 24 * 60 * 60 * 1000;

/**
 * @typedef {{document: unknown, text?: string, etag?: string, saved_at: number}} Draft
 */

/**
 * The key of a draft.
 * @param {string} account
 * @param {string} subject `new`, `from-{id}`, `language-of-{id}` or the id of the edited template
 */
export function draftKey(account, subject) {
  return `${PREFIX}${account}.${subject}`;
}

/**
 * Reads a draft; `null` if there is none or it cannot be read.
 * @param {string} key
 * @param {Storage} storage
 * @returns {Draft | null}
 */
export function loadDraft(key, storage = localStorage) {
  try {
    const draft = JSON.parse(storage.getItem(key) ?? 'null');
    return draft !== null && typeof draft === 'object' && 'document' in draft ? draft : null;
  } catch {
    return null;
  }
}

/**
 * Stores a draft; false if the storage refuses it.
 * @param {string} key
 * @param {Omit<Draft, "saved_at">} draft
 * @param {number} now
 * @param {Storage} storage
 */
export function saveDraft(key, draft, now = Date.now(), storage = localStorage) {
  try {
    prune(now, storage, key);
    storage.setItem(key, JSON.stringify({ ...draft, saved_at: now }));
    return true;
  } catch {
    return false;
  }
}

/**
 * Discards a draft.
 * @param {string} key
 * @param {Storage} storage
 */
export function discardDraft(key, storage = localStorage) {
  try {
    storage.removeItem(key);
  } catch {
    // A storage that is not available holds no draft.
  }
}

/** Discards drafts beyond the maximum age and number, oldest first. */
function prune(now, storage, kept) {
  const drafts = [];
  for (let index = 0; index < storage.length; index += 1) {
    const key = storage.key(index);
    if (key?.startsWith(PREFIX) && key !== kept) {
      drafts.push({ key, savedAt: loadDraft(key, storage)?.saved_at ?? 0 });
    }
  }
  drafts.sort((a, b) => b.savedAt - a.savedAt);
  for (const [rank, { key, savedAt }] of drafts.entries()) {
    if (rank >= MAX_DRAFTS - 1 || now - savedAt > MAX_AGE_MS) storage.removeItem(key);
  }
}
