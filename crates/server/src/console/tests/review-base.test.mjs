// Which version a review compares with.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { baseOf } from '../assets/pages/review/base.js';

const versions = (...statuses) => statuses.map((status, index) => ({ version: statuses.length - index, status, reason: `reason of ${statuses.length - index}` }));

test('the live version comes first', () => {
  const all = versions('PENDING', 'REJECTED', 'APPROVED', 'APPROVED');
  assert.deepEqual(baseOf({ version: 4, live_version: 2 }, all), { kind: 'live', version: 2 });
});

test('a paused template has no live version: the newest approved one counts', () => {
  const all = versions('PENDING', 'REJECTED', 'APPROVED', 'APPROVED');
  assert.deepEqual(baseOf({ version: 4 }, all), { kind: 'approved', version: 2 });
});

test('without an approved version, the previous one and why it was rejected', () => {
  assert.deepEqual(baseOf({ version: 3 }, versions('PENDING', 'REJECTED', 'REJECTED')), { kind: 'previous', version: 2, reason: 'reason of 2' });
  assert.deepEqual(baseOf({ version: 2 }, versions('PENDING', 'PENDING')), { kind: 'previous', version: 1 });
});

test('the first version is new, and no version is compared with itself or a later one', () => {
  assert.equal(baseOf({ version: 1 }, versions('PENDING')), null);
  assert.equal(baseOf({ version: 1, live_version: 1 }, versions('PENDING', 'APPROVED')), null);
  assert.deepEqual(baseOf({ version: 2, live_version: 2 }, versions('PENDING', 'APPROVED', 'APPROVED')), { kind: 'approved', version: 1 });
});
