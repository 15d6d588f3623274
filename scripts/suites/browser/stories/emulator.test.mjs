// The emulator page: inbox, clock, rules and faults, and who may use it.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { formatted } from '../../../../crates/server/src/console/assets/proof/formatting.js';
import { settled } from '../browser.mjs';
import { openStage } from '../stage.mjs';

const { service, visitor, story } = await openStage();
const account = service.emulator('Sandbox', '15550001111');
const token = account.token('pipeline');
const PAGE = '/console/emulator';
const run = promisify(execFile);

const create = (name) => {
  const components = [{ type: 'BODY', text: 'Hello *dear* friend.' }];
  return account.call(token, 'POST', '/message_templates', { name, language: 'en_US', category: 'UTILITY', components });
};
const template = (name) => ({ name, language: { code: 'en_US' } });
const status = async (id) => (await account.call(token, 'GET', `/message_templates/${id}`)).status;

story('the inbox explains how to send, then shows what is sent, and leads to the template', async () => {
  const { page } = await visitor(account, { next: PAGE });
  await page.getByText('No message yet').waitFor();
  const calls = await page.getByLabel('Calls that send a first message').innerText();
  for (const secret of service.secrets) assert.ok(!calls.includes(secret), 'the call contains a secret');
  await run('bash', ['-c', calls], { env: { ...process.env, TOKEN: token.secret } });
  await page.getByTestId('message').getByText('Hello from the emulator!').waitFor();

  const { id } = await create('greeting');
  await account.send(token, '+1 555 0101', template('greeting'));
  // The page reads the messages by itself; three seconds later, this one has been read.
  const message = page.getByTestId('message').filter({ hasText: '+15550101' });
  await message.waitFor();
  assert.equal(await message.locator('.proof-bubble strong').innerText(), 'dear');
  assert.equal(await message.locator('.proof-bubble').innerText(), 'Hello dear friend.');
  await message.locator('[data-status=read]').waitFor();
  await message.getByRole('link', { name: 'greeting' }).click();
  await page.waitForURL(`**/templates/${id}`);
});

story('older messages follow on demand, and newer ones come before them', async () => {
  for (let index = 0; index < 24; index += 1) await account.send(token, `1555020${index}`, template('greeting'));
  const { page } = await visitor(account, { next: PAGE });
  const message = page.getByTestId('message');
  await message.nth(19).waitFor();
  assert.equal(await message.count(), 20);
  await page.getByRole('button', { name: 'Show more' }).click();
  await message.nth(25).waitFor();
  assert.equal(await page.getByRole('button', { name: 'Show more' }).count(), 0);
  await account.send(token, '15550300', template('greeting'));
  await message.nth(26).waitFor();
  assert.match(await message.first().innerText(), /\+15550300/);
  assert.match(await message.last().innerText(), /\+15550100/);
});

story('a message of a deleted template keeps its name, and nothing asks for the template', async () => {
  const { id } = await create('farewell');
  await account.send(token, '15550150', template('farewell'));
  await account.call(token, 'DELETE', `/message_templates/${id}`);
  const { page } = await visitor(account);
  const asked = [];
  page.on('request', (request) => request.url().includes(id) && asked.push(request.url()));
  await page.getByRole('link', { name: 'Emulator' }).click();
  const message = page.getByTestId('message').filter({ hasText: '+15550150' });
  await message.getByText('farewell (deleted)').waitFor();
  assert.equal(await message.locator('.proof-bubble').innerText(), 'Hello dear friend.');
  await settled(page);
  assert.deepEqual(asked, []);
});

story('the clock moves a template from PENDING to APPROVED, stands, and runs on', async () => {
  const { id } = await create('order_pending_10m');
  assert.equal(await status(id), 'PENDING');
  const mira = await visitor(account, { next: PAGE });
  const { page } = mira;
  const result = page.getByTestId('clock-result');
  await page.locator('.clock-time').getByText('Runs').waitFor();
  await page.getByRole('button', { name: '+1 m', exact: true }).click();
  await result.getByText('No step of the script was due').waitFor();
  await page.locator('.clock-time').getByText('Stands').waitFor();
  assert.equal(await status(id), 'PENDING');
  await page.getByRole('button', { name: '+10 m' }).click();
  await result.getByText('1 step of the script applied').waitFor();
  assert.equal(await status(id), 'APPROVED');
  await page.getByRole('button', { name: 'Let it run' }).click();
  await page.locator('.clock-time').getByText('Runs').waitFor();
  await page.getByRole('link', { name: 'Templates', exact: true }).click();
  await page.locator('[data-name=order_pending_10m]').getByText('Approved').waitFor();
});

