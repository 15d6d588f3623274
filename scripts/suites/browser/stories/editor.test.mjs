// The editor: errors fixed one by one, drafts, JSON, conflicts, languages.

import assert from 'node:assert/strict';
import { shownViolations } from '../browser.mjs';
import { energySupplier, shopDocument } from '../content.mjs';
import { openStage } from '../stage.mjs';

const { service, visitor, story } = await openStage();
const shop = service.account('Corner shop', 'v1', '15550001111');
const token = shop.token('Mira');
const { account: lumen, mira: miraToken, ids } = await energySupplier(service);

/** Waits until the page shows exactly these violations. */
async function expectViolations(page, expected) {
  const wanted = JSON.stringify([...expected].sort());
  await page
    .waitForFunction(
      (text) =>
        JSON.stringify(
          [...document.querySelectorAll('[data-testid=violation]')].map((it) => `${it.dataset.rule}@${it.dataset.pointer}`).sort(),
        ) === text,
      wanted,
    )
    .catch(async () => assert.deepEqual(await shownViolations(page), JSON.parse(wanted)));
}

const valid = (page) => page.locator('.state-chip-ok').waitFor();
const save = (page) => page.getByTestId('save').click();
const BODY = '#f-components-0-text';

story('a template is created, its errors fixed one by one', async () => {
  const mira = await visitor(shop);
  const { page } = mira;
  await page.getByRole('link', { name: 'New template' }).click();
  await page.locator('#f-name').waitFor();
  await expectViolations(page, []); // nothing is wrong before the first letter

  await page.fill('#f-name', ' order_shipped');
  await page.fill(BODY, 'Hello {{ 1 }}, your order is on its way to you.');
  await page.locator('[data-testid=violation][data-pointer="/name"]').waitFor();
  await page.locator('[data-testid=violation][data-pointer="/components/0/text"]').waitFor();
  // Refused, by the page or, before it knows, by the service: the first error gets the focus.
  mira.expected.push(/status of 422/);
  await save(page);
  await page.waitForFunction(() => document.activeElement.id === 'f-name');
  assert.match(page.url(), /\/console\/new$/);

  // The hint is a value: one click fixes it.
  await page.locator('[data-testid=violation][data-pointer="/name"] .violation-fix').click();
  await page.waitForFunction(() => document.getElementById('f-name').value === 'order_shipped');
  await page.locator('[data-testid=violation][data-pointer="/components/0/text"] .violation-fix').first().click();
  await page.waitForFunction((id) => document.querySelector(id).value.includes('{{1}}'), BODY);
  const sample = page.locator('#f-components-0-example-body-text-0-0');
  await sample.fill('Ada');
  await expectViolations(page, []);
  await valid(page);
  await page.getByTestId('proof').getByText('Hello Ada, your order').waitFor();

  // Buttons: added, filled in, put in another order by keyboard.
  await page.selectOption('#f-components-new', 'URL');
  await page.click('#f-components-add');
  await page.keyboard.type('Track it');
  await page.fill('#f-components-1-buttons-0-url', 'shop.example/track');
  await page.locator('[data-testid=violation][data-pointer="/components/1/buttons/0/url"] .violation-fix').click();
  await page.selectOption('#f-components-new', 'QUICK_REPLY');
  await page.click('#f-components-add');
  await page.locator('#f-components-1-buttons-1-text').fill('Stop');
  await valid(page);
  await page.focus('#f-components-1-buttons-1-up');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.getElementById('f-components-1-buttons-0-text').value === 'Stop');
  await valid(page);
  await save(page);
  await page.waitForURL(/\/console\/templates\/\d+$/);
  const id = page.url().split('/').pop();
  const created = await shop.call(token, 'GET', `/message_templates/${id}`);
  assert.equal(created.name, 'order_shipped');
  assert.deepEqual(created.components[1].buttons.map((it) => it.type), ['QUICK_REPLY', 'URL']);
  assert.deepEqual(await page.evaluate(() => Object.keys(localStorage).filter((it) => it.includes('draft'))), []);
});

story('a page of plain HTTP, where browsers offer fewer functions, saves as well', async () => {
  const mira = await visitor();
  await mira.context.addInitScript(() => {
    Object.defineProperty(crypto, 'randomUUID', { value: undefined });
    Object.defineProperty(navigator, 'clipboard', { value: undefined });
  });
  await mira.signIn(shop.link(), '/console/new');
  const { page } = mira;
  await page.fill('#f-name', 'over_plain_http');
  await page.fill(BODY, 'A text that is saved without TLS.');
  await valid(page);
  await save(page);
  await page.waitForURL(/\/console\/templates\/\d+$/);
});

