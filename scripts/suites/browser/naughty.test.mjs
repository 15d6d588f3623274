// Naughty strings in every field of every screen: nothing runs.

import assert from 'node:assert/strict';
import { settled } from './browser.mjs';
import { openStage } from './stage.mjs';

const RUN = 'window.ran=1';
/** Each would set `window.ran`, open a dialog, or break out of its place if it were not text. */
const STRINGS = [
  `<script>${RUN}</script>`,
  `"><img src=x onerror=${RUN}>`,
  `'><svg/onload=${RUN}>`,
  `</textarea></title></style><script>${RUN}</script>`,
  `javascript:${RUN}`,
  `" autofocus onfocus="${RUN}" x="`,
  `\${${RUN}} \`\${${RUN}}\` #{${RUN}}`,
  '{{constructor.constructor("window.ran=1")()}}',
  '<?lit$123456789$?> {{lit-0123456789}} lit$0123456789$ <!--?lit$-->',
  '\u202Eevitceffe\u202C \u2066isolated\u2069 \u200Bzero\u200D\uFEFF',
  '👩‍👩‍👧‍👦🏳️‍🌈 Z̮̞̠͙͔ͅḀ̗̞͈̻̗Ḷ͙͎̯̹̞͓G̻O̭̗̮',
  `long${'word'.repeat(200)}`,
  'null undefined NaN true __proto__ [object Object]',
  "'; DROP TABLE templates; -- &lt;b&gt; &#x3C;script&#x3E; %3Cscript%3E",
];
const ALL = STRINGS.join(' ').slice(0, 900);

const { service, visitor, story } = await openStage();
const account = service.account(`<img src=x onerror=${RUN}>`, 'whatsapp', '15550001111');
const author = account.token(`"><script>${RUN}</script>`);