story('what is wrong with a change of the clock is shown at its field', async () => {
  const mira = await visitor(account, { next: PAGE });
  const { page } = mira;
  const field = (name) => page.locator(`#clock-${name}`);
  await field('advance').fill('soon');
  await field('advance').press('Enter');
  await page.locator('#clock-advance-error').getByText('is not a duration').waitFor();
  await mira.expectFinding(/422/);
  assert.equal(await field('advance').getAttribute('aria-invalid'), 'true');
  await field('advance').fill('1h30m');
  await field('advance').press('Enter');
  await page.locator('.clock-time').getByText('Stands').waitFor();
  assert.equal(await field('advance').inputValue(), '');

  await field('set').press('Enter');
  await page.locator('#clock-set-error').getByText('Enter a date and a time').waitFor();
  await field('set').fill('2020-02-02T10:00:00');
  await field('set').press('Enter');
  await page.locator('#clock-set-error').getByText('never moves back').waitFor();
  await mira.expectFinding(/409/);
  const { now } = await account.call(token, 'GET', '/emulator/clock');
  const later = new Date(Date.parse(now) + 60_000).toISOString().slice(0, 19);
  await field('set').fill(later);
  await field('set').press('Enter');
  await page.locator(`[data-testid=clock][datetime="${later}.000Z"]`).waitFor();
  assert.equal(await page.locator('#clock-set-error').count(), 0);
});

story('rules are shown, faults are shown and deleted', async () => {
  const rules = [{ name: 'promo_*', outcome: 'reject', reason: 'PROMOTIONAL' }, { category: 'MARKETING', after: '2h', outcome: 'pause' }];
  await account.call(token, 'PUT', '/emulator/rules', { rules });
  const fault = (document) => account.call(token, 'POST', '/emulator/faults', document);
  await fault({ call: 'send', name: 'promo_*', times: 3, kind: 'error', code: 131049 });
  await fault({ call: 'webhook', share: 0.25, kind: 'duplicate' });
  const { page } = await visitor(account, { next: PAGE });
  const [first, second] = [page.getByTestId('rule').nth(0), page.getByTestId('rule').nth(1)];
  await first.getByText('promo_*').waitFor();
  assert.match(await first.innerText(), /reject PROMOTIONAL, at once/);
  assert.match(await second.innerText(), /Marketing[^]*pause, after 2h/);
  const faults = page.getByTestId('fault');
  await faults.nth(1).waitFor();
  assert.match(await faults.nth(0).innerText(), /#1 send error 131049[^]*promo_\* · 0 of 3/);
  assert.match(await faults.nth(1).innerText(), /#2 webhook duplicate[^]*25% of calls/);
  await page.getByRole('button', { name: 'Delete fault 1' }).click();
  await page.getByText('Fault 1 is deleted').waitFor();
  await faults.nth(1).waitFor({ state: 'detached' });
  await page.locator('#faults-title:focus').waitFor();
  assert.equal((await account.call(token, 'GET', '/emulator/faults')).data.length, 1);
  await page.getByRole('button', { name: 'Delete all' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete all' }).click();
  await page.getByText('No faults').waitFor();
  assert.deepEqual((await account.call(token, 'GET', '/emulator/faults')).data, []);
  await account.call(token, 'PUT', '/emulator/rules', { rules: [] });
});

story('a reader without the scope sees which one is missing, and nothing is asked', async () => {
  const mira = await visitor(account, { scopes: 'read' });
  const asked = [];
  mira.page.on('request', (request) => /\/emulator\//.test(request.url()) && asked.push(request.url()));
  await mira.page.getByRole('link', { name: 'Emulator' }).click();
  await mira.page.getByText('the scope “emulator”').waitFor();
  await settled(mira.page);
  assert.deepEqual(asked.filter((it) => it.includes('/console/api/')), []);
});

story('a normal account has no such page in its navigation', async () => {
  const shop = service.account('Corner shop', 'v1', '15550002222');
  const { page } = await visitor(shop, { scopes: 'read,emulator' });
  assert.equal(await page.getByRole('link', { name: 'Emulator' }).count(), 0);
  await page.goto(service.address + PAGE);
  await page.getByText('This account is not an emulator').waitFor();
});

story('texts of messages are formatted like proofs', async () => {
  for (const text of [
    '*b* _i_ ~s~ `c`, (*b*) "_i_"!',
    'x ```a\n*b*``` z ``` ``` `` `a` `*a*`',
    '~*_a_*~ *a _b_ c* *_a*_ **x** *a **b*',
    '> *a*\n- _b_\n* c\n1. d\n12. *e*\n1234. f\n- \n>x\n  - y',
    '5 * 3 * 2, order_id and item_id, ~30 min, a*b*c, *a\nb*',
    '🎉*b*🎉 𝒜*b* *b*𝒜 é*b* ½*b* *\u00a0b* *\ufeffb* مرحبا *b*،',
    '_*a*_b *_a_* ~`x`~ `~x~` ```*a*``` *```a```*',
  ]) {
    const document = { name: 'formats', language: 'en_US', category: 'UTILITY', components: [{ type: 'BODY', text }] };
    const proof = await account.call(token, 'POST', '/message_templates/proof', { document });
    assert.deepEqual(formatted(text), proof.body, text);
  }
});
