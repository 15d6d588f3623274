// Groups the runs of a proof into blocks. Pure.

/** @typedef {import('../proof.js').Run} Run */

const BLOCKS = ['list', 'numbered', 'quote', 'block'];

/**
 * Groups runs into blocks: lines of one kind that follow each other. Texts keep their line feeds: the
 * last one of a paragraph shows no line of its own, as `white-space: pre-wrap` has it.
 * @param {Run[]} runs
 * @returns {{kind: string, lines: Run[][]}[]}
 */
export function blocks(runs) {
  const result = [];
  let isLineStart = true;
  for (const run of runs) {
    const kind = BLOCKS.find((it) => run.style.includes(it)) ?? 'text';
    const pieces = kind === 'text' || kind === 'block' ? [run.text] : run.text.split(/(?<=\n)/);
    for (const text of pieces) {
      const last = result.at(-1);
      const piece = { ...run, text: kind === 'text' || kind === 'block' ? text : text.replace(/\n$/, '') };
      if (last?.kind !== kind) result.push({ kind, lines: [[piece]] });
      else if (isLineStart && kind !== 'text' && kind !== 'block') last.lines.push([piece]);
      else last.lines.at(-1).push(piece);
      isLineStart = text.endsWith('\n');
    }
  }
  return result;
}
