// Pictures of every screen, for the documents and for people who work on the design.
//
// SUITE_IMAGES is the directory. The browser's clock stands still, and the times in responses are
// replaced by fixed ones in the same order, so that pictures differ only when pages do.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { after } from 'node:test';
import { settled } from './browser.mjs';
import { energySupplier, sandbox } from './content.mjs';
import { openStage } from './stage.mjs';
import { until } from './service.mjs';

const IMAGES = process.env.SUITE_IMAGES;
const NOW = Date.parse('2026-11-16T09:41:00Z');
/** How far the clock of the emulator is ahead in the pictures: it shows 10:00 on the next day. */
const EMULATOR_AHEAD_MS = (24 * 60 + 19) * 60_000;
const MAX_BYTES = 200_000;
const HOOKS = 'https://crm.lumen.example';

const receiver = createServer((request, response) => {
  request.resume();
  response.writeHead(204).end();
});
await new Promise((resolve) => receiver.listen(0, '127.0.0.1', resolve));
const hooks = `http://127.0.0.1:${receiver.address().port}`;
const { service, visitor, story } = await openStage();
after(() => {
  receiver.closeAllConnections();
  receiver.close();
});
const { account: lumen, mira, ids } = await energySupplier(service, { webhook: hooks });
const { account: emulator, clockStart } = await sandbox(service);
const blank = service.account('New account', 'v1', '15550002222');
const invoice = ids['invoice_ready:en_US'];
mkdirSync(IMAGES, { recursive: true });

/** The times of all events, oldest first: the times that pages show are theirs, or between two of them. */
const eventTimes = (await lumen.call(mira, 'GET', '/events?limit=100')).data.map((it) => Date.parse(it.at)).sort((a, b) => a - b);

/** A fixed time for a time of this run: recent events minutes ago, older ones days ago. */
function fixedTime(text) {
  const time = Date.parse(text);
  // Times of the emulator's clock are exact.
  if (time >= clockStart) return new Date(NOW + EMULATOR_AHEAD_MS + time - clockStart).toISOString();
  const later = eventTimes.length - eventTimes.filter((it) => it <= time).length;
  if (time > Date.now()) return new Date(NOW + time - Date.now()).toISOString();
  return new Date(NOW - (4 + later * 9 + later ** 3 / 3) * 60_000).toISOString();
}

/** Replaces what differs from run to run: times, and the port of the receiver of webhooks. */
async function stable(someone) {
  await someone.context.clock.setFixedTime(NOW);
  await someone.context.route(/\/console\/(api|session)/, async (route) => {
    const response = await route.fetch();
    const text = (await response.text())
      .replaceAll(/"\d{4}-\d\d-\d\dT[\d:.]+Z"/g, (it) => `"${fixedTime(it.slice(1, -1))}"`)
      .replaceAll(hooks, HOOKS);
    await route.fulfill({ response, body: text });
  });
}

/** A version can be decided on once it was on the screen for a moment. */
const untilDecidable = (page) => page.locator('[data-testid=approve]:enabled').waitFor();

