// Requests of other sites, secrets, revoked tokens.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after } from 'node:test';
import { WAIT_MS } from './browser.mjs';
import { energySupplier } from './content.mjs';
import { until } from './service.mjs';
import { openStage } from './stage.mjs';

const REVOKED_MS = 5_000;
const COOKIE = 'galley_console';

const { service, visitor, story } = await openStage();
const { account: lumen, ids } = await energySupplier(service);
const invoice = ids['invoice_ready:en_US'];
const PAGES = [
  '/console/',
  '/console/new',
  `/console/templates/${invoice}`,
  `/console/templates/${invoice}/edit`,
  `/console/review/${invoice}`,
  '/console/account',
];

/** Another origin, with an empty page. Other ports of a host are the same site, other names another one. */
const elsewhere = createServer((_, response) => response.setHeader('content-type', 'text/html').end('<p>Elsewhere</p>'));
await new Promise((resolve) => elsewhere.listen(0, resolve));
after(() => {
  elsewhere.closeAllConnections();
  elsewhere.close();
});

const cookieOf = async (someone) => {
  const cookie = (await someone.context.cookies(`${service.address}/console/`)).find((it) => it.name === COOKIE);
  service.secret(cookie.value);
  return cookie;
};

story('the cookie is for the console alone and invisible to scripts', async () => {
  const mira = await visitor(lumen);
  const cookie = await cookieOf(mira);
  assert.deepEqual([cookie.httpOnly, cookie.sameSite, cookie.path], [true, 'Strict', '/console']);
  assert.equal(await mira.page.evaluate(() => document.cookie), '');
});

story('a request of another site with the cookie is refused: 403', async () => {
  const mira = await visitor(lumen);
  const { value } = await cookieOf(mira);
  const calls = [
    ['POST', '/console/session', { link: 'x' }],
    ['DELETE', '/console/session'],
    ['POST', `/console/api/${lumen.phone}/message_templates`, { name: 'forged' }],
    ['POST', `/console/api/-/message_templates/${invoice}/review`, { decision: 'approve' }],
    ['PATCH', `/console/api/-/message_templates/${invoice}`, { category: 'MARKETING' }],
    ['DELETE', `/console/api/-/message_templates/${invoice}`],
    ['GET', '/console/session'],
    ['GET', '/console/api/-/message_templates'],
    ['GET', `/console/api/-/message_templates/${invoice}/proof`],
    ['GET', '/console/api/-/events'],
  ];
  const foreign = [
    {},
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { 'sec-fetch-site': 'none' },
    { origin: 'https://elsewhere.example' },
    { origin: 'null' },
    { 'sec-fetch-site': 'cross-site', origin: service.direct },
  ];
  for (const [method, path, body] of calls) {
    for (const headers of foreign) {
      const response = await fetch(service.direct + path, {
        method,
        headers: { ...headers, cookie: `${COOKIE}=${value}`, 'content-type': 'application/json' },
        body: method === 'GET' ? undefined : JSON.stringify(body),
      });
      const problem = await response.json();
      const got = `${response.status} ${problem.type}`;
      assert.match(got, /^403 .*\/cross-site$/, `${method} ${path} with ${JSON.stringify(headers)}: ${got}`);
    }
  }
  // The session is still there, and nothing was done.
  await mira.open('/console/account');
  assert.equal((await lumen.call(lumen.token('check'), 'GET', `/message_templates/${invoice}`)).status, 'PENDING');
});

for (const host of ['127.0.0.1', 'localhost']) {
  story(`a page of another origin (${host}) cannot post to the console: 403`, async () => {
    const mira = await visitor(lumen);
    const target = `${service.address}/console/api/-/message_templates/${invoice}/review`;
    const origin = `http://${host}:${elsewhere.address().port}/`;
    for (const kind of ['form', 'fetch']) {
      const page = await mira.tab();
      await page.goto(origin);
      const answered = page.waitForResponse((it) => it.url() === target);
      await page.evaluate(
        ([how, url]) => {
          if (how === 'fetch') {
            fetch(url, { method: 'POST', mode: 'no-cors', credentials: 'include', body: '{"decision":"approve"}' }).catch(() => undefined);
            return;
          }
          const form = Object.assign(document.createElement('form'), { method: 'POST', action: url, enctype: 'text/plain' });
          form.append(Object.assign(document.createElement('input'), { name: '{"decision":"approve","x":"', value: '"}' }));
          document.body.append(form);
          form.submit();
        },
        [kind, target],
      );
      assert.equal((await answered).status(), 403, kind);
    }
    await mira.expectFinding(/status of 403|favicon/);
    assert.equal((await lumen.call(lumen.token('check'), 'GET', `/message_templates/${invoice}`)).status, 'PENDING');
  });
}

