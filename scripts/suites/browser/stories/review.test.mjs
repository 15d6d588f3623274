// Reviewing: the life of a template from its first version to the live one, races, four eyes.

import assert from 'node:assert/strict';
import { shopDocument } from '../content.mjs';
import { openStage } from '../stage.mjs';

const { service, visitor, story } = await openStage();
const shop = service.account('Corner shop', 'v1', '15550001111');
const author = shop.token('Mira');
const create = async (name, text) =>
  (await shop.call(author, 'POST', '/message_templates', shopDocument(name, text))).id;
const read = (id) => shop.call(author, 'GET', `/message_templates/${id}`);
const heading = (page, name) => page.locator('h1', { hasText: name }).waitFor();
const refusal = (page) => page.getByTestId('refusal');
/** An item can be decided a moment after it is shown. */
const ready = (page) => page.locator('[data-testid=approve]:enabled').waitFor();

story('a reviewer decides by keyboard alone: reject with a reason, approve, next item by itself', async () => {
  const [first, second, third] = [
    await create('first_in_line', 'The first text that waits for a decision.'),
    await create('second_in_line', 'The second text that waits for a decision.'),
    await create('third_in_line', 'The third text that waits for a decision.'),
  ];
  const { page } = await visitor(shop);
  const { keyboard } = page;
  await keyboard.press('g');
  await keyboard.press('r');
  await heading(page, 'first_in_line');
  assert.deepEqual(await page.locator('.queue-name').allInnerTexts(), ['first_in_line', 'second_in_line', 'third_in_line']);

  // A rejection without a reason sends nothing: the reason gets the focus.
  await ready(page);
  await page.getByTestId('reject').focus();
  await keyboard.press('Enter');
  await page.getByText('Write a reason').waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.dataset.testid), 'reason');
  assert.equal((await read(first)).status, 'PENDING');
  await keyboard.type('Say when the parcel arrives.');
  await keyboard.press('Control+Enter');
  await heading(page, 'second_in_line');
  assert.equal((await read(first)).status, 'REJECTED');
  assert.equal((await read(first)).rejection_reason, 'Say when the parcel arrives.');

  await keyboard.press('j');
  await heading(page, 'third_in_line');
  await keyboard.press('k');
  await heading(page, 'second_in_line');
  await ready(page);
  // `a` within 2.5 s of `g` could be the end of `g a`, and approves nothing.
  await page.waitForFunction(() => performance.now() > 4000);
  await keyboard.press('a');
  await heading(page, 'third_in_line');
  assert.equal((await read(second)).status, 'APPROVED');

  // `r` goes to the reason; Escape and Tab lead on to the buttons.
  await ready(page);
  await keyboard.press('r');
  assert.equal(await page.evaluate(() => document.activeElement.dataset.testid), 'reason');
  await keyboard.press('Tab');
  await keyboard.press('Tab');
  assert.equal(await page.evaluate(() => document.activeElement.dataset.testid), 'approve');
  await keyboard.press('Enter');
  await page.getByText('Nothing waits for review').waitFor();
  assert.equal((await read(third)).status, 'APPROVED');
});

story('a double press or click decides once: the next item opens unread', async () => {
  const [first, second, third] = [
    await create('pressed_twice', 'The text that the reviewer has read.'),
    await create('clicked_twice', 'The second text, not read yet.'),
    await create('left_alone', 'The third text, not read yet.'),
  ];
  const { page } = await visitor(shop, { next: `/console/review/${first}` });
  await ready(page);
  // The second press comes with the first moment in which the next item could be decided.
  await page.evaluate(() => {
    new MutationObserver((_, observer) => {
      const isNext = document.querySelector('h1').textContent.includes('clicked_twice') && document.querySelector('[data-testid=approve]');
      if (!isNext) return;
      observer.disconnect();
      document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'a', bubbles: true }));
    }).observe(document.body, { subtree: true, childList: true, characterData: true });
  });
  await page.keyboard.press('a');
  await heading(page, 'clicked_twice');
  await ready(page);
  assert.equal((await read(first)).status, 'APPROVED');
  assert.equal((await read(second)).status, 'PENDING');
  await page.getByTestId('approve').dblclick();
  await heading(page, 'left_alone');
  await ready(page);
  assert.equal((await read(second)).status, 'APPROVED');
  assert.equal((await read(third)).status, 'PENDING');

  // A response that arrives after the reviewer has gone elsewhere leaves the page alone.
  let release;
  const held = new Promise((resolve) => (release = resolve));
  await page.route('**/review', async (route) => {
    await held;
    await route.continue();
  });
  const answered = page.waitForResponse((it) => it.url().endsWith(`/${third}/review`));
  await page.getByTestId('approve').click();
  await page.getByRole('link', { name: 'Account' }).click();
  await page.waitForURL(/\/console\/account$/);
  release();
  await answered;
  await page.getByText('Approved left_alone').waitFor();
  assert.match(page.url(), /\/console\/account$/);
});

