// Violations: where they belong, which characters they mark, and what a click can fix. All pure.

import { at, parsePointer, removeAt, renameAt, setAt } from './pages/editor/pointer.js';

/**
 * @typedef {{pointer: string, rule: string, message: string, hint?: string, span?: {start: number, end: number}}} Violation
 */

/**
 * Assigns violations to the fields that show them, each exactly once. A field takes those at its
 * own pointer, a group also those below it that no field has taken before.
 */
export class Placement {
  /** @param {Violation[]} violations */
  constructor(violations) {
    this.open = new Set(violations);
  }

  /**
   * Those at exactly this pointer.
   * @param {string} pointer
   * @returns {Violation[]}
   */
  take(pointer) {
    return this.#takeIf((it) => it.pointer === pointer);
  }

  /**
   * Those at this pointer and below.
   * @param {string} pointer
   * @returns {Violation[]}
   */
  takeBelow(pointer) {
    return this.#takeIf((it) => it.pointer === pointer || it.pointer.startsWith(`${pointer}/`));
  }

  /**
   * How many there are at this pointer and below.
   * @param {string} pointer
   */
  countBelow(pointer) {
    return [...this.open].filter((it) => it.pointer === pointer || it.pointer.startsWith(`${pointer}/`)).length;
  }

  /** Those that no field has taken. */
  rest() {
    return this.#takeIf(() => true);
  }

  #takeIf(test) {
    const taken = [...this.open].filter(test);
    for (const violation of taken) this.open.delete(violation);
    return taken;
  }
}

/**
 * A text cut at the edges of its marks. Offsets count Unicode scalar values, as spans do.
 * @param {string} text
 * @param {{start: number, end: number, kind: string}[]} marks
 * @returns {{text: string, kinds: string[]}[]}
 */
export function segments(text, marks) {
  const characters = [...text];
  const within = (offset) => Math.max(0, Math.min(offset, characters.length));
  const edges = new Set([0, characters.length]);
  for (const { start, end } of marks) {
    edges.add(within(start));
    edges.add(within(end));
  }
  const sorted = [...edges].sort((a, b) => a - b);
  return sorted.slice(0, -1).map((start, index) => {
    const end = sorted[index + 1];
    const kinds = marks.filter((it) => it.start < end && it.end > start).map((it) => it.kind);
    return { text: characters.slice(start, end).join(''), kinds: [...new Set(kinds)] };
  });
}

/**
 * The marks of the placeholders of a text.
 * @param {string} text
 */
export function placeholderMarks(text) {
  const marks = [];
  for (const match of text.matchAll(/\{\{\s*\w+\s*\}\}/g)) {
    const start = [...text.slice(0, match.index)].length;
    marks.push({ start, end: start + [...match[0]].length, kind: 'placeholder' });
  }
  return marks;
}

/**
 * The marks of violations and warnings with a span; one without a width marks its neighbour.
 * @param {Violation[]} violations
 * @param {string} kind
 */
export function violationMarks(violations, kind) {
  return violations
    .filter((it) => it.span !== undefined)
    .map(({ span }) => ({ start: span.start, end: Math.max(span.end, span.start + 1), kind }));
}

/**
 * @typedef {{kind: "replace" | "rename" | "remove", value: string, document: unknown}} Fix
 */

/**
 * What one click can do about a violation: the corrected document, or `null` if its hint carries
 * no value.
 * @param {Violation} violation
 * @param {unknown} document
 * @returns {Fix | null}
 */
export function fixFor(violation, document) {
  const { pointer, rule, hint = '', span } = violation;
  const found = /^found `([^`]+)`: did you mean `([^`]+)`\?$/.exec(hint);
  if (found) return renamed(document, pointer, found[1], found[2]);
  const category = /change the category to ([A-Z]+)$/.exec(hint)?.[1];
  if (category) return { kind: 'replace', value: category, document: setAt(document, '/category', category) };
  const suggested = /^did you mean `([^`]+)`\?$/.exec(hint)?.[1];
  const choice = suggested ?? /^remove it, or use `([^`]+)`$/.exec(hint)?.[1];
  if (choice !== undefined && !choice.endsWith('…')) {
    return rule === 'unknown-field' ? renamedAt(document, pointer, choice) : replaced(document, pointer, choice, span);
  }
  const isRemoval = /^(remove it|leave it out)($|[;:])/.test(hint) && at(document, pointer) !== undefined;
  return isRemoval && pointer !== '' ? { kind: 'remove', value: '', document: removeAt(document, pointer) } : null;
}

/** Replaces the span if both are placeholders, otherwise the whole value. */
function replaced(document, pointer, suggestion, span) {
  const current = at(document, pointer);
  if (current !== undefined && typeof current === 'object' && current !== null) return null;
  let value = suggestion;
  if (typeof current === 'string' && span !== undefined) {
    const characters = [...current];
    const marked = characters.slice(span.start, span.end).join('');
    if (marked.startsWith('{{') && suggestion.startsWith('{{') && marked !== current) {
      value = [...characters.slice(0, span.start), suggestion, ...characters.slice(span.end)].join('');
    }
  }
  return { kind: 'replace', value: suggestion, document: setAt(document, pointer, value) };
}

/** `required` found a misspelt sibling: gives it the right name. */
function renamed(document, pointer, from, to) {
  const path = parsePointer(pointer);
  if (path.at(-1) !== to) return null;
  const owner = at(document, path.slice(0, -1));
  if (owner === null || typeof owner !== 'object' || !(from in owner) || to in owner) return null;
  return { kind: 'rename', value: to, document: renameAt(document, [...path.slice(0, -1), from], to) };
}

function renamedAt(document, pointer, to) {
  const path = parsePointer(pointer);
  const owner = at(document, path.slice(0, -1));
  if (owner === null || typeof owner !== 'object' || to in owner) return null;
  return { kind: 'rename', value: to, document: renameAt(document, path, to) };
}
