// The idempotency key of a create.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newRequestKey } from '../assets/pages/editor/request-key.js';

test('a key has 128 random bits and needs no secure context', (context) => {
  context.mock.method(crypto, 'randomUUID', () => assert.fail('absent over plain HTTP'));
  const keys = new Set(Array.from({ length: 100 }, newRequestKey));
  assert.equal(keys.size, 100);
  for (const key of keys) assert.match(key, /^[0-9a-f]{32}$/);
});