story('shortcuts can be switched off', async () => {
  const id = await create('not_by_accident', 'A text that no single key approves.');
  const { page } = await visitor(shop, { next: `/console/review/${id}` });
  await ready(page);
  await page.getByRole('button', { name: 'Keyboard shortcuts' }).click();
  await page.getByLabel('Use shortcuts with single keys').uncheck();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await page.keyboard.press('r');
  assert.notEqual(await page.evaluate(() => document.activeElement.dataset.testid), 'reason');
  await page.keyboard.press('a');
  // The page would send the decision before anything that follows it.
  await page.getByRole('link', { name: 'Template page' }).click();
  await page.locator('.version').waitFor();
  assert.equal((await read(id)).status, 'PENDING');
  await shop.call(author, 'DELETE', `/message_templates/${id}`);
});

story('a rejected template is edited again, approved, and its version is live', async () => {
  const id = await create('spring_opening', 'We open again in spring. Come and see us!');
  const reviewer = await visitor(shop, { next: `/console/review/${id}` });
  await reviewer.page.getByTestId('reason').fill('Say on which day.');
  await reviewer.page.getByTestId('reject').click();
  await reviewer.page.getByText('Rejected spring_opening').waitFor();

  const mira = await visitor(shop, { next: '/console/?status=REJECTED' });
  const row = mira.page.locator('[data-name=spring_opening]');
  await row.getByText('Say on which day.').waitFor();
  await row.getByRole('link', { name: 'Edit again' }).click();
  await mira.page.locator('.notice', { hasText: 'Say on which day.' }).waitFor();
  await mira.page.fill('#f-components-0-text', 'We open again on March 1. Come and see us!');
  await mira.page.locator('.state-chip-ok').waitFor();
  await mira.page.getByTestId('save').click();
  await mira.page.locator('.version[data-version="2"]').waitFor();

  await reviewer.open(`/console/review/${id}`);
  await reviewer.page.getByTestId('proof').getByText('March 1').waitFor();
  // Nothing was approved yet: the review compares with the rejected version and repeats its reason.
  await reviewer.page.locator('.notice', { hasText: 'Say on which day.' }).waitFor();
  await reviewer.page.getByText('compared with version 1, the one before').waitFor();
  assert.match((await reviewer.page.locator('.review-changes ins').allInnerTexts()).join(' '), /on March 1/);
  assert.equal(await reviewer.page.getByText('New template').count(), 0);
  await reviewer.page.getByTestId('approve').click();
  await reviewer.page.getByText('Approved spring_opening').waitFor();

  await mira.page.reload();
  const version = mira.page.locator('.version[data-version="2"]');
  await version.getByText('Live', { exact: true }).waitFor();
  const { live_version: live, status } = await read(id);
  assert.deepEqual({ live, status }, { live: 2, status: 'APPROVED' });
});

story('an edit of a live template shows a word diff, both proofs and the placeholders', async () => {
  const id = await create('parcel', 'Hello, your parcel is on its way to you.');
  await shop.call(author, 'POST', `/message_templates/${id}/review`, { decision: 'approve' });
  const text = 'Hello {{1}}, your parcel is nearly there, dear.';
  const components = [{ type: 'BODY', text, example: { body_text: [['Ada']] } }];
  await shop.call(author, 'PATCH', `/message_templates/${id}`, { components });
  const { page } = await visitor(shop, { next: `/console/review/${id}` });
  await page.getByTestId('approve').waitFor();
  assert.equal(await page.getByTestId('proof').count(), 2);
  assert.match((await page.locator('.review-changes del').allInnerTexts()).join(' '), /on its way/);
  assert.match((await page.locator('.review-changes ins').allInnerTexts()).join(' '), /nearly there/);
  assert.match(await page.locator('.review-changes').innerText(), /\{\{1\}\}/);
  await page.getByTestId('approve').click();
  await page.getByText('Approved parcel').waitFor();
});

story('a changed kind of button and the end of a long address are in sight', async () => {
  const target = `https://shop.example/${'long/'.repeat(20)}the-end`;
  const call = { type: 'PHONE_NUMBER', text: 'Contact', phone_number: '+4930111222333' };
  const open = { type: 'URL', text: 'Contact', url: target };
  const text = { type: 'BODY', text: 'Reach us whenever you like.' };
  const document = { ...shopDocument('contact'), components: [text, { type: 'BUTTONS', buttons: [call] }] };
  const { id } = await shop.call(author, 'POST', '/message_templates', document);
  await shop.call(author, 'POST', `/message_templates/${id}/review`, { decision: 'approve' });
  await shop.call(author, 'PATCH', `/message_templates/${id}`, { components: [text, { type: 'BUTTONS', buttons: [open] }] });
  const { page } = await visitor(shop, { next: `/console/review/${id}` });
  await page.locator('[data-path="BUTTONS/buttons/0/type"]').waitFor();
  const shown = page.locator('.proof-button-target', { hasText: 'the-end' });
  assert.ok(await shown.evaluate((it) => it.scrollWidth <= it.clientWidth + 1 && getComputedStyle(it).textOverflow !== 'ellipsis'));
  await shop.call(author, 'DELETE', `/message_templates/${id}`);
});