story('an unexpected error of a save is shown', async () => {
  const { page } = await visitor(shop, { next: '/console/new' });
  await page.fill('#f-name', 'unlucky');
  await page.fill(BODY, 'A text whose save fails in the page.');
  await valid(page);
  await page.evaluate(() => (crypto.getRandomValues = () => { throw new Error('no random numbers'); }));
  await save(page);
  await page.getByRole('alert').filter({ hasText: 'unexpected error' }).waitFor();
  assert.ok(await page.getByTestId('save').isEnabled());
});

story('samples stay with their part when parts come and go', async () => {
  const { page } = await visitor(shop, { next: '/console/new' });
  await page.fill(BODY, 'Hello {{1}}, your order is on its way.');
  await page.fill('#f-components-0-example-body-text-0-0', 'Ada');
  await page.fill(BODY, 'Hello {{1}}, your order is nearly there.');
  await page.getByRole('radio', { name: 'Text', exact: true }).check();
  // The header is the first component now.
  await page.getByLabel('Header text').fill('Order {{1}}');
  assert.equal(await page.inputValue('#f-components-0-example-header-text-0'), '');
  assert.equal(await page.inputValue('#f-components-1-example-body-text-0-0'), 'Ada');
});

story('the focus follows what a button changes, and a form that is not begun announces nothing', async () => {
  const { page } = await visitor(lumen, { next: '/console/new' });
  const focused = (selector) => page.waitForFunction((it) => document.activeElement.matches(it), selector);
  await page.locator('#f-name').waitFor();
  const spoken = () => page.evaluate(() => document.getElementById('polite').textContent);
  await page.waitForFunction(() => !document.querySelector('main .skeleton'));
  assert.equal(await spoken(), '');
  await page.fill('#f-name', ' spring');
  await page.waitForFunction(() => /problem/.test(document.getElementById('polite').textContent));
  await page.locator('[data-testid=violation][data-pointer="/name"] .violation-fix').click();
  await focused('#f-name');
  await page.getByRole('button', { name: 'Add a footer' }).click();
  await focused('#f-components-1-text');
  await page.locator('[aria-labelledby=part-footer]').getByRole('button', { name: 'Remove' }).click();
  await focused('[aria-labelledby=part-footer] button');
  await page.getByRole('button', { name: 'Add an offer' }).click();
  await focused('[aria-labelledby=part-offer] textarea');
  await page.locator('[aria-labelledby=part-offer]').getByRole('button', { name: 'Remove' }).click();
  await focused('[aria-labelledby=part-more] button');
  await page.getByRole('button', { name: 'Add a carousel' }).click();
  await page.getByRole('button', { name: 'Add a card' }).click();
  await focused('.card-item:nth-child(3) summary');
  await page.reload();
  await page.getByTestId('draft').getByRole('button').click();
  await focused('#f-name');
  assert.deepEqual(await shownViolations(page), []);
});

story('a draft survives a reload and can be discarded', async () => {
  const { page } = await visitor(shop, { next: '/console/new' });
  await page.fill('#f-name', 'half_written');
  await page.fill(BODY, 'Half of a text');
  await page.reload();
  await page.getByTestId('draft').waitFor();
  assert.equal(await page.inputValue('#f-name'), 'half_written');
  assert.equal(await page.inputValue(BODY), 'Half of a text');
  await page.getByTestId('draft').getByRole('button').click();
  await page.waitForFunction(() => document.getElementById('f-name').value === '');
});

story('the JSON view and the form show one document', async () => {
  const { page } = await visitor(shop, { next: '/console/new' });
  await page.fill('#f-name', 'seen_twice');
  await page.fill(BODY, 'A text that is shown in two views.');
  await page.getByRole('radio', { name: 'JSON' }).check();
  const json = page.locator('#json-text');
  assert.equal(JSON.parse(await json.inputValue()).name, 'seen_twice');
  await json.fill('{');
  await page.locator('.json-error').waitFor();
  await json.fill(JSON.stringify({ ...shopDocument('seen_twice'), category: 'UTILTY' }, null, 2));
  await expectViolations(page, ['not-a-choice@/category']);
  await page.locator('.violation-fix').click();
  await valid(page);
  await page.getByRole('radio', { name: 'Form' }).check();
  assert.equal(await page.inputValue(BODY), 'Your order has left our warehouse. See you soon.');
});

