// The documents of the editor: pointers, samples, components, positions in JSON.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as model from '../assets/pages/editor/document.js';
import { buttonFields, buttonTypes, newButton } from '../assets/pages/editor/limits.js';
import { at, parsePointer, removeAt, renameAt, setAt, toPointer } from '../assets/pages/editor/pointer.js';

test('pointers are escaped and read back', () => {
  assert.deepEqual(parsePointer(toPointer(['a/b', '~c', 0])), ['a/b', '~c', '0']);
  assert.deepEqual(parsePointer(''), []);
});

test('changes leave the original alone', () => {
  const original = Object.freeze({ a: Object.freeze([1, 2]) });
  assert.deepEqual(setAt(original, '/a/1', 3), { a: [1, 3] });
  assert.deepEqual(removeAt(original, '/a/0'), { a: [2] });
  assert.deepEqual(setAt({}, '/example/body_text/0/0', 'x'), { example: { body_text: [['x']] } });
  assert.deepEqual(Object.keys(renameAt({ x: 1, y: 2 }, ['x'], 'z')), ['z', 'y']);
});

test('a member called __proto__ is a member', () => {
  const document = setAt({}, '/__proto__/polluted', true);
  assert.equal({}.polluted, undefined);
  assert.equal(at(document, '/__proto__/polluted'), true);
});

test('samples follow the placeholders of both rulebooks', () => {
  const numbered = { components: [{ type: 'BODY', text: '{{2}} {{1}}', example: { body_text: [['a', 'b']] } }] };
  assert.deepEqual(model.samples(numbered, '/components/0'), [
    { name: '1', pointer: '/components/0/example/body_text/0/0', value: 'a' },
    { name: '2', pointer: '/components/0/example/body_text/0/1', value: 'b' },
  ]);
  const named = {
    parameter_format: 'named',
    components: [
      {
        type: 'HEADER',
        text: '{{who}}',
        example: { header_text_named_params: [{ param_name: 'who', example: 'Ada' }] },
      },
    ],
  };
  assert.deepEqual(model.samples(named, '/components/0'), [
    { name: 'who', pointer: '/components/0/example/header_text_named_params/0/example', value: 'Ada' },
  ]);
});

test('samples are written in the form of the rulebook, and removed with the last placeholder', () => {
  const values = new Map([
    ['1', 'Ada'],
    ['2', 'Friday'],
    ['who', 'Ada'],
  ]);
  const written = (component, more = {}, rulebook = 'v1') =>
    model.withSamples({ ...more, components: [component] }, '/components/0', values, rulebook).components[0].example;
  assert.deepEqual(written({ type: 'BODY', text: '{{1}} {{2}}' }), { body_text: [['Ada', 'Friday']] });
  assert.deepEqual(written({ type: 'HEADER', text: '{{1}}' }, {}, 'whatsapp'), { header_text: ['Ada'] });
  assert.deepEqual(written({ type: 'BODY', text: '{{who}}' }, { parameter_format: 'NAMED' }, 'whatsapp'), {
    body_text_named_params: [{ param_name: 'who', example: 'Ada' }],
  });
  assert.equal(written({ type: 'BODY', text: 'none', example: { body_text: [['x']] } }), undefined);
});

test('a component keeps its place when others come and go', () => {
  const card = { components: [{ type: 'header' }, { type: 'BODY' }] };
  const document = { components: [{ type: 'BODY' }, { type: 'CAROUSEL', cards: [card] }] };
  assert.equal(model.stablePointer(document, '/components/0'), '/components/BODY');
  assert.equal(model.stablePointer(document, '/components/1/cards/0/components/0/text'), '/components/CAROUSEL/cards/0/components/HEADER/text');
  assert.equal(model.stablePointer(document, '/components'), '/components');
  const added = model.withComponent(document, '/components', { type: 'HEADER' });
  assert.equal(model.stablePointer(added, '/components/1'), '/components/BODY');
});

test('samples stay with their placeholders when a text is fixed', () => {
  const document = (text, ...list) => ({ components: [{ type: 'BODY', text, example: { body_text: [list] } }] });
  const fixed = (before, text) => Object.fromEntries(model.samplesAfterFix(before, setAt(before, '/components/0/text', text), '/components/0'));
  // A placeholder that comes to exist before another one takes nothing from it.
  assert.deepEqual(fixed(document('{{2}} and {{ 1 }}', 'b'), '{{2}} and {{1}}'), { 2: 'b' });
  // A renamed one takes its sample along.
  assert.equal(fixed(document('{{1}} and {{3}}', 'a', 'c'), '{{1}} and {{2}}')[2], 'c');
  // Samples that were written for the right text belong to it.
  assert.deepEqual(fixed(document('{{ 1 }} and {{2}}', 'a', 'b'), '{{1}} and {{2}}'), { 1: 'a', 2: 'b' });
});

test('components get their usual position', () => {
  let document = model.emptyDocument('v1');
  document = model.withComponent(document, '/components', { type: 'FOOTER', text: '' });
  document = model.withComponent(document, '/components', { type: 'HEADER', format: 'TEXT', text: '' });
  assert.deepEqual(
    document.components.map((it) => it.type),
    ['HEADER', 'BODY', 'FOOTER'],
  );
  assert.equal(model.componentPointer(document, '/components', 'BODY'), '/components/1');
  assert.deepEqual(model.moved({ l: [1, 2, 3] }, '/l', 2, 0), { l: [3, 1, 2] });
});

test('the document of an edit has nothing that the service adds', () => {
  const read = {
    id: '1',
    status: 'APPROVED',
    version: 2,
    name: 'a',
    language: 'en_US',
    components: [],
    rejection_reason: 'x',
  };
  assert.deepEqual(model.editableDocument(read), { name: 'a', language: 'en_US', components: [] });
});

test('the form refuses documents that it cannot show', () => {
  for (const odd of [null, 3, 'x', [], { components: {} }, { components: [3] }])
    assert.equal(model.fitsForm(odd), false);
  assert.equal(model.fitsForm({}), true);
});

test('values are located in JSON text', () => {
  const text = '{\n "a": [1, {"b\\"c": "x, ]"}],\n "d": true }';
  const found = (...path) => {
    const range = model.locate(text, path);
    return range && text.slice(range.start, range.end);
  };
  assert.equal(found('a', '0'), '1');
  assert.equal(found('a', '1', 'b"c'), '"x, ]"');
  assert.equal(found('d'), 'true');
  assert.equal(found('e'), null);
  assert.equal(found(), text);
});

test('every button type has fields, and a new button has the required ones', () => {
  for (const type of buttonTypes('whatsapp')) assert.ok(Array.isArray(buttonFields({ type })), type);
  assert.deepEqual(newButton('URL', { text: 'Open' }), { type: 'URL', text: 'Open', url: '' });
  assert.deepEqual(newButton('OTP'), { type: 'OTP', otp_type: 'COPY_CODE' });
});
