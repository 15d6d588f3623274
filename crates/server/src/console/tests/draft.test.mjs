// Drafts in a storage.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { discardDraft, draftKey, loadDraft, saveDraft } from '../assets/draft.js';

class Memory {
  items = new Map();
  get length() {
    return this.items.size;
  }
  key(index) {
    return [...this.items.keys()][index] ?? null;
  }
  getItem(key) {
    return this.items.get(key) ?? null;
  }
  setItem(key, value) {
    this.items.set(key, value);
  }
  removeItem(key) {
    this.items.delete(key);
  }
}

test('a draft is read back until it is discarded', () => {
  const storage = new Memory();
  const key = draftKey('1', 'new');
  assert.equal(loadDraft(key, storage), null);
  assert.equal(saveDraft(key, { document: { name: 'a' }, etag: '"3"' }, 1000, storage), true);
  assert.deepEqual(loadDraft(key, storage), { document: { name: 'a' }, etag: '"3"', saved_at: 1000 });
  assert.equal(loadDraft(draftKey('2', 'new'), storage), null, 'drafts of other accounts are others');
  discardDraft(key, storage);
  assert.equal(loadDraft(key, storage), null);
});

test('an unreadable draft is none', () => {
  const storage = new Memory();
  for (const text of ['{', '7', 'null', '{}']) {
    storage.setItem('galley.draft.1.new', text);
    assert.equal(loadDraft('galley.draft.1.new', storage), null, text);
  }
});

test('a storage that refuses keeps the editor working', () => {
  const storage = new Memory();
  storage.setItem = () => {
    throw new Error('full');
  };
  assert.equal(saveDraft('galley.draft.1.new', { document: {} }, 1, storage), false);
});

test('old drafts are discarded, other entries stay', () => {
  const storage = new Memory();
  storage.setItem('galley.theme', 'dark');
  const now = 1_000_000_000_000;
  for (let id = 0; id < 60; id += 1) saveDraft(draftKey('1', String(id)), { document: {} }, now + id, storage);
  saveDraft(draftKey('1', 'late'), { document: {} }, now + 40 * 86_400_000, storage);
  assert.equal(storage.getItem('galley.theme'), 'dark');
  assert.equal(storage.length, 2);
});