/** Holds requests to save back until `release` is called. */
async function holdSaves(page, method) {
  let release;
  const held = new Promise((resolve) => (release = resolve));
  await page.route(/\/message_templates(\/\d+)?$/, async (route) => {
    if (route.request().method() === method) await held;
    await route.continue();
  });
  return release;
}

story('what is written while a save runs is kept and saved next', async () => {
  const { id } = await shop.call(token, 'POST', '/message_templates', shopDocument('written_on', 'The text as it was at first.'));
  const stored = async () => (await shop.call(token, 'GET', `/message_templates/${id}`)).components[0].text;
  const { page } = await visitor(shop, { next: `/console/templates/${id}/edit` });
  await page.fill(BODY, 'The text as it is sent.');
  await valid(page);
  const release = await holdSaves(page, 'PATCH');
  await save(page);
  await page.getByRole('button', { name: 'Saving…' }).waitFor();
  await page.fill(BODY, 'The text as it goes on.');
  release();
  await page.getByText('That is kept as a draft').waitFor();
  assert.match(page.url(), /\/edit$/);
  assert.equal(await page.inputValue(BODY), 'The text as it goes on.');
  assert.equal(await stored(), 'The text as it is sent.');
  await valid(page);
  await save(page);
  await page.waitForURL(/\/console\/templates\/\d+$/);
  assert.equal(await stored(), 'The text as it goes on.');
});

story('what is written while a create runs becomes an edit of the new template', async () => {
  const { page } = await visitor(shop, { next: '/console/new' });
  await page.fill('#f-name', 'created_early');
  await page.fill(BODY, 'The text as it is created.');
  await valid(page);
  const release = await holdSaves(page, 'POST');
  await save(page);
  await page.getByRole('button', { name: 'Saving…' }).waitFor();
  await page.fill(BODY, 'The text as it goes on.');
  release();
  await page.waitForURL(/\/console\/templates\/\d+\/edit$/);
  await page.getByTestId('draft').waitFor();
  assert.equal(await page.inputValue(BODY), 'The text as it goes on.');
  const id = page.url().split('/').at(-2);
  await valid(page);
  await save(page);
  await page.waitForURL(/\/console\/templates\/\d+$/);
  const { version, components } = await shop.call(token, 'GET', `/message_templates/${id}`);
  assert.deepEqual({ version, text: components[0].text }, { version: 2, text: 'The text as it goes on.' });
});

story('a save that ends after the author has left takes no page away', async () => {
  const { page } = await visitor(shop, { next: '/console/new' });
  await page.fill('#f-name', 'left_early');
  await page.fill(BODY, 'A text whose author is impatient.');
  await valid(page);
  const release = await holdSaves(page, 'POST');
  await save(page);
  await page.getByRole('button', { name: 'Saving…' }).waitFor();
  await page.getByRole('link', { name: 'Account' }).click();
  await page.waitForURL(/\/console\/account$/);
  release();
  await page.locator('.toast').waitFor();
  assert.match(page.url(), /\/console\/account$/);
});

story('a newer revision is shown as a diff before it is overwritten', async () => {
  const { id } = await shop.call(token, 'POST', '/message_templates', shopDocument('contended', 'The text as it was at first.'));
  const mira = await visitor(shop, { next: `/console/templates/${id}/edit` });
  const { page } = mira;
  await page.fill(BODY, 'The text as Mira wants to have it.');
  await valid(page);
  const components = [{ type: 'BODY', text: 'The text as a colleague has saved it.' }];
  await shop.call(token, 'PATCH', `/message_templates/${id}`, { components });
  await save(page);
  await page.getByRole('dialog').locator('del', { hasText: 'a colleague has saved' }).waitFor();
  await page.getByRole('dialog').locator('ins', { hasText: 'Mira wants to have' }).waitFor();
  await mira.expectFinding(/412/);
  await page.keyboard.press('Escape');
  await page.getByTestId('conflict').waitFor();
  assert.equal((await shop.call(token, 'GET', `/message_templates/${id}`)).components[0].text, components[0].text);
  await page.getByTestId('conflict').getByRole('button').click();
  await page.getByTestId('keep-mine').click();
  await page.waitForURL(/\/console\/templates\/\d+$/);
  const { components: saved } = await shop.call(token, 'GET', `/message_templates/${id}`);
  assert.equal(saved[0].text, 'The text as Mira wants to have it.');
});

