// Pure comparisons of texts and template documents: word diff, leaves, placeholders.

/** The largest table the word diff fills; beyond it a text counts as replaced. */
const MAX_TABLE_CELLS = 4_000_000;

/** A word; in scripts without spaces a character; a placeholder; an emoji; white space; a mark. */
const TOKEN = new RegExp(
  [
    String.raw`\{\{[^{}\n]*\}\}`,
    String.raw`\s+`,
    String.raw`\p{Extended_Pictographic}(?:\uFE0F|\u200D\p{Extended_Pictographic}|[\u{1F3FB}-\u{1F3FF}])*`,
    String.raw`[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmr}\p{sc=Mymr}]\p{M}*`,
    String.raw`[\p{L}\p{M}\p{N}_]+`,
    String.raw`\P{M}\p{M}*`,
    String.raw`[^]`,
  ].join('|'),
  'gu',
);

/**
 * Splits a text into the units that the diff compares.
 * @param {string} text
 * @returns {string[]}
 */
export function tokens(text) {
  return text.match(TOKEN) ?? [];
}

/**
 * @typedef {{op: "equal" | "delete" | "insert", text: string}} Change
 */

/**
 * The word diff from `before` to `after`; the texts of its equal and deleted parts are `before`,
 * those of its equal and inserted parts `after`.
 * @param {string} before
 * @param {string} after
 * @returns {Change[]}
 */
export function wordDiff(before, after) {
  const old = tokens(before);
  const fresh = tokens(after);
  let start = 0;
  while (start < old.length && start < fresh.length && old[start] === fresh[start]) start += 1;
  let oldEnd = old.length;
  let freshEnd = fresh.length;
  while (oldEnd > start && freshEnd > start && old[oldEnd - 1] === fresh[freshEnd - 1]) {
    oldEnd -= 1;
    freshEnd -= 1;
  }
  const changes = [
    ...old.slice(0, start).map((text) => ({ op: 'equal', text })),
    ...middle(old.slice(start, oldEnd), fresh.slice(start, freshEnd)),
    ...old.slice(oldEnd).map((text) => ({ op: 'equal', text })),
  ];
  return merged(withoutIslands(merged(changes)));
}

/** The longest common subsequence of two token lists, as changes. */
function middle(old, fresh) {
  const width = fresh.length + 1;
  if (old.length === 0 || fresh.length === 0 || old.length * fresh.length > MAX_TABLE_CELLS) {
    return [...old.map((text) => ({ op: 'delete', text })), ...fresh.map((text) => ({ op: 'insert', text }))];
  }
  const lengths = new Uint32Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = fresh.length - 1; j >= 0; j -= 1) {
      lengths[i * width + j] =
        old[i] === fresh[j]
          ? lengths[(i + 1) * width + j + 1] + 1
          : Math.max(lengths[(i + 1) * width + j], lengths[i * width + j + 1]);
    }
  }
  const changes = [];
  let i = 0;
  let j = 0;
  while (i < old.length || j < fresh.length) {
    if (i < old.length && j < fresh.length && old[i] === fresh[j]) {
      changes.push({ op: 'equal', text: old[i] });
      i += 1;
      j += 1;
    } else if (j >= fresh.length || (i < old.length && lengths[(i + 1) * width + j] >= lengths[i * width + j + 1])) {
      changes.push({ op: 'delete', text: old[i] });
      i += 1;
    } else {
      changes.push({ op: 'insert', text: fresh[j] });
      j += 1;
    }
  }
  return changes;
}

/** Joins neighbours of one kind; between two equal parts, deletions come before insertions. */
function merged(changes) {
  const result = [];
  let deleted = '';
  let inserted = '';
  const flush = () => {
    if (deleted !== '') result.push({ op: 'delete', text: deleted });
    if (inserted !== '') result.push({ op: 'insert', text: inserted });
    deleted = '';
    inserted = '';
  };
  for (const { op, text } of changes) {
    if (op === 'delete') deleted += text;
    else if (op === 'insert') inserted += text;
    else {
      flush();
      const last = result.at(-1);
      if (last?.op === 'equal') last.text += text;
      else result.push({ op, text });
    }
  }
  flush();
  return result;
}

/**
 * Makes short equal parts between replacements part of them: phrases read better than confetti. A
 * part stays if it is longer than the changes on one of its sides, or has a line break or a placeholder.
 */
