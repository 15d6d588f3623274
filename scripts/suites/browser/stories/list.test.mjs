// The list: one row per name, search and filters in the address, keyboard, paging.

import assert from 'node:assert/strict';
import { energySupplier, shopDocument } from '../content.mjs';
import { openStage } from '../stage.mjs';

const { service, visitor, story } = await openStage();
const { account: lumen, ids } = await energySupplier(service);
const rows = (page) => page.getByTestId('template-row');
const names = (page) => rows(page).evaluateAll((found) => found.map((it) => it.dataset.name));
const until = (page, count) =>
  page.waitForFunction((n) => document.querySelectorAll('[data-testid=template-row]').length === n, count);

story('a row opens to the status of each language', async () => {
  const { page } = await visitor(lumen);
  await page.locator('[data-name=invoice_ready] button').click();
  await page.getByTestId('language-row').first().waitFor();
  const languages = await page.getByTestId('language-row').allInnerTexts();
  assert.equal(languages.length, 5);
  assert.match(languages.find((it) => it.includes('(fr)') || /\bfr\b/.test(it)), /Rejected/);
  assert.match(await page.locator('[data-name=invoice_ready]').innerText(), /footer with the opt-out/);
  // From right to left, the colon still follows its word.
  await page.evaluate(() => (document.documentElement.dir = 'rtl'));
  assert.equal(await page.locator('.rejection strong bdi').first().evaluate((it) => getComputedStyle(it).direction), 'ltr');
  await page.evaluate(() => (document.documentElement.dir = 'ltr'));
  await page.locator(`[data-id="${ids['invoice_ready:fr']}"]`).getByRole('link', { name: 'Edit again' }).click();
  await page.waitForURL(`**/console/templates/${ids['invoice_ready:fr']}/edit`);
  await page.locator('.notice', { hasText: 'footer with the opt-out' }).waitFor();
});

story('search and filters are in the address and survive a reload', async () => {
  const { page } = await visitor(lumen);
  await rows(page).first().waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('invoice');
  await page.waitForURL(/q=invoice/);
  await until(page, 1);
  // Letters typed while the address changes are kept.
  await page.keyboard.type('_ready');
  await page.waitForURL(/q=invoice_ready/);
  assert.equal(await page.inputValue('#q'), 'invoice_ready');
  await page.reload();
  await until(page, 1);
  assert.deepEqual(await names(page), ['invoice_ready']);

  // A pause after a space keeps it.
  await page.fill('#q', '');
  await page.waitForURL((url) => url.search === '');
  await page.focus('#q');
  await page.keyboard.type('stromrechnung ');
  await page.waitForURL(/q=stromrechnung$/);
  await until(page, 1);
  await page.keyboard.type('oktober');
  assert.equal(await page.inputValue('#q'), 'stromrechnung oktober');
  await page.waitForURL(/q=stromrechnung\+oktober$/);
  await page.evaluate(() => document.activeElement.blur());

  await page.keyboard.press('x');
  await page.waitForURL((url) => url.search === '');
  await page.getByRole('button', { name: 'Rejected', exact: true }).click();
  await page.waitForURL(/status=REJECTED/);
  await until(page, 2);
  await page.getByLabel('Category').selectOption('MARKETING');
  await page.waitForURL(/category=MARKETING/);
  await until(page, 1);
  assert.deepEqual(await names(page), ['winter_tariff']);
  await page.getByLabel('Language').selectOption('en_US');
  await page.waitForURL(/language=en_US/);
  await page.fill('#q', 'zzzz');
  await page.getByText('No template matches').waitFor();
  await page.getByRole('link', { name: 'Clear filters' }).click();
  await rows(page).nth(5).waitFor();
});

story('the back button finds the opened row and the place again', async () => {
  const { page } = await visitor(lumen, { height: 420 });
  await page.locator('[data-name=invoice_ready] button').click();
  const last = page.getByTestId('language-row').last();
  await last.scrollIntoViewIfNeeded();
  const before = await page.evaluate(() => scrollY);
  await last.locator('.language-link').click();
  await page.locator('.version').first().waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.tagName), 'H1');
  assert.equal(await page.evaluate(() => scrollY), 0);
  await page.goBack();
  await page.getByTestId('language-row').first().waitFor();
  await page.waitForFunction((y) => Math.abs(scrollY - y) < 5, before);
});

story('keys move along the rows, and the skip link to the content', async () => {
  const { page } = await visitor(lumen);
  await rows(page).first().waitFor();
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  const focused = () => page.evaluate(() => document.activeElement.closest('[data-name]')?.dataset.name);
  assert.equal(await focused(), (await names(page))[1]);
  await page.keyboard.press('k');
  assert.equal(await focused(), (await names(page))[0]);
  await page.reload();
  await rows(page).first().waitFor();
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.activeElement.id === 'main');
});

story('a long list is read in pages', async () => {
  const shop = service.account('Corner shop', 'v1', '15550001111');
  const token = shop.token('import');
  for (let index = 0; index < 30; index += 1) {
    await shop.call(token, 'POST', '/message_templates', shopDocument(`campaign_${index}`, `Message ${index} of our campaign.`));
  }
  const { page } = await visitor(shop);
  await until(page, 25);
  await page.getByRole('button', { name: 'Show more' }).click();
  await until(page, 30);
  assert.equal(new Set(await names(page)).size, 30);
});

story('the theme is kept in the browser', async () => {
  const { page } = await visitor(lumen);
  const theme = page.getByRole('button', { name: /^Theme/ });
  await theme.click();
  await theme.click();
  const shown = () => page.evaluate(() => document.documentElement.dataset.theme);
  assert.equal(await shown(), 'dark');
  await page.reload();
  await rows(page).first().waitFor();
  assert.equal(await shown(), 'dark');
});
