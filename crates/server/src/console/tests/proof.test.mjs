// The blocks of a proof.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { blocks } from '../assets/proof/blocks.js';

const run = (text, ...style) => ({ text, style });
const shown = (runs) =>
  blocks(runs).map(({ kind, lines }) => [kind, lines.map((line) => line.map((it) => it.text).join('|'))]);

test('plain text stays one block with its line breaks', () => {
  assert.deepEqual(shown([run('Hi '), run('Ada', 'bold'), run(',\n\nbye')]), [['text', ['Hi |Ada|,\n\nbye']]]);
});

test('items of a list are lines, and their line feeds are not shown again', () => {
  const runs = [
    run('See:\n'),
    run('one\n', 'list'),
    run('two ', 'list'),
    run('red', 'italic', 'list'),
    run(' hat\n', 'list'),
    run('1. Pay\n', 'numbered'),
    run('Thanks', 'quote'),
  ];
  assert.deepEqual(shown(runs), [
    ['text', ['See:\n']],
    ['list', ['one', 'two |red| hat']],
    ['numbered', ['1. Pay']],
    ['quote', ['Thanks']],
  ]);
});

test('a blank line after a list stays', () => {
  assert.deepEqual(shown([run('one\n', 'list'), run('\nbye')]), [
    ['list', ['one']],
    ['text', ['\nbye']],
  ]);
});

test('a proof without text has no blocks', () => {
  assert.deepEqual(blocks([]), []);
});
