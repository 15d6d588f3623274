// Documents for the comparison with `galley lint`: the examples of the repository, and many that are
// wrong in various ways. They are the same in each run.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const EXAMPLES = join(import.meta.dirname, '../../../examples');

const TEXTS = [
  ...['', ' ', 'Hello', 'Hello {{1}}', '{{1}} hi', 'Hi {{ 2 }} there', 'Hi {{3}} and {{1}} there my friend'],
  ...['a\u0007b', '*b* _i_ 😀', 'x'.repeat(1100), '{{', 'Hi {{name}} ok then you', 'مرحبا {{1}}'],
  ...[null, 7, [], {}],
];
const NAMES = ['ok_name', 'ok_name', 'Bad Name', '', ' x', 'x'.repeat(600), 5, null];
const LANGUAGES = ['en_US', 'de', 'en-us', 'xx_YY', '', 3];
const CATEGORIES = ['UTILITY', 'marketing', 'AUTHENTICATION', 'X', undefined];
const URLS = ['https://a.example/{{1}}', 'a.example', 'https://', 'https://a.example/x y', 7];
const EXAMPLE_VALUES = [
  undefined,
  { body_text: [['a']] },
  { body_text: ['a'] },
  { body_text: [['a', 'b', 'c']] },
  { header_text: ['x'] },
  { exmaple: 1 },
  'x',
  { media_url: 'ftp://x' },
  { media_url: 'https://a.example/b.jpg' },
  { header_handle: ['4::x'] },
  { body_text_named_params: [{ param_name: 'name', example: 'x' }] },
];

/** A linear congruential generator. */
function generator(seed) {
  let state = seed;
  const below = (count) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    // The low bits repeat soon.
    return Math.floor(state / 65_536) % count;
  };
  return { below, pick: (list) => list[below(list.length)] };
}

function button({ pick }) {
  return pick([
    () => ({ type: 'QUICK_REPLY', text: pick(TEXTS) }),
    () => ({ type: 'URL', text: 'Go', url: pick(URLS), example: pick([undefined, 'x', ['x'], ['x', 'y']]) }),
    () => ({ type: 'PHONE_NUMBER', text: 'Call', phone_number: pick(['+15550001111', '0', 'abc', 1555]) }),
    () => ({ type: 'COPY_CODE', example: pick(['A1', '', undefined, ['X']]) }),
    () => ({ type: 'OTP', otp_type: pick(['COPY_CODE', 'ONE_TAP', 'ZERO_TAP', 'X']) }),
    () => ({ type: 'FLOW', text: 'f' }),
    () => ({ type: 'NOPE' }),
    () => ({ type: 'CATALOG' }),
    () => 3,
  ])();
}

function component(random) {
  const { below, pick } = random;
  const formats = ['TEXT', 'MEDIA', 'IMAGE', 'LOCATION', 'X', undefined];
  const card = () => ({
    components: [
      { type: 'HEADER', format: 'IMAGE', example: { header_handle: [pick(['', '4::x'])] } },
      { type: 'BODY', text: pick(TEXTS), example: pick(EXAMPLE_VALUES) },
      { type: 'BUTTONS', buttons: [button(random)] },
    ],
  });
  return pick([
    () => ({ type: 'HEADER', format: pick(formats), text: pick(TEXTS), example: pick(EXAMPLE_VALUES) }),
    () => ({ type: 'BODY', text: pick(TEXTS), example: pick(EXAMPLE_VALUES) }),
    () => ({ type: 'body', text: 'Hello dear {{1}}, how are you today?', example: { body_text: [['Ada']] } }),
    () => ({ type: 'FOOTER', text: pick(TEXTS) }),
    () => ({ type: 'BUTTONS', buttons: Array.from({ length: below(4) }, () => button(random)) }),
    () => ({ type: 'CAROUSEL', cards: [card(), { components: [] }] }),
    () => ({ type: 'LIMITED_TIME_OFFER', limited_time_offer: { text: pick(TEXTS) } }),
    () => ({ type: 'WHAT' }),
    () => 5,
  ])();
}

function document(random, rulebook) {
  const { below, pick } = random;
  const components = below(6)
    ? Array.from({ length: 1 + below(5) }, () => component(random))
    : pick([[], {}, undefined]);
  return {
    name: pick(NAMES),
    language: pick(LANGUAGES),
    category: pick(CATEGORIES),
    allow_category_change: pick([true, false, 'yes', undefined]),
    components,
    ...(rulebook === 'whatsapp' && below(3) === 0 ? { parameter_format: pick(['NAMED', 'POSITIONAL', 'x']) } : {}),
  };
}

/** At least `count` documents as JSON texts, all different. @param {'v1'|'whatsapp'} rulebook */
export function documents(rulebook, count) {
  const examples = readdirSync(EXAMPLES)
    .filter((it) => it.endsWith('.json'))
    .map((it) => JSON.stringify(JSON.parse(readFileSync(join(EXAMPLES, it), 'utf8'))));
  const all = new Set([...examples, 'null', '3', '"x"', '{"name":"a","name":"b"}']);
  const random = generator(rulebook === 'v1' ? 11 : 12);
  while (all.size < count) all.add(JSON.stringify(document(random, rulebook)));
  return [...all];
}
