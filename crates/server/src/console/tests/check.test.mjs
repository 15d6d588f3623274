// Checks while typing: debounced, newest only.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { latestOnly } from '../assets/pages/editor/check.js';

/** A run whose answers are given by hand, in any order. */
function harness() {
  const requests = [];
  const applied = [];
  const failed = [];
  const checker = latestOnly({
    run: (input, signal) => new Promise((answer, fail) => requests.push({ input, signal, answer, fail })),
    apply: (output, input) => applied.push([input, output]),
    fail: (error) => failed.push(error),
    delay: 5,
  });
  return { checker, requests, applied, failed };
}

const turn = () => new Promise((done) => setImmediate(done));

test('an older answer is never applied after a newer request', async () => {
  const { checker, requests, applied } = harness();
  checker.schedule('old', { now: true });
  checker.schedule('new', { now: true });
  assert.equal(requests[0].signal.aborted, true);
  requests[1].answer('answer to new');
  await turn();
  requests[0].answer('answer to old');
  await turn();
  assert.deepEqual(applied, [['new', 'answer to new']]);
});

test('typing sends one request, for the last input', async (context) => {
  context.mock.timers.enable({ apis: ['setTimeout'] });
  const { checker, requests } = harness();
  for (const input of ['a', 'ab', 'abc']) checker.schedule(input);
  context.mock.timers.tick(4);
  assert.equal(requests.length, 0);
  context.mock.timers.tick(1);
  assert.deepEqual(
    requests.map((it) => it.input),
    ['abc'],
  );
});

test('a failure counts unless the request was replaced', async () => {
  const { checker, requests, failed } = harness();
  checker.schedule('a', { now: true });
  checker.schedule('b', { now: true });
  requests[0].fail(new Error('aborted'));
  requests[1].fail(new Error('offline'));
  await turn();
  assert.deepEqual(
    failed.map((it) => it.message),
    ['offline'],
  );
});
