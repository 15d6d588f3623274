// JSON pointers (RFC 6901) into documents, and changes that leave the original document alone.

/**
 * @param {string | string[]} pointer
 * @returns {string[]}
 */
export function parsePointer(pointer) {
  if (Array.isArray(pointer)) return pointer;
  if (pointer === '') return [];
  return pointer
    .slice(1)
    .split('/')
    .map((segment) => segment.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/**
 * @param {(string | number)[]} path
 * @returns {string}
 */
export function toPointer(path) {
  return path.map((it) => `/${String(it).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

/**
 * The value at a pointer; `undefined` if there is none.
 * @param {unknown} document
 * @param {string | string[]} pointer
 */
export function at(document, pointer) {
  let value = document;
  for (const segment of parsePointer(pointer)) {
    if (value === null || typeof value !== 'object' || !Object.hasOwn(value, segment)) return undefined;
    value = value[segment];
  }
  return value;
}

/**
 * The document with another value at the pointer. Missing owners become objects, or lists where
 * the next segment is a number.
 * @param {unknown} document
 * @param {string | string[]} pointer
 * @param {unknown} value
 */
export function setAt(document, pointer, value) {
  const [first, ...rest] = parsePointer(pointer);
  if (first === undefined) return value;
  const owner = shallowCopy(document, first);
  const next = setAt(Object.hasOwn(owner, first) ? owner[first] : undefined, rest, value);
  // Object.defineProperty: a member called `__proto__` is a member, too.
  Object.defineProperty(owner, first, { value: next, writable: true, enumerable: true, configurable: true });
  return owner;
}

/**
 * The document without the member or item at the pointer.
 * @param {unknown} document
 * @param {string | string[]} pointer
 */
export function removeAt(document, pointer) {
  const path = parsePointer(pointer);
  const key = path.at(-1);
  const owner = at(document, path.slice(0, -1));
  if (key === undefined || owner === null || typeof owner !== 'object') return document;
  const next = Array.isArray(owner)
    ? owner.filter((_, index) => String(index) !== key)
    : Object.fromEntries(Object.entries(owner).filter(([name]) => name !== key));
  return setAt(document, path.slice(0, -1), next);
}

/**
 * The document with another name for a member, in the same position.
 * @param {unknown} document
 * @param {string[]} path
 * @param {string} to
 */
export function renameAt(document, path, to) {
  const from = path.at(-1);
  const owner = at(document, path.slice(0, -1));
  const next = Object.fromEntries(Object.entries(owner).map(([key, value]) => [key === from ? to : key, value]));
  return setAt(document, path.slice(0, -1), next);
}

function shallowCopy(value, key) {
  if (Array.isArray(value)) return [...value];
  if (value !== null && typeof value === 'object') return { ...value };
  return /^(0|[1-9][0-9]*)$/.test(key) ? [] : {};
}
