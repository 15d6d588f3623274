// The template page: versions, comparison, restore, values, holds, events.

import assert from 'node:assert/strict';
import { energySupplier } from '../content.mjs';
import { openStage } from '../stage.mjs';

const { service, visitor, story } = await openStage();
const { account: lumen, mira, ids } = await energySupplier(service);
const invoice = ids['invoice_ready:en_US'];
const read = (id) => lumen.call(mira, 'GET', `/message_templates/${id}`);
const menu = async (page, action) => {
  await page.getByLabel('More actions').click();
  await page.getByRole('button', { name: action }).click();
};
const confirm = (page, action) => page.getByRole('dialog').getByRole('button', { name: action }).click();

story('versions show author and time; an older one can be shown, compared and restored', async () => {
  const { page } = await visitor(lumen, { next: `/console/templates/${invoice}` });
  const newest = page.locator('.version[data-version="2"]');
  await newest.getByText('nightly import').waitFor();
  await page.locator('.version[data-version="1"]').getByText('Jonas (review)').waitFor();
  await page.getByRole('button', { name: 'Show version 1' }).click();
  await page.locator('aside').getByTestId('proof').getByText('You do not need to do anything').waitFor();
  await page.waitForFunction(() => document.activeElement.id === 'shown-version');
  await page.getByRole('button', { name: 'Compare version 2' }).click();
  await page.locator('#compare del', { hasText: 'Hello' }).first().waitFor();
  await page.getByRole('button', { name: 'Restore version 1' }).click();
  await confirm(page, 'Restore');
  await page.locator('.version[data-version="3"]').waitFor();
  const { version, live_version: live } = await read(invoice);
  assert.deepEqual({ version, live }, { version: 3, live: 1 });
});

story('values are rendered and copied as payload and curl, without credentials', async () => {
  const jonas = await visitor(lumen, { next: `/console/templates/${invoice}` });
  const { page } = jonas;
  await jonas.context.grantPermissions(['clipboard-read', 'clipboard-write']);
  const clipboard = () => page.evaluate(() => navigator.clipboard.readText());
  const field = page.getByLabel('Body {{1}}');
  await field.fill("O'Hara");
  await page.locator('.well', { hasText: "O'Hara" }).waitFor();
  await page.getByTestId('proof').filter({ hasText: "O'Hara" }).waitFor();
  await page.getByRole('button', { name: 'Copy as curl' }).click();
  await page.getByText('Copied').first().waitFor();
  const curl = await clipboard();
  assert.ok(curl.includes("O'\\''Hara"), curl);
  for (const secret of service.secrets) assert.ok(!curl.includes(secret), 'curl contains a secret');
  await page.getByRole('button', { name: 'Copy payload' }).click();
  await page.waitForFunction(async () => (await navigator.clipboard.readText()).startsWith('{'));
  assert.equal(JSON.parse(await clipboard()).messaging_product, 'whatsapp');
  // Fields and JSON show the same values; without valid JSON there is no payload.
  const view = (name) => page.getByRole('group', { name: 'Enter values as' }).getByRole('button', { name });
  await view('JSON').click();
  const json = page.locator('#values-json');
  assert.match(await json.inputValue(), /O'Hara/);
  await json.fill('{');
  await page.getByText('This is not valid JSON').waitFor();
  assert.equal(await page.locator('.well').count(), 0);
  assert.ok(await view('Fields').isDisabled());
  await json.fill(JSON.stringify({ header: ['R-7'], body: ['Grace', 'May', '1 €', 'June 1'], buttons: { 0: 'R-7' } }));
  await page.locator('.well', { hasText: 'Grace' }).waitFor();
  await view('Fields').click();
  assert.equal(await field.inputValue(), 'Grace');
  await field.fill('');
  await page.locator('.field-error').waitFor();
  assert.equal(await field.getAttribute('aria-invalid'), 'true');
});

story('a template is paused with a reason and resumed; events tell it', async () => {
  const { page } = await visitor(lumen, { next: `/console/templates/${ids['power_outage:de']}` });
  await menu(page, 'Pause');
  await page.fill('#hold-reason', 'Too many complaints');
  await confirm(page, 'Pause');
  await page.getByText('Paused: no version may be sent').waitFor();
  await page.locator('.event', { hasText: 'Too many complaints' }).first().waitFor();
  await menu(page, 'Resume');
  await confirm(page, 'Resume');
  await page.locator('.page-head .badge', { hasText: 'Approved' }).waitFor();
});

story('an action on an outdated page is refused and the present state offered', async () => {
  const id = ids['power_outage:de'];
  const jonas = await visitor(lumen, { next: `/console/templates/${id}` });
  // The page has rendered the live version, which there is none of afterwards.
  await jonas.page.locator('.well').waitFor();
  await lumen.call(mira, 'POST', `/message_templates/${id}/review`, { decision: 'pause' });
  await menu(jonas.page, 'Disable');
  await confirm(jonas.page, 'Disable');
  await jonas.page.getByRole('alert').filter({ hasText: 'changed in the meantime' }).waitFor();
  await jonas.expectFinding(/412/);
  assert.equal((await read(id)).status, 'PAUSED');
  await jonas.page.getByRole('button', { name: 'Show the present state' }).click();
  await jonas.page.getByText('Paused: no version may be sent').waitFor();
});

story('a template is deleted after a question', async () => {
  const { page } = await visitor(lumen, { next: `/console/templates/${ids['summer_party:en_US']}` });
  await menu(page, 'Delete');
  await page.getByRole('dialog').getByText('cannot be undone').waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.textContent.trim()), 'Cancel');
  // A press that begins in the dialog and ends beside it closes nothing; a click beside it does.
  const box = await page.locator('.dialog').boundingBox();
  await page.mouse.move(box.x + 40, box.y + box.height / 2);
  await page.mouse.down();
  await page.mouse.move(10, 10);
  await page.mouse.up();
  assert.equal(await page.getByRole('dialog').count(), 1);
  await page.mouse.click(10, 10);
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await menu(page, 'Delete');
  await confirm(page, 'Delete');
  await page.getByText('summer_party is deleted').waitFor();
  await page.getByTestId('template-row').first().waitFor();
  assert.equal(await page.locator('[data-name=summer_party]').count(), 0);
});

story('an unknown template and an unknown address are explained', async () => {
  const jonas = await visitor(lumen, { next: '/console/templates/1' });
  await jonas.page.getByText('This template does not exist').waitFor();
  await jonas.expectFinding(/404/);
  const answer = await fetch(`${service.direct}/console/nowhere`);
  assert.equal(answer.status, 404);
});

story('a reader sees everything and changes nothing', async () => {
  const { page } = await visitor(lumen, { scopes: 'read', next: `/console/templates/${invoice}` });
  await page.locator('.version').first().waitFor();
  for (const name of ['Edit', 'Review']) assert.equal(await page.getByRole('link', { name, exact: true }).count(), 0, name);
  assert.equal(await page.getByLabel('More actions').count(), 0);
  assert.equal(await page.getByRole('button', { name: /^Restore/ }).count(), 0);
});
