// Every screen in light and dark, from left to right and from right to left, at 320 and 1280 pixels:
// no violation of WCAG 2.2 AA or of axe's best practices, no CSP report, no error in the browser's
// console, nothing wider than the window, no target smaller than 24 pixels, nothing that has the focus under a bar.

import assert from 'node:assert/strict';
import { axe, overflow, settled } from './browser.mjs';
import { energySupplier, sandbox, shopDocument } from './content.mjs';
import { openStage } from './stage.mjs';

const { service, visitor, story } = await openStage();
const { account: lumen, ids } = await energySupplier(service, { webhook: 'http://127.0.0.1:9' });
const shop = service.account('Corner shop', 'v1', '15550001111');
const blank = service.account('New account', 'v1', '15550002222');
const { account: emulator } = await sandbox(service);
const unused = service.emulator('New sandbox', '15550003333', '--faithful');
const shopToken = shop.token('Mira');
await shop.call(shopToken, 'POST', '/message_templates', shopDocument('order_shipped'));

const invoice = ids['invoice_ready:en_US'];
const BAD_BODY = 'Hi {{ 1 }} and {{3}}, bye {{5}}';

const openDialog = (button) => async (page) => {
  await page.getByRole('button', { name: button }).first().click();
  await page.getByRole('dialog').waitFor();
};
const menuDialog = (action) => async (page) => {
  await page.getByLabel('More actions').click();
  await openDialog(action)(page);
};

/** Screen, account (`null`: signed out), path, what leads to it, findings that belong to it. */
const SCREENS = [
  ['sign-in', null, '/console/sign-in'],
  ['sign-in with an error', null, '/console/sign-in', async (page) => page.getByTestId('sign-in').click()],
  ['list', lumen, '/console/'],
  ['list, opened row', lumen, '/console/', async (page) => {
    await page.locator('[data-name=invoice_ready] button').click();
    await page.getByTestId('language-row').first().waitFor();
  }],
  ['list, no match', lumen, '/console/?q=zzz'],
  ['list, empty', blank, '/console/'],
  ['shortcuts dialog', lumen, '/console/', openDialog('Keyboard shortcuts')],
  ['editor, new, v1', shop, '/console/new'],
  ['editor, new, with errors', lumen, '/console/new', async (page) => {
    await page.fill('#f-name', ' Bad');
    await page.fill('#f-components-0-text', BAD_BODY);
    await page.selectOption('#f-components-new', 'URL');
    await page.click('#f-components-add');
    await page.locator('[data-testid=violation][data-pointer="/name"]').waitFor();
    await page.locator('[data-testid=violation][data-pointer^="/components/1"]').first().waitFor();
  }],
  ['editor, carousel and offer', lumen, '/console/new', async (page) => {
    // The violations of both move what is below them.
    const checked = page.waitForResponse((it) => it.request().postData()?.includes('LIMITED_TIME_OFFER'));
    await page.getByRole('button', { name: 'Add a carousel' }).click();
    await page.getByRole('button', { name: 'Add an offer' }).click();
    await page.locator('#part-cards').waitFor();
    await checked;
  }],
  ['editor, edit', lumen, `/console/templates/${invoice}/edit`],
  ['editor, JSON', lumen, `/console/templates/${invoice}/edit`, async (page) => {
    await page.getByRole('radio', { name: 'JSON' }).check();
    await page.locator('#json-text').fill('{"name":"A B","components":[{"type":"BODY","text":"{{1}}"}]}');
    await page.getByTestId('violation').first().waitFor();
  }],
  ['editor, language', lumen, `/console/new?language_of=${ids['invoice_ready:ar']}`],
  ['template', lumen, `/console/templates/${invoice}`, async (page) => {
    await page.getByRole('button', { name: 'Compare version 2' }).click();
    await page.locator('#compare').waitFor();
  }],
  ['template, right to left', lumen, `/console/templates/${ids['invoice_ready:ar']}`],
  ['template, rejected', lumen, `/console/templates/${ids['winter_tariff:en_US']}`],
  ['template, missing', lumen, '/console/templates/1', undefined, /404/],
  ['hold dialog', lumen, `/console/templates/${ids['power_outage:en_US']}`, menuDialog('Pause')],
  ['delete dialog', lumen, `/console/templates/${ids['power_outage:en_US']}`, menuDialog('Delete')],
  ['review queue', lumen, '/console/review', async (page) => page.getByTestId('approve').waitFor()],
  ['review item', lumen, `/console/review/${invoice}`, async (page) => {
    await page.getByTestId('reject').click();
    await page.getByText('Write a reason').waitFor();
  }],
  ['review, nothing waits', blank, '/console/review'],
  ['account', lumen, '/console/account', async (page) => {
    await page.getByRole('button', { name: 'Show deliveries' }).first().click();
    await page.getByTestId('delivery').first().waitFor();
  }],
  ['emulator', emulator, '/console/emulator', async (page) => {
    await page.fill('#clock-advance', 'soon');
    await page.locator('#clock-advance').press('Enter');
    await page.locator('#clock-advance-error').waitFor();
  }, /422/],
  ['emulator, empty', unused, '/console/emulator'],
  ['emulator, dialog', emulator, '/console/emulator', openDialog('Delete all')],
  ['emulator, another account', shop, '/console/emulator'],
  ['endpoint dialog', lumen, '/console/account', openDialog('Add an endpoint')],
];

