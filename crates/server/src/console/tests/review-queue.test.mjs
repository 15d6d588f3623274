// The review queue: reading it again, and only while a person is there.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mergeFirstPage } from '../assets/pages/review/merge.js';
import { isIdle, notice } from '../assets/pages/review/presence.js';

const page = (ids, after) => ({ items: [...ids].map((id) => ({ id })), after });

test('the first page is read again, what was read behind it stays', () => {
  assert.deepEqual(mergeFirstPage(page('abcdef', 'f'), page('acd', 'd')), page('acdef', 'f'));
  assert.deepEqual(mergeFirstPage(page('abc', 'c'), page('bcd', 'd')), page('bcd', 'd'));
});

test('a template that waits again comes in between', () => {
  assert.deepEqual(mergeFirstPage(page('bcdef', 'f'), page('axb', 'b')), page('axbcdef', 'f'));
});

test('a first page without a next one is the whole queue, and a new one replaces what it does not touch', () => {
  assert.deepEqual(mergeFirstPage(page('abcdef', 'f'), page('ab')), page('ab'));
  assert.deepEqual(mergeFirstPage(page('ab', 'b'), page('xyz', 'z')), page('xyz', 'z'));
  assert.deepEqual(mergeFirstPage(page(''), page('abc', 'c')), page('abc', 'c'));
});

test('ten minutes without input are a pause; the next input ends it, once', (context) => {
  context.mock.timers.enable({ apis: ['Date'], now: Date.now() });
  const target = new EventTarget();
  const stop = new AbortController();
  let resumed = 0;
  notice(stop.signal, () => (resumed += 1), target);
  context.mock.timers.setTime(Date.now() + 9 * 60_000);
  target.dispatchEvent(new Event('keydown'));
  assert.deepEqual([isIdle(), resumed], [false, 0]);
  context.mock.timers.setTime(Date.now() + 10 * 60_000);
  assert.equal(isIdle(), true);
  target.dispatchEvent(new Event('pointerdown'));
  target.dispatchEvent(new Event('pointerdown'));
  assert.deepEqual([isIdle(), resumed], [false, 1]);
});
