// The emulator page: texts of messages as proofs, and times of the account's clock.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { duration, fieldTime, shownTime } from '../assets/pages/emulator/clock-time.js';
import { firstMessage, phoneNumber, proofOf } from '../assets/pages/emulator/message.js';
import { formatted } from '../assets/proof/formatting.js';

/** The runs of a text as `text [styles]`. */
const shown = (text) => formatted(text).map((it) => (it.style.length ? `${it.text} [${it.style.join(', ')}]` : it.text));

test('marks around a text format it', () => {
  for (const [text, ...expected] of [
    ['*b* _i_ ~s~ `c`', 'b [bold]', ' ', 'i [italic]', ' ', 's [strike]', ' ', 'c [monospace]'],
    ['(*b*), "_i_"!', '(', 'b [bold]', '), "', 'i [italic]', '"!'],
    ['```a\n*b*```!', 'a\n*b* [monospace, block]', '!'],
    ['`*a* _b_`', '*a* _b_ [monospace]'],
    ['~*_a_*~', 'a [bold, italic, strike]'],
    ['*a _b_ c*', 'a  [bold]', 'b [bold, italic]', ' c [bold]'],
    ['*_a*_', '_a [bold]', '_'],
    ['> *a*\n- _b_', 'a [bold, quote]', '\n [quote]', 'b [italic, list]'],
    ['1. a\n2. b', '1. a\n [numbered]', '2. b [numbered]'],
    ['🎉*b*🎉', '🎉', 'b [bold]', '🎉'],
  ]) {
    assert.deepEqual(shown(text), expected, text);
  }
});

test('marks without a counterpart are text', () => {
  for (const text of ['5 * 3 * 2', 'order_id and item_id', '~30 min', 'a*b*c', '𝒜*b*', '*a', '**', '_a\nb_', '``', '``` ```', '- ', '1234. a']) {
    assert.deepEqual(shown(text), [text], text);
  }
  assert.deepEqual(formatted(''), []);
});

test('the template says what a header is; without it, an address is an attachment', () => {
  const url = 'https://shop.example/a.pdf';
  const template = (format) => ({ language: 'en_US', components: [{ type: 'HEADER', format }] });
  assert.deepEqual(proofOf({ header: url, body: 'a' }, template('DOCUMENT')).header, { format: 'DOCUMENT', media: { url } });
  assert.deepEqual(proofOf({ header: 'Berlin', body: 'a' }, template('LOCATION')).header, { format: 'LOCATION', location: { name: 'Berlin' } });
  assert.equal(proofOf({ header: url, body: 'a' }, template('TEXT')).header.format, 'TEXT');
  assert.equal(proofOf({ header: url, body: 'a' }, null).header.format, 'MEDIA');
  assert.equal(proofOf({ header: 'see https://shop.example', body: 'a' }).header.format, 'TEXT');
});

test('cards, buttons and offers are shown like those of a proof', () => {
  const template = { language: 'ar', components: [{ type: 'CAROUSEL', cards: [{ components: [{ type: 'HEADER', format: 'VIDEO' }] }] }] };
  const texts = {
    body: '*a*',
    footer: 'f*f*',
    buttons: [{ type: 'COPY_CODE', code: 'X' }, { type: 'QUICK_REPLY', text: 'Yes' }],
    offer: { text: 'Today', expiration_time_ms: 1 },
    cards: [{ header: 'https://shop.example/v', body: 'c' }],
  };
  const proof = proofOf(texts, template, 'Copy code');
  assert.equal(proof.direction, 'rtl');
  assert.deepEqual(proof.footer, [{ text: 'f*f*', style: [] }]);
  assert.deepEqual(proof.buttons.map((it) => it.text), ['Copy code', 'Yes']);
  assert.deepEqual(proof.offer, { text: 'Today', has_expiration: true });
  assert.equal(proof.cards[0].header.format, 'VIDEO');
});

test('the first calls have no credential and survive a shell', () => {
  const calls = firstMessage({ origin: 'https://galley.example', account: '17', phone: '1555' });
  assert.match(calls, /^curl -sS "https:\/\/galley\.example\/v23\.0\/17\/message_templates"/);
  assert.match(calls, /"https:\/\/galley\.example\/v23\.0\/1555\/messages"/);
  assert.equal(calls.match(/Bearer \$TOKEN/g).length, 2);
  assert.match(firstMessage({ origin: '', account: '17' }), /\$PHONE_NUMBER_ID\/messages/);
  assert.deepEqual(['15550100', 'user'].map(phoneNumber), ['+15550100', 'user']);
});

test('a clock that stands shows its time, one that runs goes on', () => {
  const clock = { now: '2026-11-17T10:00:00.000Z', readAt: 1_000 };
  const at = (seconds) => Date.parse(clock.now) + seconds * 1000;
  assert.equal(shownTime({ ...clock, follows: false }, 61_000), at(0));
  assert.equal(shownTime({ ...clock, follows: true }, 61_000), at(60));
  assert.equal(shownTime({ ...clock, follows: true }, 0), at(0));
});

test('durations have at most two units', () => {
  for (const [seconds, expected] of [[0, '0s'], [59.9, '59s'], [60, '1m'], [3_661, '1h 1m'], [90_000, '1d 1h'], [86_460, '1d'], [31_536_000, '365d']]) {
    assert.equal(duration(seconds * 1000), expected);
  }
});

test('a field for a time without one has none', () => {
  assert.equal(fieldTime(''), null);
  assert.equal(fieldTime('tomorrow'), null);
  assert.equal(fieldTime('2026-11-17T10:00:05'), new Date(2026, 10, 17, 10, 0, 5).toISOString());
});