function withoutIslands(changes) {
  const weightBefore = (index) => Math.max(weight(changes[index - 1]), weight(changes[index - 2], changes[index - 1]));
  const weightAfter = (index) => Math.max(weight(changes[index + 1]), weight(changes[index + 2], changes[index + 1]));
  return changes.flatMap((change, index) => {
    const { op, text } = change;
    const isIsland = op === 'equal' && !/\n|\{\{/.test(text) && index > 0 && index + 1 < changes.length;
    const { length } = text.trim();
    return isIsland && length <= weightBefore(index) && length <= weightAfter(index)
      ? [
          { op: 'delete', text },
          { op: 'insert', text },
        ]
      : [change];
  });
}

/** The length of a change; of the second one of a pair only if the first one is a change, too. */
function weight(change, nearer) {
  const isChange = (it) => it !== undefined && it.op !== 'equal';
  return isChange(change) && (nearer === undefined || isChange(nearer)) ? change.text.trim().length : 0;
}

/**
 * The leaves of a document by path. Components are named by their type instead of their index, so
 * that their order does not matter: `BODY/text`, `BUTTONS/buttons/0/url`.
 * @param {unknown} document
 * @returns {Map<string, string>}
 */
export function leaves(document) {
  const found = new Map();
  const visit = (value, path) => {
    if (Array.isArray(value)) {
      const used = new Set();
      value.forEach((item, index) => visit(item, [...path, segmentOf(item, index, path.at(-1), used)]));
    } else if (value !== null && typeof value === 'object') {
      for (const [key, item] of Object.entries(value)) {
        const isName = key === 'type' && path.at(-2) !== 'buttons' && path.length > 0;
        if (!isName) visit(item, key === 'components' ? path.concat('components') : [...path, key]);
      }
    } else if (value !== null && value !== undefined) {
      found.set(path.filter((segment) => segment !== 'components').join('/'), String(value));
    }
  };
  visit(document, []);
  return found;
}

function segmentOf(item, index, list, used) {
  const type = typeof item?.type === 'string' ? item.type.toUpperCase() : '';
  if (list !== 'components' || type === '' || used.has(type)) return String(index);
  used.add(type);
  return type;
}

/**
 * Every leaf that differs, in the order of reading, with the texts of both sides.
 * @param {unknown} before
 * @param {unknown} after
 * @returns {{path: string, before: string, after: string}[]}
 */
export function changedLeaves(before, after) {
  const old = leaves(before);
  const fresh = leaves(after);
  const paths = [...new Set([...fresh.keys(), ...old.keys()])];
  return paths
    .filter((path) => old.get(path) !== fresh.get(path))
    .map((path) => ({ path, before: old.get(path) ?? '', after: fresh.get(path) ?? '' }))
    .sort((a, b) => rank(a.path) - rank(b.path));
}

const ORDER = ['name', 'language', 'category', 'HEADER', 'BODY', 'FOOTER', 'LIMITED_TIME_OFFER', 'BUTTONS', 'CAROUSEL'];

function rank(path) {
  const index = ORDER.indexOf(path.split('/')[0]);
  return index < 0 ? ORDER.length : index;
}

/**
 * The placeholders of a text, each once, in the order of appearance.
 * @param {string} text
 * @returns {string[]}
 */
export function placeholders(text) {
  const found = text.match(/\{\{\s*(?:[1-9][0-9]{0,2}|[a-z_][a-z0-9_]*)\s*\}\}/g) ?? [];
  return [...new Set(found.map((it) => it.slice(2, -2).trim()))];
}

/**
 * The placeholders that `after` has and `before` has not, and the reverse, each with its text's path.
 * @param {unknown} before
 * @param {unknown} after
 * @returns {{added: {path: string, name: string}[], removed: {path: string, name: string}[]}}
 */
export function placeholderChanges(before, after) {
  const listed = (document) =>
    [...leaves(document)]
      .filter(([path]) => /(^|\/)(text|url)$/.test(path))
      .flatMap(([path, text]) => placeholders(text).map((name) => ({ path, name })));
  const old = listed(before);
  const fresh = listed(after);
  const without = (list, other) =>
    list.filter((it) => !other.some((that) => that.path === it.path && that.name === it.name));
  return { added: without(fresh, old), removed: without(old, fresh) };
}
