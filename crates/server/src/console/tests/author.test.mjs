// Who made a change, as people read it.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { author, tokenName } from '../assets/ui/author.js';

test('a token is shown by its name, and one without a name is not a bare number', () => {
  assert.equal(author('7', 'Ada'), 'Ada');
  assert.equal(author('7', ''), 'token 7');
  assert.equal(author('7', undefined), 'token 7');
  assert.equal(author(undefined, undefined), 'token ?');
  assert.equal(tokenName('7', ''), 'token 7');
});

test('the operator and the service are not tokens', () => {
  assert.equal(author('operator', ''), 'the operator');
  assert.equal(author('service', 'Ada'), 'the service');
});

test('no page shows an author without asking here', () => {
  const assets = join(import.meta.dirname, '../assets/pages');
  const files = readdirSync(assets, { recursive: true }).map(String).filter((it) => it.endsWith('.js'));
  const wrong = files.filter((it) => /(_by_name|actor_name)\s*(\|\||\?\?)/.test(readFileSync(join(assets, it), 'utf8')));
  assert.deepEqual(wrong, []);
});
