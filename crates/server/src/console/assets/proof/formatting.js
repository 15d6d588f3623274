// WhatsApp's formatting of a text, for messages whose texts come as they were sent. Equals the proofs of the
// service (crates/domain/src/proof/formatting.rs); the suite of the console compares both. Pure.

/** @typedef {import('../proof.js').Run} Run */

const STYLES = ['bold', 'italic', 'strike', 'monospace', 'block', 'list', 'numbered', 'quote'];
const [BOLD, ITALIC, STRIKE, MONOSPACE, BLOCK, LIST, NUMBERED, QUOTE] = STYLES.map((_, index) => 1 << index);
const LINE = LIST | NUMBERED | QUOTE;
/** Of characters that are not shown: the marks. */
const HIDDEN = 1 << STYLES.length;
const MARKS = { '*': BOLD, _: ITALIC, '~': STRIKE };
const FENCE = '```';

const isWord = (/** @type {string} */ character) => /[\p{Alphabetic}\p{N}]/u.test(character);
const isSpace = (/** @type {string} */ character) => /\p{White_Space}/u.test(character);
const isBlank = (/** @type {string} */ text) => !/\P{White_Space}/u.test(text);

/** @param {string} text @param {number} at */
const characterAt = (text, at) => (at < text.length ? String.fromCodePoint(/** @type {number} */ (text.codePointAt(at))) : '');

/** @param {string} text @param {number} at */
function characterBefore(text, at) {
  const pair = text.slice(Math.max(0, at - 2), at);
  return /^[\ud800-\udbff][\udc00-\udfff]$/.test(pair) ? pair : pair.slice(-1);
}

class Formatter {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
    this.formats = new Uint16Array(text.length);
    /** Marks that may still be closed on this line. @type {[string, number][]} */
    this.open = [];
    this.lineEnd = 0;
    let at = this.beginLine(0);
    while (at < text.length) {
      const character = text[at];
      if (character === '\n') at = this.beginLine(at + 1);
      else if (character === '`') at = this.code(at);
      else at = character in MARKS ? this.mark(character, at) : at + 1;
    }
  }

  /** @param {number} from */
  endOfLine(from) {
    const feed = this.text.indexOf('\n', from);
    return feed < 0 ? this.text.length : feed + 1;
  }

  /** Formats a list, a numbered item or a quote; returns where its text begins. @param {number} start */
  beginLine(start) {
    this.open = [];
    this.lineEnd = this.endOfLine(start);
    const line = this.text.slice(start, this.lineEnd);
    const hidden = /^[-*>] /.exec(line)?.[0].length ?? 0;
    const shown = hidden ? 0 : /^\d{1,3}\. /.exec(line)?.[0].length ?? 0;
    if (hidden + shown === 0 || isBlank(line.slice(hidden + shown))) return start;
    this.add(start, start + hidden, HIDDEN);
    this.add(start, this.lineEnd, shown ? NUMBERED : line[0] === '>' ? QUOTE : LIST);
    return start + hidden + shown;
  }

  /** @param {number} at */
  code(at) {
    const fence = this.text.startsWith(FENCE, at) ? this.text.indexOf(FENCE, at + FENCE.length) : -1;
    if (fence >= 0 && !isBlank(this.text.slice(at + FENCE.length, fence))) {
      this.between(at, fence, FENCE.length, MONOSPACE | BLOCK);
      const end = fence + FENCE.length;
      if (fence >= this.lineEnd) {
        this.open = [];
        this.lineEnd = this.endOfLine(end);
      }
      return end;
    }
    if (!this.opens('`', at)) return at + 1;
    for (let close = at + 1; close < this.lineEnd; close++) {
      if (this.text[close] !== '`' || !this.closes('`', close)) continue;
      this.between(at, close, 1, MONOSPACE);
      return close + 1;
    }
    return at + 1;
  }

  /** @param {string} mark @param {number} at */
  mark(mark, at) {
    const index = this.open.findIndex(([it]) => it === mark);
    if (index >= 0 && this.closes(mark, at)) {
      this.between(this.open[index][1], at, 1, MARKS[/** @type {keyof typeof MARKS} */ (mark)]);
      this.open.length = index;
    } else if (this.opens(mark, at)) {
      this.open = [...this.open.filter(([it]) => it !== mark), [mark, at]];
    }
    return at + 1;
  }

  /** @param {string} mark @param {number} at */
  opens(mark, at) {
    const next = characterAt(this.text, at + 1);
    return next !== '' && next !== mark && !isSpace(next) && !isWord(characterBefore(this.text, at));
  }

  /** @param {string} mark @param {number} at */
  closes(mark, at) {
    const last = characterBefore(this.text, at);
    return last !== '' && last !== mark && !isSpace(last) && !isWord(characterAt(this.text, at + 1));
  }

  /** @param {number} open @param {number} close @param {number} length of a mark @param {number} style */
  between(open, close, length, style) {
    this.add(open, open + length, HIDDEN);
    this.add(close, close + length, HIDDEN);
    this.add(open + length, close, style);
  }

  /** @param {number} start @param {number} end @param {number} format */
  add(start, end, format) {
    for (let at = start; at < end; at++) this.formats[at] |= format;
  }
}

/** The runs of a formatted text. @param {string} text @returns {Run[]} */
export function formatted(text) {
  const { formats } = new Formatter(text);
  /** @type {Run[]} */
  const runs = [];
  let current = -1;
  for (let at = 0; at < text.length; at++) {
    const format = formats[at];
    if (format & HIDDEN) continue;
    if (format !== current) runs.push({ text: '', style: STYLES.filter((_, index) => format & (1 << index)) });
    runs[runs.length - 1].text += text[at];
    current = text[at] === '\n' && format & LINE ? -1 : format;
  }
  return runs;
}

/** A text without formatting. @param {string} text @returns {Run[]} */
export const plain = (text) => [{ text, style: [] }];