story('a language is added beside the original', async () => {
  const original = ids['meter_reading:en_US'];
  const { page } = await visitor(lumen, { next: `/console/new?language_of=${original}` });
  await page.fill('#f-language', 'es');
  await page.getByText('Please send us your meter reading').first().waitFor();
  await page.fill(BODY, 'Envíenos su lectura antes del {{1}}, por favor.');
  await page.locator('#f-components-0-example-body-text-0-0').fill('viernes');
  await valid(page);
  assert.equal(await page.getByText('This name is free').count(), 0, 'the name belongs to the original');
  await save(page);
  await page.waitForURL(/\/console\/templates\/\d+$/);
  await page.getByRole('heading', { name: 'meter_reading' }).waitFor();
  const { language } = await lumen.call(miraToken, 'GET', `/message_templates/${page.url().split('/').pop()}`);
  assert.equal(language, 'es');
});

story('a duplicate needs another name', async () => {
  const { page } = await visitor(lumen, { next: `/console/new?from=${ids['invoice_ready:en_US']}` });
  await page.locator('#f-name').waitFor();
  await page.fill('#f-name', 'invoice_ready');
  await page.locator('[data-testid=violation][data-rule=name-taken]').waitFor();
  await page.fill('#f-name', 'invoice_ready_2');
  await valid(page);
  await save(page);
  await page.waitForURL(/\/console\/templates\/\d+$/);
});

story('an older answer never overwrites a newer one', async () => {
  const mira = await visitor();
  const { page } = mira;
  // Requests cannot be aborted, so that the older response does arrive.
  await mira.context.addInitScript(() => {
    const original = window.fetch;
    window.fetch = async (address, options) => {
      const response = await original(address, { ...options, signal: undefined });
      if (!address.endsWith('/validate') || !options.body.includes('Bad Name')) return response;
      const text = await response.text();
      // A task runs after everything that the page does with the response.
      response.text = async () => {
        setTimeout(() => (window.hasArrived = true));
        return text;
      };
      return response;
    };
  });
  // In the rulebook v1, the name would be right.
  await mira.signIn(lumen.link(), '/console/new');
  await page.locator('#f-name').waitFor();
  // The first answer is held back until the second has been shown.
  let release;
  const held = new Promise((resolve) => (release = resolve));
  await page.route('**/message_templates/validate', async (route) => {
    if (!route.request().postData().includes('Bad Name')) return route.continue();
    await held;
    return route.continue();
  });
  await page.fill(BODY, 'A text without any problem, dear reader.');
  const first = page.waitForRequest((it) => it.url().endsWith('/validate') && it.postData().includes('Bad Name'));
  await page.fill('#f-name', 'Bad Name');
  await first;
  await page.fill('#f-name', 'good_name');
  await valid(page);
  const late = page.waitForResponse((it) => it.url().endsWith('/validate') && it.request().postData().includes('Bad Name'));
  release();
  assert.equal((await late).status(), 200);
  await page.waitForFunction(() => window.hasArrived);
  await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
  assert.deepEqual(await shownViolations(page), []);
});

story('a click counts although violations arrive between press and release', async () => {
  const mira = await visitor();
  const { page } = mira;
  await mira.signIn(lumen.link(), '/console/new');
  await page.locator(BODY).waitFor();
  let release;
  const held = new Promise((resolve) => (release = resolve));
  await page.route('**/message_templates/validate', async (route) => {
    if (route.request().postData().includes('{{5}}')) await held;
    return route.continue();
  });
  const isAboutBody = (request) => request.url().endsWith('/validate') && request.postData().includes('{{5}}');
  const asked = page.waitForRequest(isAboutBody);
  await page.fill(BODY, 'Hi {{ 1 }} and {{3}}, bye {{5}}');
  await asked;
  await page.selectOption('#f-components-new', 'URL');
  await page.hover('#f-components-add');
  await page.mouse.down();
  const answered = page.waitForResponse((it) => isAboutBody(it.request()));
  release();
  await (await answered).finished();
  await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
  await page.mouse.up();
  await page.locator('#f-components-1-buttons-0-url').waitFor();
  await page.locator('[data-testid=violation][data-pointer="/components/0/text"]').first().waitFor();
});