story('an edit of a paused template is compared with its approved version', async () => {
  const id = await create('on_hold', 'The text that was approved before the pause.');
  for (const decision of ['approve', 'pause']) await shop.call(author, 'POST', `/message_templates/${id}/review`, { decision });
  await shop.call(author, 'PATCH', `/message_templates/${id}`, { components: [{ type: 'BODY', text: 'The text that waits during the pause.' }] });
  const { page } = await visitor(shop, { next: `/console/review/${id}` });
  await page.getByText('compared with version 1, the last approved one').waitFor();
  assert.equal(await page.getByTestId('proof').count(), 2);
  assert.match((await page.locator('.review-changes del').allInnerTexts()).join(' '), /was approved before/);
  await shop.call(author, 'DELETE', `/message_templates/${id}`);
});

story('two tabs race: the second decision is refused with 412 and decides nothing', async () => {
  const id = await create('raced_for', 'The text that the reviewer has read.');
  const reviewer = await visitor(shop, { next: `/console/review/${id}` });
  await reviewer.page.getByTestId('approve').waitFor();
  const mira = await visitor(shop, { next: `/console/templates/${id}/edit` });
  await mira.page.fill('#f-components-0-text', 'Another text, which the reviewer has not read.');
  await mira.page.locator('.state-chip-ok').waitFor();
  await mira.page.getByTestId('save').click();
  await mira.page.locator('.version[data-version="2"]').waitFor();

  const answered = reviewer.page.waitForResponse((it) => it.url().endsWith('/review') && it.request().method() === 'POST');
  await reviewer.page.getByTestId('approve').click();
  assert.equal((await answered).status(), 412);
  assert.equal(await refusal(reviewer.page).getAttribute('data-problem'), 'revision-outdated');
  assert.match(await refusal(reviewer.page).innerText(), /Nothing was decided/);
  await reviewer.expectFinding(/412/);
  const { status, live_version: live } = await read(id);
  assert.deepEqual({ status, live }, { status: 'PENDING', live: undefined });

  // The new version can be read and decided.
  await refusal(reviewer.page).getByRole('button').click();
  await reviewer.page.getByTestId('proof').getByText('has not read').waitFor();
  await reviewer.page.getByTestId('approve').click();
  await reviewer.page.getByText('Approved raced_for').waitFor();
  assert.equal((await read(id)).live_version, 2);
});

story('two reviewers race: the slower decision is refused and changes nothing', async () => {
  const id = await create('decided_twice', 'A text about which two people decide.');
  const fast = await visitor(shop, { next: `/console/review/${id}` });
  const slow = await visitor(shop, { next: `/console/review/${id}` });
  await slow.page.getByTestId('reason').fill('Too late.');
  await fast.page.getByTestId('approve').click();
  await fast.page.getByText('Approved decided_twice').waitFor();
  await slow.page.getByTestId('reject').click();
  await refusal(slow.page).waitFor();
  await slow.expectFinding(/412|409/);
  assert.equal((await read(id)).status, 'APPROVED');
});

story('with four eyes, an author cannot decide about the own version', async () => {
  service.cli('account', 'change', shop.id, '--four-eyes', 'on');
  const mira = await visitor(shop, { next: '/console/new' });
  await mira.page.fill('#f-name', 'own_version');
  await mira.page.fill('#f-components-0-text', 'A text that its author wants to approve.');
  await mira.page.locator('.state-chip-ok').waitFor();
  await mira.page.getByTestId('save').click();
  await mira.page.waitForURL(/\/console\/templates\/\d+$/);
  const id = mira.page.url().split('/').pop();
  await mira.open(`/console/review/${id}`);
  await mira.page.getByText('another person has to decide').waitFor();
  await mira.page.getByTestId('approve').click();
  assert.equal(await refusal(mira.page).getAttribute('data-problem'), 'four-eyes');
  await mira.expectFinding(/403/);
  assert.equal((await read(id)).status, 'PENDING');

  const jonas = await visitor(shop, { next: `/console/review/${id}` });
  await jonas.page.getByTestId('approve').click();
  await jonas.page.getByText('Approved own_version').waitFor();
  assert.equal((await read(id)).status, 'APPROVED');
  service.cli('account', 'change', shop.id, '--four-eyes', 'off');
});
