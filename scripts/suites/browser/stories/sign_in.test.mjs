// Signing in by link and by token, signing out.

import assert from 'node:assert/strict';
import { shopDocument } from '../content.mjs';
import { openStage } from '../stage.mjs';

const { service, visitor, story } = await openStage();
const shop = service.account('Corner shop', 'v1', '15550001111');
const token = shop.token('Mira');
await shop.call(token, 'POST', '/message_templates', shopDocument('order_shipped'));

story('a link signs in, once, and leaves the address and the history', async () => {
  const mira = await visitor();
  const link = shop.link();
  await mira.signIn(link);
  await mira.page.getByTestId('template-row').waitFor();
  assert.equal(new URL(mira.page.url()).hash, '');
  await mira.page.goBack();
  assert.ok(!mira.page.url().includes('link='), 'the history contains the link');

  const other = await visitor();
  await other.page.goto(service.address + link);
  assert.match(await other.page.getByRole('alert').innerText(), /used before/);
  assert.equal(new URL(other.page.url()).hash, '');
  await other.expectFinding(/401/);
});

story('a link leads to the page that was asked for, inside the console only', async () => {
  const mira = await visitor();
  await mira.page.goto(`${service.address}/console/account`);
  await mira.page.waitForURL(/\/console\/sign-in\?next=/);
  // A response that there is no session may be an error in the browser's console.
  mira.expected.push(/401/);
  await mira.signIn(shop.link(), '/console/account');
  await mira.context.clearCookies();
  const [path, fragment] = shop.link().split('#');
  await mira.page.goto(`${service.address}${path}?next=${encodeURIComponent('//elsewhere.example/')}#${fragment}`);
  await mira.page.waitForURL(`${service.address}/console/`);
});

story('a token signs in; an empty and a wrong one are explained', async () => {
  const mira = await visitor();
  await mira.open('/console/sign-in');
  const submit = mira.page.getByTestId('sign-in');
  const alert = mira.page.getByRole('alert');
  await submit.click();
  assert.match(await alert.innerText(), /Enter the access token/);
  await mira.page.fill('#token', 'gt_wrong');
  await mira.page.keyboard.press('Enter');
  await alert.filter({ hasText: 'does not exist' }).waitFor();
  await mira.expectFinding(/401/);
  assert.equal(await mira.page.inputValue('#token'), '', 'the token stays in the field');
  await mira.page.fill('#token', token.secret);
  await submit.click();
  await mira.page.getByTestId('template-row').waitFor();
});

story('a person who opens the list signed out signs in there and sees the rows', async () => {
  const mira = await visitor();
  const answers = [];
  mira.page.on('response', (it) => it.status() >= 400 && answers.push(`${it.status()} ${it.url()}`));
  await mira.open('/console');
  await mira.page.fill('#token', token.secret);
  await mira.page.getByTestId('sign-in').click();
  await mira.page.getByTestId('template-row').waitFor();
  await mira.page.getByRole('button', { name: 'Sign out' }).waitFor();
  assert.deepEqual(answers, []);
});

story('signing out that fails says so and stays', async () => {
  const mira = await visitor(shop);
  await mira.page.route('**/console/session', (route) => (route.request().method() === 'DELETE' ? route.abort() : route.continue()));
  await mira.page.getByRole('button', { name: 'Sign out' }).click();
  await mira.page.locator('.toast', { hasText: 'You are still signed in' }).waitFor();
  assert.match(mira.page.url(), /\/console\/$/);
  await mira.expectFinding(/ERR_FAILED/);
  await mira.page.unrouteAll();
  await mira.page.getByRole('button', { name: 'Sign out' }).click();
  await mira.page.getByTestId('sign-in').waitFor();
});

story('signing out ends the session in every tab', async () => {
  const mira = await visitor(shop);
  const second = await mira.tab();
  await mira.open('/console/', second);
  await mira.page.getByRole('button', { name: 'Sign out' }).click();
  await mira.page.getByTestId('sign-in').waitFor();
  // The other tab hears of it.
  await second.locator('.sign-in', { hasText: 'Your session has ended' }).waitFor();
  // It goes on with the next session.
  const [path, fragment] = shop.link().split('#');
  await mira.page.goto(`${service.address}${path}#${fragment}`);
  await mira.page.getByTestId('template-row').waitFor();
  await second.getByTestId('template-row').waitFor();
});

story('another account in one tab takes the others to its list', async () => {
  const other = service.account('Book shop', 'v1', '15550002222');
  await other.call(other.token('Ada'), 'POST', '/message_templates', shopDocument('book_arrived'));
  const mira = await visitor(shop);
  const second = await mira.tab();
  await mira.open('/console/account', second);
  await second.locator('.bar-account', { hasText: 'Corner shop' }).waitFor();
  const [path, fragment] = other.link().split('#');
  await mira.page.goto(`${service.address}${path}#${fragment}`);
  // The link does not end the present session unasked.
  await mira.page.locator('.sign-in', { hasText: 'You are signed in to Corner shop' }).waitFor();
  await mira.page.getByTestId('replace').click();
  await mira.page.locator('[data-name=book_arrived]').waitFor();
  await second.locator('[data-name=book_arrived]').waitFor();
  assert.match(second.url(), /\/console\/$/);
  assert.equal(await second.locator('.bar-account').innerText(), 'Book shop');
});
