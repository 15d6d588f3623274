// An account that is connected to a provider: what differs there, and who may decide about it. The provider is a faithful
// emulator account of the same service.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { axe } from '../browser.mjs';
import { ALL_SCOPES, until } from '../service.mjs';
import { openStage } from '../stage.mjs';

const { service, visitor, story } = await openStage({
  GALLEY_SECRET_KEY: 'the secret key of these stories',
  GALLEY_UPSTREAM_ALLOW_PRIVATE: 'true',
});
const provider = service.emulator('Lumen abroad', '15550002222', '--faithful');
service.cli('account', 'limit', provider.id, 'none');
const there = provider.token('shop');
const account = service.account('Shop', 'whatsapp', '15550001111');
service.cli('account', 'change', account.id, '--review', 'auto');
const SCOPES = `${ALL_SCOPES},upstream`;
const token = account.token('pipeline', SCOPES);

const document_ = (name, text) => ({ name, language: 'en_US', category: 'UTILITY', components: [{ type: 'BODY', text }] });
const read = (id) => account.call(token, 'GET', `/message_templates/${id}`);
const importAll = () => service.cli('upstream', 'import', account.id, '--yes');

/** Creates a template at the provider, imports it and edits it there. */
async function drifted(name) {
  const { id: remote } = await provider.call(there, 'POST', '/message_templates', document_(name, 'Your order is here.'));
  await provider.call(there, 'POST', '/emulator/clock', { advance: '1d' });
  importAll();
  const { components } = document_(name, 'Your order has arrived today.');
  await provider.call(there, 'PATCH', `/message_templates/${remote}`, { components });
  await provider.call(there, 'POST', '/emulator/clock', { advance: '1d' });
  importAll();
  const { data } = await account.call(token, 'GET', `/message_templates?name=${name}`);
  assert.equal(data[0].upstream.state, 'drifted');
  return data[0].id;
}

const file = join(service.work, 'token');
writeFileSync(file, there.secret, { mode: 0o600 });
const address = ['--base-url', `${service.direct}/v23.0`, '--waba', provider.id, '--token-file', file];
service.cli('upstream', 'connect', account.id, ...address);
const connection = () => account.call(token, 'GET', '/upstream').catch(() => null);
await until(connection, 5_000, 'the service knows the connection');

story('both contents of a drifted template are shown, and the one of the provider is accepted', async () => {
  const id = await drifted('arrival');
  const { page } = await visitor(account, { scopes: SCOPES });
  await page.getByTestId('template-row').filter({ hasText: 'arrival' }).getByText('drifted').waitFor();
  await page.getByRole('link', { name: /arrival/ }).click();
  const card = page.getByTestId('upstream');
  await card.locator('[data-upstream=drifted]').waitFor();
  const sides = card.getByTestId('upstream-sides');
  await sides.getByText('Your order is here.').waitFor();
  await sides.getByText('Your order has arrived today.').waitFor();
  assert.match(await card.locator('ins').first().innerText(), /has/);
  assert.deepEqual(await axe(page), []);
  await card.getByTestId('upstream-accept').click();
  await page.getByRole('dialog').getByRole('button', { name: 'Accept' }).click();
  await card.locator('[data-upstream=synced]').waitFor();
  const template = await read(id);
  assert.equal(template.version, 2);
  assert.equal(template.components[0].text, 'Your order has arrived today.');
});

story('the own content of a drifted template is pushed, and the account page shows the operation', async () => {
  const id = await drifted('departure');
  const { page } = await visitor(account, { scopes: SCOPES, next: `/console/templates/${id}` });
  const card = page.getByTestId('upstream');
  await card.getByTestId('upstream-push').click();
  await page.getByRole('dialog').getByRole('button', { name: 'Push' }).click();
  await card.locator('[data-upstream=drifted]').waitFor({ state: 'detached' });
  await page.getByRole('link', { name: 'Account' }).click();
  const operation = page.getByTestId('operation').filter({ hasText: 'departure' });
  await operation.first().getByText('Edit').waitFor();
  await page.getByText('Connected', { exact: true }).first().waitFor();
  assert.deepEqual(await axe(page), []);
});

story('without the scope, the state is shown and nothing can be done about it', async () => {
  const id = await drifted('delay');
  const { page } = await visitor(account, { scopes: 'read', next: `/console/templates/${id}` });
  const card = page.getByTestId('upstream');
  await card.locator('[data-upstream=drifted]').waitFor();
  await card.getByText('sign in with a token that has the scope').waitFor();
  assert.equal(await card.getByRole('button').count(), 0);
});
