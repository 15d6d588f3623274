// The account page: webhooks with deliveries and replay, credentials, audit.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after } from 'node:test';
import { shopDocument } from '../content.mjs';
import { openStage } from '../stage.mjs';

const { service, visitor, story } = await openStage();
const shop = service.account('Corner shop', 'v1', '15550001111');
const token = shop.token('nightly import');

const received = [];
const receiver = createServer((request, response) => {
  received.push(request.url);
  request.resume();
  response.writeHead(204).end();
});
await new Promise((resolve) => receiver.listen(0, '127.0.0.1', resolve));
after(() => {
  receiver.closeAllConnections();
  receiver.close();
});
const hooks = `http://127.0.0.1:${receiver.address().port}`;

const dialog = (page) => page.getByRole('dialog');

story('an endpoint is registered, its secret shown once, deliveries shown and replayed', async () => {
  const mira = await visitor(shop, { next: '/console/account' });
  const { page } = mira;
  await page.getByRole('button', { name: 'Add an endpoint' }).click();
  await page.fill('#hook-url', 'not a url');
  await page.getByRole('button', { name: 'Register' }).click();
  await dialog(page).getByRole('alert').waitFor();
  await mira.expectFinding(/422/);
  await page.fill('#hook-url', `${hooks}/galley`);
  await page.getByRole('button', { name: 'Register' }).click();
  await page.getByText('Signing secret').waitFor();
  const secret = service.secret((await dialog(page).innerText()).match(/whsec_[\w+/=]+/)?.[0]);
  // It is shown once, so a click beside the dialog does not close it.
  await page.mouse.click(10, 10);
  assert.equal(await dialog(page).count(), 1);
  await page.getByRole('button', { name: 'Done' }).click();
  await dialog(page).waitFor({ state: 'detached' });
  assert.ok(!(await page.content()).includes(secret), 'the secret is still in the page');

  await shop.call(token, 'POST', '/message_templates', shopDocument('order_shipped'));
  const hook = page.getByTestId('webhook');
  const shown = async () => {
    const button = hook.getByRole('button', { name: /deliveries/ });
    if (/Hide/.test(await button.innerText())) await button.click();
    await hook.getByRole('button', { name: 'Show deliveries' }).click();
    await hook.getByText(/template\.created|No deliveries/).first().waitFor();
    return hook.getByTestId('delivery').filter({ hasText: 'Delivered' }).count();
  };
  while ((await shown()) === 0) await page.waitForLoadState('networkidle');
  assert.deepEqual(received, ['/galley']);
  await hook.getByTestId('delivery').first().getByRole('button').click();
  await page.getByText('1 event is sent again').waitFor();
});

story('an endpoint is disabled, enabled, gets a new secret, and is deleted', async () => {
  const { page } = await visitor(shop, { next: '/console/account' });
  const hook = page.getByTestId('webhook');
  await hook.getByRole('button', { name: 'Disable' }).click();
  await hook.getByText('switched off').waitFor();
  await hook.getByRole('button', { name: 'Enable' }).click();
  await hook.getByText('Active').waitFor();
  await hook.getByRole('button', { name: 'Rotate secret' }).click();
  await dialog(page).getByRole('button', { name: 'Rotate secret' }).click();
  await page.getByText('Signing secret').waitFor();
  service.secret((await dialog(page).innerText()).match(/whsec_[\w+/=]+/)?.[0]);
  await page.getByRole('button', { name: 'Done' }).click();
  await hook.getByRole('button', { name: 'Delete' }).click();
  await dialog(page).getByRole('button', { name: 'Delete' }).click();
  await page.getByText('No endpoint yet').waitFor();
});

story('credentials show names, scopes and last use, and no secret', async () => {
  const { page } = await visitor(shop, { next: '/console/account' });
  const row = page.locator('tr', { hasText: 'nightly import' }).first();
  await row.waitFor();
  assert.match(await row.innerText(), /read/);
  const content = await page.content();
  for (const secret of service.secrets) assert.ok(!content.includes(secret), 'the page contains a secret');
});

story('a session without the scopes says which scope is missing', async () => {
  const { page } = await visitor(shop, { scopes: 'read', next: '/console/account' });
  await page.getByText('the scope “webhooks”').waitFor();
  await page.getByText('the scope “credentials”').waitFor();
});
