// Debian's Chromium, visitors with their own cookies, and what a page must never show.
//
// SUITE_PACKAGES is the directory of the npm packages; SUITE_OUTPUT is where pictures of failures go.

import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { until } from './service.mjs';

const require = createRequire(join(process.env.SUITE_PACKAGES, 'package.json'));
const { chromium } = require('playwright-core');
const axeSource = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

/** WCAG 2.2 AA and what axe recommends besides. */
const AXE_TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

const ARGUMENTS = [
  ...['--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking'],
  ...['--disable-component-update', '--disable-sync', '--font-render-hinting=none'],
  // Chromium's own sandbox does not start as root.
  ...(process.getuid?.() === 0 ? ['--no-sandbox'] : []),
];

export const WAIT_MS = 15_000;

/** The requests under way, by page. @type {WeakMap<object, Set<unknown>>} */
const underWay = new WeakMap();

export async function launch() {
  return chromium.launch({ executablePath: process.env.SUITE_CHROMIUM, args: ARGUMENTS });
}

/** One person at a browser: own cookies, own storage. Collects everything that must not happen. */
export class Visitor {
  /**
   * @param {import('playwright-core').Browser} browser
   * @param {import('./service.mjs').Service} service
   * @param {{width?: number, height?: number, dark?: boolean, reducedMotion?: boolean}} [options]
   */
  static async arrive(browser, service, { width = 1280, height = 860, dark = false } = {}) {
    const visitor = new Visitor();
    visitor.service = service;
    visitor.context = await browser.newContext({
      viewport: { width, height },
      colorScheme: dark ? 'dark' : 'light',
      reducedMotion: 'reduce',
      locale: 'en-GB',
      timezoneId: 'UTC',
    });
    visitor.context.setDefaultTimeout(WAIT_MS);
    /** Errors and warnings of the browser's console, CSP reports, exceptions, and dialogs. */
    visitor.findings = [];
    /** @type {RegExp[]} */
    visitor.expected = [];
    await visitor.context.addInitScript(() => {
      document.addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI, sample }) => {
        console.error(`CSP: ${violatedDirective} ${blockedURI} ${sample}`);
      });
    });
    visitor.page = await visitor.tab();
    return visitor;
  }

  /** Opens a further tab of the same browser profile. */
  async tab() {
    const page = await this.context.newPage();
    const requests = new Set();
    underWay.set(page, requests);
    page.on('request', (request) => requests.add(request));
    page.on('requestfinished', (request) => requests.delete(request));
    page.on('requestfailed', (request) => requests.delete(request));
    page.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) this.findings.push(`${message.text()} ${message.location().url}`);
    });
    page.on('pageerror', (error) => this.findings.push(`exception: ${error.message}`));
    page.on('dialog', (dialog) => {
      this.findings.push(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    return page;
  }

  /** Follows a sign-in link; ends on the list, or on `next`. */
  async signIn(link, next = '/console/') {
    const [path, fragment] = link.split('#');
    const query = next === '/console/' ? '' : `?next=${encodeURIComponent(next)}`;
    await this.page.goto(`${this.service.address}${path}${query}#${fragment}`);
    await this.page.waitForURL((url) => url.pathname + url.search === next);
    await this.page.locator('.bar-nav').waitFor();
    return this;
  }

  async open(path, page = this.page) {
    await page.goto(this.service.address + path);
    await settled(page);
  }

  /**
   * Waits for a finding that a story provokes, such as the browser's line about a response with status
   * 412; from then on, the visitor may meet it.
   */
  async expectFinding(pattern) {
    this.expected.push(pattern);
    await until(() => this.findings.some((it) => pattern.test(it)), WAIT_MS, `a finding matches ${pattern}`);
  }

  assertNoFindings() {
    const found = this.findings.filter((it) => !this.expected.some((pattern) => pattern.test(it)));
    this.findings = [];
    if (found.length > 0) throw new Error(`${found.length} findings in the browser:\n${found.slice(0, 5).join('\n')}`);
  }
}

/** Waits until the page shows its content: a heading, nothing that loads, no request under way, all drawn. */
export async function settled(page) {
  await page.locator('main h1').waitFor({ state: 'attached' });
  const requests = underWay.get(page);
  do {
    await until(() => requests.size === 0, WAIT_MS, `requests of ${page.url()} end`);
    await page.waitForFunction(() => !document.querySelector('main [aria-busy=true], main .skeleton'));
    await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
  } while (requests.size > 0);
}

/** Runs axe on the page as it is. The driver's evaluate is not subject to the page's CSP, which stays on. */
export async function axe(page) {
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(axeSource);
  return page.evaluate(async (tags) => {
    const { violations } = await window.axe.run(document, {
      runOnly: { type: 'tag', values: tags },
      resultTypes: ['violations'],
    });
    return violations.map(({ id, nodes }) => {
      const [{ target, any, none }] = nodes;
      return `${id}: ${nodes.length} × ${target.join(' ')} ${any[0]?.message ?? none[0]?.message ?? ''}`;
    });
  }, AXE_TAGS);
}

/** How far the page is wider than the window. */
export const overflow = (page) =>
  page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

/** The violations that the page shows, as `rule@pointer`, sorted. */
export const shownViolations = (page) =>
  page
    .locator('[data-testid=violation]')
    .evaluateAll((found) => found.map((it) => `${it.dataset.rule}@${it.dataset.pointer}`).sort());

/** Keeps pictures of the pages of a failed test. @param {string} name @param {Visitor[]} visitors */
export async function keepPictures(name, visitors) {
  const directory = join(process.env.SUITE_OUTPUT, 'failures');
  mkdirSync(directory, { recursive: true });
  const pages = visitors.flatMap((visitor) => visitor.context.pages());
  for (const [index, page] of pages.entries()) {
    const path = join(directory, `${name.replaceAll(/\W+/g, '-')}-${index + 1}.png`);
    await page.screenshot({ path }).catch(() => undefined);
    console.error(`see ${path}, at ${page.url()}`);
  }
}
