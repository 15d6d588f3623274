// The word diff and the comparison of documents.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { changedLeaves, leaves, placeholderChanges, placeholders, tokens, wordDiff } from '../assets/diff.js';

const shown = (before, after) =>
  wordDiff(before, after)
    .map(({ op, text }) => ({ equal: text, delete: `[-${text}-]`, insert: `{+${text}+}` })[op])
    .join('');

test('equal texts have one equal part, empty texts none', () => {
  assert.deepEqual(wordDiff('Hello Ada', 'Hello Ada'), [{ op: 'equal', text: 'Hello Ada' }]);
  assert.deepEqual(wordDiff('', ''), []);
});

test('whole words and placeholders are compared, not characters', () => {
  assert.equal(
    shown('Your order {{1}} is late.', 'Your parcel {{2}} is late.'),
    'Your [-order {{1}}-]{+parcel {{2}}+} is late.',
  );
  assert.equal(shown('a b c', 'a c'), 'a [-b -]c');
  assert.equal(shown('Hello', ''), '[-Hello-]');
  assert.equal(shown('', 'Hello'), '{+Hello+}');
});

test('line breaks stay apart from replaced words', () => {
  assert.equal(shown('one\ntwo', 'uno\ndos'), '[-one-]{+uno+}\n[-two-]{+dos+}');
});

test('scripts without spaces and emoji are cut between characters', () => {
  assert.deepEqual(tokens('日本語'), ['日', '本', '語']);
  assert.deepEqual(tokens('👩‍👧 ok'), ['👩‍👧', ' ', 'ok']);
  assert.equal(shown('明日届きます', '今日届きます'), '[-明-]{+今+}日届きます');
});

test('both sides can be put together again from any diff', () => {
  const words = ['a', 'b', '{{1}}', ' ', '\n', 'é', 'مرحبا', '🌙', '.'];
  let seed = 7;
  const random = (below) => (seed = (seed * 1103515245 + 12345) % 2147483648) % below;
  for (let round = 0; round < 300; round += 1) {
    const text = () => Array.from({ length: random(30) }, () => words[random(words.length)]).join('');
    const [before, after] = [text(), text()];
    const side = (skipped) =>
      wordDiff(before, after)
        .filter((it) => it.op !== skipped)
        .map((it) => it.text)
        .join('');
    assert.equal(side('insert'), before);
    assert.equal(side('delete'), after);
  }
});

test('short words between replacements belong to the replacement', () => {
  assert.equal(
    shown('You do not need to do anything.', 'Nothing to do for you.'),
    '[-You do not need to do anything-]{+Nothing to do for you+}.',
  );
  assert.equal(
    shown('Take one {{1}} home', 'Bring two {{1}} back'),
    '[-Take one-]{+Bring two+} {{1}} [-home-]{+back+}',
  );
});

test('a huge text counts as replaced', () => {
  const before = 'a '.repeat(3000);
  const after = 'b '.repeat(3000);
  assert.deepEqual(
    wordDiff(`${before}x`, `${after}y`).map((it) => it.op),
    ['delete', 'insert'],
  );
});

const body = (text, more = {}) => ({ category: 'UTILITY', components: [{ type: 'BODY', text, ...more }] });

test('leaves name components by type, so that their order does not matter', () => {
  const one = {
    components: [
      { type: 'body', text: 'A' },
      { type: 'FOOTER', text: 'B' },
    ],
  };
  const two = {
    components: [
      { type: 'FOOTER', text: 'B' },
      { type: 'BODY', text: 'A' },
    ],
  };
  assert.deepEqual(
    [...leaves(one)],
    [
      ['BODY/text', 'A'],
      ['FOOTER/text', 'B'],
    ],
  );
  assert.deepEqual(changedLeaves(one, two), []);
});

test('changes list both sides in the order of reading', () => {
  const after = {
    category: 'MARKETING',
    components: [
      { type: 'BUTTONS', buttons: [{ type: 'URL', url: 'https://a.example' }] },
      { type: 'BODY', text: 'New' },
    ],
  };
  assert.deepEqual(changedLeaves(body('Old'), after), [
    { path: 'category', before: 'UTILITY', after: 'MARKETING' },
    { path: 'BODY/text', before: 'Old', after: 'New' },
    { path: 'BUTTONS/buttons/0/type', before: '', after: 'URL' },
    { path: 'BUTTONS/buttons/0/url', before: '', after: 'https://a.example' },
  ]);
});

test('placeholders are told with the text that gained or lost them', () => {
  assert.deepEqual(placeholders('{{1}} {{name}} {{1}} {{x'), ['1', 'name']);
  assert.deepEqual(placeholderChanges(body('{{1}} and {{2}}'), body('{{1}} and {{3}}')), {
    added: [{ path: 'BODY/text', name: '3' }],
    removed: [{ path: 'BODY/text', name: '2' }],
  });
});

test('documents of any shape can be compared', () => {
  for (const odd of [null, 7, 'x', [], { components: 3 }, { components: [null, 4, { type: 9 }] }]) {
    assert.doesNotThrow(() => changedLeaves(odd, body('x')));
    assert.doesNotThrow(() => placeholderChanges(odd, body('x')));
  }
});