/** Picture, path, what leads to the screen, other options. */
const SCREENS = [
  ['sign-in', null, '/console/sign-in', { height: 560 }],
  ['list', lumen, '/console/', {
    both: true,
    act: async (page) => {
      await page.locator('[data-name=invoice_ready] button').click();
      await page.getByTestId('language-row').first().waitFor();
    },
  }],
  ['list-empty', blank, '/console/', { height: 480 }],
  ['editor', lumen, `/console/templates/${ids['winter_tariff:en_US']}/edit`, { both: true, height: 1000 }],
  ['editor-errors', lumen, '/console/new', {
    height: 1220,
    act: async (page) => {
      await page.fill('#f-name', 'Solar Webinar');
      await page.fill('#f-components-0-text', 'Hi {{ 1 }}! Our webinar on {{3}} starts at *18:00*.\n\n- What a balcony plant yields\n- What it costs');
      await page.locator('#f-components-0-example-body-text-0-0').fill('Ada');
      await page.locator('[data-testid=violation][data-pointer="/components/0/text"]').first().waitFor();
      await page.getByText('Draft kept').waitFor();
      await page.locator('h1').focus();
    },
  }],
  ['editor-json', lumen, `/console/templates/${ids['winter_tariff:en_US']}/edit`, {
    act: async (page) => {
      await page.getByRole('radio', { name: 'JSON' }).check();
      const json = page.locator('#json-text');
      await json.fill((await json.inputValue()).replace('"UTILITY"', '"UTILTY"').replace('"MARKETING"', '"MARKTING"'));
      await page.getByTestId('violation').first().waitFor();
      await json.evaluate((it) => it.scrollTo(0, 0));
      await page.locator('h1').focus();
    },
    height: 940,
  }],
  ['editor-language', lumen, `/console/new?language_of=${ids['invoice_ready:ar']}`, { height: 1000 }],
  ['review', lumen, `/console/review/${invoice}`, { both: true, height: 1040, act: untilDecidable }],
  ['review-empty', blank, '/console/review', { height: 480 }],
  ['template', lumen, `/console/templates/${invoice}`, { both: true, height: 1100 }],
  ['template-arabic', lumen, `/console/templates/${ids['invoice_ready:ar']}`, { height: 900 }],
  ['rtl', lumen, '/console/?dir=rtl'],
  ['compare', lumen, `/console/templates/${invoice}`, {
    act: async (page) => {
      await page.getByRole('button', { name: 'Compare version 2' }).click();
      await page.locator('#compare del').first().waitFor();
      await page.locator('#compare').evaluate((it) => it.scrollIntoView({ block: 'start' }));
    },
  }],
  ['account', lumen, '/console/account', {
    height: 1000,
    act: async (page) => {
      await page.getByRole('button', { name: 'Show deliveries' }).last().click();
      await page.getByTestId('delivery').first().waitFor();
    },
  }],
  ['endpoint', lumen, '/console/account', {
    act: async (page) => {
      await page.getByRole('button', { name: 'Add an endpoint' }).click();
      await page.fill('#hook-url', 'https://crm.lumen.example/galley');
      await page.getByLabel('Only these').check();
    },
  }],
  ['emulator', emulator, '/console/emulator', {
    both: true,
    height: 1180,
    act: async (page) => {
      await page.fill('#clock-advance', '1s');
      await page.locator('#clock-advance').press('Enter');
      await page.getByText('1 step of the script applied').waitFor();
      await page.getByTestId('message').first().locator('[data-status=delivered]').waitFor();
      await page.locator('h1').focus();
    },
  }],
  ['shortcuts', lumen, `/console/review/${invoice}`, {
    act: async (page) => {
      await untilDecidable(page);
      await page.keyboard.press('?');
    },
  }],
  ['phone-list', lumen, '/console/', { width: 390, height: 844 }],
  ['phone-review', lumen, `/console/review/${invoice}`, { width: 390, height: 844, act: untilDecidable }],
  ['phone-editor', lumen, `/console/templates/${ids['winter_tariff:en_US']}/edit`, { width: 390, height: 844 }],
];

await until(
  async () => (await lumen.call(mira, 'GET', '/webhooks')).data.every((it) => !it.behind),
  15_000,
  'events are queued',
);

for (const [name, account, path, { act, width = 1280, height = 860, both = false } = {}] of SCREENS) {
  story(`picture of ${name}`, async () => {
    const someone = await visitor(account, { width, height });
    await stable(someone);
    await someone.open(path);
    if (act) await act(someone.page);
    await settled(someone.page);
    for (const scheme of both ? ['light', 'dark'] : ['light']) {
      await someone.page.emulateMedia({ colorScheme: scheme });
      const file = join(IMAGES, `console-${name}${scheme === 'dark' ? '-dark' : ''}.png`);
      await someone.page.screenshot({ path: file, animations: 'disabled', caret: 'hide' });
      // Makes the file smaller if the program is there.
      spawnSync('pngquant', ['--force', '--ext', '.png', '--strip', '--speed', '1', '128', file]);
      const { size } = statSync(file);
      assert.ok(size <= MAX_BYTES, `${file}: ${size} bytes`);
    }
  });
}
