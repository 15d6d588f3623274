// The queue when its first page is read again. Pure.

/**
 * Puts a newly read first page before what was read behind it. Items that the page has passed were decided.
 * @template {{id: string}} Item
 * @param {{items: Item[], after: string | undefined}} known in the order of the service
 * @param {{items: Item[], after: string | undefined}} first
 * @returns {{items: Item[], after: string | undefined}}
 */
export function mergeFirstPage(known, first) {
  if (first.after === undefined) return first;
  const read = new Set(first.items.map((it) => it.id));
  const last = known.items.findLastIndex((it) => read.has(it.id));
  const behind = last < 0 ? [] : known.items.slice(last + 1);
  return behind.length === 0 ? first : { items: [...first.items, ...behind], after: known.after };
}
