import assert from 'node:assert/strict';
import test from 'node:test';
import { actionsOf, comparable, isCategoryHeld, isCompared, isMoving } from '../assets/pages/template/upstream-actions.js';
import { upstream } from '../assets/strings/upstream.js';

test('each state offers what the service accepts in it', () => {
  assert.deepEqual(actionsOf('drifted'), ['accept', 'push']);
  assert.deepEqual(actionsOf('missing'), ['push']);
  assert.deepEqual(actionsOf('local'), ['submit']);
  assert.deepEqual(actionsOf('conflict'), ['accept', 'push', 'retry']);
  for (const state of ['refused', 'held']) assert.deepEqual(actionsOf(state), ['retry'], state);
  for (const state of ['synced', 'queued', 'sending', 'new']) assert.deepEqual(actionsOf(state), [], state);
});

test('both sides are compared where a person decides between them', () => {
  assert.deepEqual(Object.keys(upstream.meaning).filter(isCompared), ['drifted', 'conflict']);
});

test('a template on hold because of its category can be accepted while the provider has it', () => {
  const held = { allow_category_change: false, previous_category: 'UTILITY', category: 'MARKETING' };
  assert.equal(isCategoryHeld(held), true);
  assert.equal(isCategoryHeld({ ...held, allow_category_change: true }), false);
  assert.equal(isCategoryHeld({ allow_category_change: false }), false);
  assert.deepEqual(actionsOf('synced', true), ['accept']);
  assert.deepEqual(actionsOf('refused', true), ['accept', 'retry']);
  assert.deepEqual(actionsOf('drifted', true), ['accept', 'push']);
  assert.deepEqual(actionsOf('conflict', true), ['accept', 'push', 'retry']);
  for (const state of ['missing', 'local', 'sending']) assert.equal(actionsOf(state, true).includes('accept'), false, state);
  assert.ok(upstream.confirm.acceptCategory && upstream.done.acceptCategory);
  assert.match(upstream.categoryHeld('Utility', 'Marketing'), /from Utility to Marketing/);
});

test('only a state that changes by itself is read again', () => {
  const moving = Object.keys(upstream.meaning).filter(isMoving);
  assert.deepEqual(moving, ['queued', 'sending']);
});

test('every action and state has a text', () => {
  for (const state of Object.keys(upstream.meaning)) {
    assert.ok(upstream.state[state], state);
    for (const action of actionsOf(state)) assert.ok(upstream.actions[action] && upstream.done[action], action);
  }
});

test('the two sides are compared by category and components', () => {
  const document = { id: '7', status: 'APPROVED', category: 'UTILITY', components: [{ type: 'BODY' }] };
  assert.deepEqual(comparable(document), { category: 'UTILITY', components: [{ type: 'BODY' }] });
  assert.deepEqual(comparable({ category: 'UTILITY' }), { category: 'UTILITY', components: [] });
});

test('an error of Galley itself has no code', () => {
  assert.equal(upstream.code(100, 2388040), 'code 100, subcode 2388040');
  assert.equal(upstream.code(190, undefined), 'code 190');
  assert.equal(upstream.code(0, undefined), '');
});

test('a suspicious connection names what it misses, and how many more there are', () => {
  assert.ok(upstream.connection.unseen);
  assert.equal(upstream.more(11), 'and 11 more');
});