/** Targets below 24 × 24 pixels; links within a text and native boxes with a label may be smaller. */
const smallTargets = (page) =>
  page.evaluate(() =>
    [...document.querySelectorAll('a, button, input, select, textarea, summary')]
      .filter((it) => {
        const { width, height } = it.getBoundingClientRect();
        const isExempt = it.matches('.skip, [type=checkbox], [type=radio]') || it.closest('.visually-hidden');
        const isInline = getComputedStyle(it).display === 'inline';
        return width > 0 && !isExempt && !isInline && (width < 24 || height < 24);
      })
      .map((it) => it.outerHTML.slice(0, 90)),
  );

/** At most so many elements get the focus by Tab. */
const MOST_TABS = 90;

/** Walks through the page by Tab. Returns the elements that a sticky bar covers while they have the focus. */
async function coveredFocus(page) {
  await page.evaluate(() => {
    if (!document.querySelector('dialog[open]')) document.activeElement.blur();
    scrollTo(0, 0);
    window.visited = new Set();
  });
  const found = [];
  for (let index = 0; index < MOST_TABS; index += 1) {
    await page.keyboard.press('Tab');
    const covered = await page.evaluate(async () => {
      // The page is scrolled to the focus with the next frame.
      await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
      const element = document.activeElement;
      if (element === document.body || window.visited.has(element)) return null;
      window.visited.add(element);
      const box = element.getBoundingClientRect();
      const [top, bottom] = [Math.max(box.top, 0), Math.min(box.bottom, innerHeight)];
      const isBar = (it) => ['sticky', 'fixed'].includes(getComputedStyle(it).position) && !it.contains(element);
      const isCovered = (y) => {
        for (let it = document.elementFromPoint(box.left + box.width / 2, y); it; it = it.parentElement) if (isBar(it)) return true;
        return false;
      };
      const isHidden = top >= bottom || [top + 1, (top + bottom) / 2, bottom - 1].every(isCovered);
      return isHidden ? element.outerHTML.slice(0, 90) : '';
    });
    if (covered === null) break;
    if (covered) found.push(covered);
  }
  return found;
}

async function look(page, title, found) {
  const check = (what, list) => list.length > 0 && found.push(`${title}: ${what}: ${list.join(' | ')}`);
  check('axe', await axe(page));
  check('small targets', await smallTargets(page));
  const wider = await overflow(page);
  if (wider > 0) found.push(`${title}: ${wider} pixels wider than the window`);
}

story('the checks notice what they look for', async () => {
  const someone = await visitor();
  await someone.open('/console/sign-in');
  await someone.page.evaluate(() => {
    document.querySelector('label[for=token]').remove();
    document.querySelector('main').append(Object.assign(document.createElement('button'), { textContent: '.' }));
    document.querySelector('main').lastChild.style.setProperty('width', '2000px');
    document.body.append(document.createElement('script'));
    document.body.lastChild.src = 'https://elsewhere.example/script.js';
  }).catch((error) => someone.findings.push(error.message));
  const found = [];
  await look(someone.page, 'sign-in', found);
  assert.match(found.join(), /axe: .*label.*pixels wider/);
  await someone.page.evaluate(() => {
    document.querySelector('main').append(Object.assign(document.createElement('div'), { textContent: 'bar' }));
    const bar = { position: 'fixed', inset: '50% 0 0 0', background: 'white' };
    Object.assign(document.querySelector('main').lastChild.style, bar);
    document.querySelector('[data-testid=sign-in]').style.setProperty('margin-top', '60vh');
  });
  await someone.page.setViewportSize({ width: 1280, height: 300 });
  assert.notDeepEqual(await coveredFocus(someone.page), []);
  await someone.expectFinding(/Content Security Policy|TrustedScriptURL|CSP:/);
});

for (const [name, account, path, act, expected] of SCREENS) {
  story(`${name}: accessible, without errors, without overflow`, async () => {
    const someone = await visitor(account);
    const { page } = someone;
    const found = [];
    for (const [width, loaded] of [[320, 'rtl'], [1280, 'ltr']]) {
      await page.setViewportSize({ width, height: 860 });
      await page.evaluate(() => localStorage.clear()).catch(() => undefined);
      const address = new URL(path, service.address);
      address.searchParams.set('dir', loaded);
      await page.goto(address.href);
      await settled(page);
      if (act) await act(page);
      await settled(page);
      if (expected) await someone.expectFinding(expected);
      assert.equal(await page.evaluate(() => document.documentElement.dir), loaded);
      for (const covered of await coveredFocus(page)) found.push(`${width}: has the focus under a bar: ${covered}`);
      // Style sheets alone follow the direction and the colour scheme, so the page is not loaded again.
      for (const dir of ['ltr', 'rtl']) {
        await page.evaluate((value) => (document.documentElement.dir = value), dir);
        for (const colorScheme of ['light', 'dark']) {
          await page.emulateMedia({ colorScheme });
          await look(page, `${width} ${dir} ${colorScheme}`, found);
        }
      }
    }
    assert.deepEqual(found, []);
  });
}
