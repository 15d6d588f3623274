// Values of the template page: which fields a template has, and the values and the call made of them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { curl, typedOf, valueFields, valuesOf } from '../assets/pages/template/value-fields.js';

const template = (...components) => ({ components });

test('numbered placeholders become lists, in the order of their numbers', () => {
  const { fields, complete } = valueFields(
    template({ type: 'BODY', text: 'Hi {{2}}, {{1}} and {{2}}', example: { body_text: [['a', 'b']] } }),
  );
  assert.equal(complete, true);
  assert.deepEqual(fields.map((it) => it.pointer), ['/body/1', '/body/0']);
  assert.deepEqual(valuesOf(fields, new Map([['/body/1', 'B']])), { body: ['a', 'B'] });
});

test('named placeholders become objects', () => {
  const { fields } = valueFields(
    template({
      type: 'BODY',
      text: 'Hi {{first_name}}!',
      example: { body_text_named_params: [{ param_name: 'first_name', example: 'Ada' }] },
    }),
  );
  assert.deepEqual(valuesOf(fields, new Map()), { body: { first_name: 'Ada' } });
});

test('buttons are keyed by their index; the sample of a URL is its end', () => {
  const { fields } = valueFields(
    template({
      type: 'BUTTONS',
      buttons: [
        { type: 'QUICK_REPLY', text: 'No' },
        { type: 'URL', text: 'Track', url: 'https://shop.example/t/{{1}}', example: ['https://shop.example/t/A-1'] },
        { type: 'COPY_CODE', example: 'SAVE25' },
      ],
    }),
  );
  assert.deepEqual(valuesOf(fields, new Map()), { buttons: { 1: 'A-1', 2: 'SAVE25' } });
});

test('parts without a field of their own leave the form to JSON', () => {
  assert.equal(valueFields(template({ type: 'CAROUSEL', cards: [] })).complete, false);
  assert.equal(valueFields(template({ type: 'HEADER', format: 'LOCATION' })).complete, false);
});

test('a call names no credential, and quotes values for the shell', () => {
  const text = curl({ origin: 'https://galley.example', phone: '1555', id: '7', values: { body: ["O'Hara $(id)"] } });
  assert.match(text, /\/api\/v1\.0\/1555\/\$KEY\/message_templates\/7\/render"/);
  assert.match(text, /Bearer \$TOKEN/);
  assert.ok(text.endsWith(`-d '{"body":["O'\\''Hara $(id)"]}'`));
});

test('a values document is shown in the fields and read back', () => {
  const { fields } = valueFields({
    components: [
      { type: 'BODY', text: '{{1}} {{2}}', example: { body_text: [['a', 'b']] } },
      { type: 'BUTTONS', buttons: [{ type: 'COPY_CODE', example: 'CODE' }] },
    ],
  });
  const values = { body: ['Ada', 7], buttons: { 0: 'NEW' } };
  assert.deepEqual(valuesOf(fields, typedOf(fields, values)), { body: ['Ada', '7'], buttons: { 0: 'NEW' } });
  for (const odd of [null, 3, [], { body: 'x' }, { body: [{}] }]) typedOf(fields, odd);
});