story('a page of another port can neither read from the console nor claim phone numbers', async () => {
  const mira = await visitor(lumen);
  const page = await mira.tab();
  await page.goto(`http://127.0.0.1:${elsewhere.address().port}/`);
  const target = `${service.address}/console/api/15559990000/message_templates`;
  // The browser does not show every response to its own page.
  const refusals = () => service.log().split('\n').filter((it) => it.includes('GET /console/api/') && it.includes(' 403 ')).length;
  for (const kind of ['image', 'script', 'frame', 'no-cors', 'cors', 'events']) {
    const before = refusals();
    await page.evaluate(
      ([how, url]) => {
        const element = { image: 'img', script: 'script', frame: 'iframe' }[how];
        if (element) document.body.append(Object.assign(document.createElement(element), { src: url }));
        else if (how === 'events') new EventSource(url, { withCredentials: true });
        else fetch(url, { mode: how === 'no-cors' ? how : 'cors', credentials: 'include' }).catch(() => undefined);
      },
      [kind, `${target}?${kind}`],
    );
    await until(() => refusals() > before, WAIT_MS, `${kind} is refused`);
  }
  // The browser asks first whether it may send a header of its own, and does not send it.
  const withHeader = await page.evaluate(
    (url) => fetch(url, { credentials: 'include', headers: { 'Galley-Console': '1' } }).then(() => 'sent', () => 'refused'),
    target,
  );
  assert.equal(withHeader, 'refused');
  await mira.expectFinding(/status of 403/);
  mira.expected.push(/CORS policy|EventSource|ERR_|favicon|MIME type|X-Frame-Options|frame-ancestors/);
  const { phone_number_ids: phones } = await mira.page.evaluate(async () => (await fetch('/console/session')).json());
  assert.deepEqual(phones, [lumen.phone]);
});

story('the console cannot be framed by another page', async () => {
  const mira = await visitor(lumen);
  const page = await mira.tab();
  await page.goto(`http://127.0.0.1:${elsewhere.address().port}/`);
  await page.evaluate((src) => document.body.append(Object.assign(document.createElement('iframe'), { src })), `${service.address}/console/`);
  await mira.expectFinding(/frame-ancestors/);
});

story('token, key and session are in no DOM, storage or address', async () => {
  const mira = await visitor();
  const token = lumen.token('Mira at the office');
  await mira.open('/console/sign-in');
  await mira.page.fill('#token', token.secret);
  await mira.page.getByTestId('sign-in').click();
  await mira.page.waitForURL(`${service.address}/console/`);
  await cookieOf(mira);
  const addresses = [];
  mira.page.on('request', (request) => addresses.push(request.url(), request.headers().referer ?? ''));
  for (const path of PAGES) {
    await mira.open(path);
    const visible = await mira.page.evaluate(async () => {
      const values = [...document.querySelectorAll('input, textarea')].map((it) => it.value);
      const databases = await indexedDB.databases();
      const caches_ = await caches.keys();
      return JSON.stringify([
        ...[document.documentElement.outerHTML, values, { ...localStorage }, { ...sessionStorage }],
        ...[location.href, history.state, document.cookie, document.referrer, databases, caches_, window.name],
      ]);
    });
    for (const secret of service.secrets) {
      assert.ok(!visible.includes(secret), `${path} shows a secret`);
      assert.ok(!addresses.some((it) => it.includes(secret)), `${path}: a secret is in an address`);
    }
  }
  // The log is read when the service stops; it is not empty.
  assert.match(service.log(), /\/console\/session/);
});

story(`a revoked token signs out within ${REVOKED_MS / 1000} s`, async () => {
  const token = lumen.token('Mira on the train');
  const mira = await visitor();
  await mira.open('/console/sign-in');
  await mira.page.fill('#token', token.secret);
  await mira.page.getByTestId('sign-in').click();
  await mira.page.getByTestId('template-row').first().waitFor();
  service.cli('token', 'revoke', token.id);
  const revokedAt = Date.now();
  const ended = mira.page.locator('.sign-in', { hasText: 'Your session has ended' });
  // A person who goes on working meets the end of the session.
  for (let turn = 0; !(await ended.isVisible()); turn += 1) {
    assert.ok(Date.now() - revokedAt <= REVOKED_MS, 'still signed in');
    const path = turn % 2 === 0 ? '/console/account' : '/console/';
    await mira.page.locator(`.bar-nav a[href="${path}"]`).click({ timeout: 1_000 }).catch(() => undefined);
  }
  console.log(`signed out ${Date.now() - revokedAt} ms after the token was revoked`);
  await mira.expectFinding(/401/);
  assert.equal(await mira.page.getByTestId('template-row').count(), 0);
});
