// Violations: placement, marks, fixes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fixFor, placeholderMarks, Placement, segments, violationMarks } from '../assets/violations.js';

const at = (pointer, more = {}) => ({ pointer, rule: 'required', message: 'is required', ...more });

test('each violation is placed once: at its field, in its group, or in the rest', () => {
  const list = [at('/name'), at('/components/0/example/body_text'), at('/components/0/example'), at('/components/10')];
  const placement = new Placement(list);
  assert.deepEqual(placement.take('/name'), [list[0]]);
  assert.deepEqual(placement.take('/name'), []);
  assert.deepEqual(placement.takeBelow('/components/0/example'), [list[1], list[2]]);
  assert.deepEqual(placement.takeBelow('/components/1'), []);
  assert.deepEqual(placement.rest(), [list[3]]);
});

test('spans count scalar values and may overlap', () => {
  const marks = [
    { start: 1, end: 3, kind: 'violation' },
    { start: 2, end: 4, kind: 'warning' },
  ];
  assert.deepEqual(segments('😀abcd', marks), [
    { text: '😀', kinds: [] },
    { text: 'a', kinds: ['violation'] },
    { text: 'b', kinds: ['violation', 'warning'] },
    { text: 'c', kinds: ['warning'] },
    { text: 'd', kinds: [] },
  ]);
  assert.deepEqual(segments('ab', [{ start: 9, end: 12, kind: 'x' }]), [{ text: 'ab', kinds: [] }]);
});

test('placeholders and violations give marks', () => {
  assert.deepEqual(placeholderMarks('🌙 {{1}}'), [{ start: 2, end: 7, kind: 'placeholder' }]);
  assert.deepEqual(violationMarks([at('', { span: { start: 4, end: 4 } }), at('')], 'violation'), [
    { start: 4, end: 5, kind: 'violation' },
  ]);
});

test('a suggested value replaces the value', () => {
  const violation = {
    pointer: '/name',
    rule: 'name-form',
    hint: 'did you mean `order_shipped`?',
    span: { start: 0, end: 1 },
  };
  assert.deepEqual(fixFor(violation, { name: 'Order shipped' }).document, { name: 'order_shipped' });
});

test('a suggested placeholder replaces its span only', () => {
  const violation = {
    pointer: '/t',
    rule: 'placeholder-syntax',
    hint: 'did you mean `{{1}}`?',
    span: { start: 3, end: 10 },
  };
  assert.equal(fixFor(violation, { t: 'Hi {{ 1 }}, welcome' }).document.t, 'Hi {{1}}, welcome');
});

test('a misspelt member gets its name, in the same position', () => {
  const document = { components: [{ type: 'BODY', exmaple: { body_text: [['Ada']] }, text: 'Hi {{1}}' }] };
  const expected = { components: [{ type: 'BODY', example: { body_text: [['Ada']] }, text: 'Hi {{1}}' }] };
  const violation = at('/components/0/example', { hint: 'found `exmaple`: did you mean `example`?' });
  assert.equal(JSON.stringify(fixFor(violation, document).document), JSON.stringify(expected));
  const warning = { pointer: '/components/0/exmaple', rule: 'unknown-field', hint: 'did you mean `example`?' };
  assert.equal(JSON.stringify(fixFor(warning, document).document), JSON.stringify(expected));
});

test('a hint that says remove it removes the value', () => {
  const violation = {
    pointer: '/components/0/example',
    rule: 'samples-not-allowed',
    hint: 'leave it out: there are no placeholders',
  };
  assert.deepEqual(fixFor(violation, { components: [{ type: 'BODY', example: {} }] }).document, {
    components: [{ type: 'BODY' }],
  });
  assert.equal(fixFor({ ...violation, pointer: '/absent' }, {}), null);
});

test('a hint that names one category changes the category', () => {
  const violation = {
    pointer: '/components/0',
    rule: 'category-unfit',
    hint: 'remove it, or change the category to MARKETING',
  };
  assert.equal(fixFor(violation, { category: 'UTILITY' }).document.category, 'MARKETING');
  assert.equal(fixFor({ ...violation, hint: `${violation.hint} or UTILITY` }, {}), null);
});

test('hints without a value fix nothing', () => {
  for (const hint of [undefined, 'write something visible', 'write a name such as `a_b`', 'did you mean `cut off…`?']) {
    assert.equal(fixFor({ pointer: '/name', rule: 'empty', hint }, { name: 'x' }), null, hint);
  }
});