/** Templates whose every text is a naughty string, in every status, with reasons and versions. */
async function store() {
  const ids = [];
  for (const [index, text] of STRINGS.entries()) {
    // Without what only bodies may contain.
    const short = [...text.replaceAll(/[^ -~\u200B-\u206F]|[{}*_~`]/gu, ' ').trim()].slice(0, 20).join('').trim();
    const document = {
      name: `naughty_${index}`,
      language: 'en_US',
      category: 'MARKETING',
      components: [
        { type: 'HEADER', format: 'TEXT', text: `Header ${short}` },
        { type: 'BODY', text: `Hello {{1}}, ${text.replaceAll(/[{}]/g, ' ')} and good bye.`, example: { body_text: [[text.replaceAll('\n', ' ')]] } },
        { type: 'FOOTER', text: `Footer ${short}` },
        { type: 'BUTTONS', buttons: [{ type: 'QUICK_REPLY', text: short || 'x' }, { type: 'COPY_CODE', example: 'CODE1' }] },
      ],
    };
    const { id } = await account.call(author, 'POST', '/message_templates', document);
    const decide = (decision, reason) => account.call(author, 'POST', `/message_templates/${id}/review`, { decision, reason });
    if (index % 3 === 0) await decide('reject', text);
    if (index % 3 === 1) {
      await decide('approve');
      await decide('pause', text);
    }
    if (index % 2 === 0) {
      const [, body] = document.components;
      await account.call(author, 'PATCH', `/message_templates/${id}`, { components: [{ ...body, text: `Dear {{1}}, ${body.text.slice(13)}` }] });
    }
    ids.push(id);
  }
  await account.call(author, 'POST', '/webhooks', { url: `http://127.0.0.1:9/?q=${encodeURIComponent(STRINGS.slice(0, 6).join(' '))}` });
  return ids;
}

/** A live template, whose page has a field for each value. */
async function storeLive() {
  const document = {
    name: 'naughty_live',
    language: 'en_US',
    category: 'MARKETING',
    components: [
      { type: 'HEADER', format: 'TEXT', text: 'Header {{1}}', example: { header_text: ['x'] } },
      { type: 'BODY', text: 'Hello {{1}}, here is {{2}} and good bye.', example: { body_text: [['x', 'y']] } },
      { type: 'BUTTONS', buttons: [{ type: 'URL', text: 'Open', url: 'https://shop.example/{{1}}', example: ['https://shop.example/x'] }, { type: 'COPY_CODE', example: 'CODE1' }] },
    ],
  };
  const { id } = await account.call(author, 'POST', '/message_templates', document);
  await account.call(author, 'POST', `/message_templates/${id}/review`, { decision: 'approve' });
  return id;
}

/** Refused requests are lines in the browser's console; nothing else may be. */
function onlyRefusals(someone) {
  someone.findings = someone.findings.filter((it) => !/status of (400|401|404|409|422)/.test(it));
  someone.assertNoFindings();
}

async function assertNothingRan(someone) {
  assert.equal(await someone.page.evaluate(() => window.ran), undefined, someone.page.url());
  const foreign = await someone.page.evaluate(() => document.querySelectorAll('main script, main iframe, main img[src=x], main [onerror], main [onload], main [onfocus]').length);
  assert.equal(foreign, 0, `${someone.page.url()} contains foreign elements`);
  onlyRefusals(someone);
}

const ids = await store();
const live = await storeLive();

story('naughty strings that are stored run nowhere', async () => {
  const mira = await visitor(account);
  for (const path of ['/console/', '/console/?status=REJECTED', '/console/account']) {
    await mira.open(path);
    await assertNothingRan(mira);
  }
  for (const id of ids) {
    for (const path of [`/console/templates/${id}`, `/console/review/${id}`, `/console/templates/${id}/edit`]) {
      await mira.open(path);
      await assertNothingRan(mira);
    }
  }
  await mira.open(`/console/new?from=${ids[0]}`);
  await mira.page.getByRole('radio', { name: 'JSON' }).check();
  await mira.page.locator('#json-text').waitFor();
  await assertNothingRan(mira);
});

/** Fills every text field that is visible with a string, and waits for what the page makes of it. */
async function fillAll(someone, text) {
  const fields = someone.page.locator(
    'textarea:visible, input:visible:not([type=radio]):not([type=checkbox]):not([type=number]):not([type=datetime-local]):not([disabled]):not([readonly])',
  );
  let filled = 0;
  // Fields come and go when others change, so they are counted again and again.
  while (filled < (await fields.count())) {
    await fields.nth(filled).fill(text);
    filled += 1;
    await someone.page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
  }
  await settled(someone.page);
  await assertNothingRan(someone);
  return filled;
}

/** Screen, path, the least number of fields, what leads to them. */
const SCREENS = [
  ['list', '/console/', 1],
  ['editor', '/console/new', 20, async (page) => {
    await page.getByRole('radio', { name: 'Text', exact: true }).check();
    await page.getByRole('button', { name: 'Add a footer' }).click();
    for (const type of ['QUICK_REPLY', 'URL', 'PHONE_NUMBER', 'COPY_CODE', 'FLOW', 'OTP']) {
      await page.selectOption('#f-components-new', type);
      await page.click('#f-components-add');
    }
    await page.getByRole('button', { name: 'Add an offer' }).click();
    await page.getByRole('button', { name: 'Add a carousel' }).click();
    await page.locator('#part-cards').waitFor();
  }],
  ['JSON view', '/console/new', 1, async (page) => {
    await page.getByRole('radio', { name: 'JSON' }).check();
    await page.locator('#json-text').waitFor();
  }],
  ['review', `/console/review/${ids[2]}`, 1],
  // Header, body twice, the end of the URL, the code.
  ['template', `/console/templates/${live}`, 5, async (page) => page.getByLabel('Body {{2}}').waitFor()],
  ['hold dialog', `/console/templates/${ids[5]}`, 1, async (page) => {
    await page.getByLabel('More actions').click();
    await page.getByRole('button', { name: 'Disable' }).click();
  }],
  ['endpoint dialog', '/console/account', 1, async (page) => page.getByRole('button', { name: 'Add an endpoint' }).click()],
];

for (const [name, path, least, act] of SCREENS) {
  story(`naughty strings that are typed run nowhere: ${name}`, async () => {
    const mira = await visitor(account);
    await mira.open(path);
    if (act) await act(mira.page);
    // The editor has some thirty fields, so they get all strings at once.
    for (const text of name === 'editor' ? [ALL] : STRINGS) {
      const filled = await fillAll(mira, text);
      assert.ok(filled >= least, `${name} has ${filled} fields`);
    }
    await mira.page.evaluate(() => localStorage.clear());
  });
}

story('naughty strings in the address run nowhere', async () => {
  const mira = await visitor(account);
  for (const text of STRINGS) {
    const value = encodeURIComponent(text);
    for (const path of [`/console/?q=${value}&status=${value}&language=${value}&dir=${value}`, `/console/new?from=${value}&language_of=${value}`]) {
      await mira.open(path);
      await assertNothingRan(mira);
    }
  }
  const stranger = await visitor();
  for (const text of STRINGS) {
    await stranger.page.goto(`${service.address}/console/sign-in?next=${encodeURIComponent(text)}#link=${encodeURIComponent(text)}`);
    await stranger.page.getByRole('alert').waitFor();
    await stranger.page.fill('#token', text.slice(0, 200));
    await stranger.page.getByTestId('sign-in').click();
    await settled(stranger.page);
    await assertNothingRan(stranger);
  }
});
