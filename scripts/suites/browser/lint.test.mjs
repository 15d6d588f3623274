// The editor shows the violations that `galley lint --json` reports: the same rules at the same
// pointers, in the JSON view and in the form.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { settled, shownViolations } from './browser.mjs';
import { documents } from './documents.mjs';
import { openStage } from './stage.mjs';

const COUNT = 100;
/** How many of them are compared in the form as well. */
const FORMS = 30;

const { service, visitor, story } = await openStage();

/** What lint reports, as `rule@pointer`, sorted. */
function lint(text, rulebook) {
  const { stdout, stderr } = spawnSync(service.galley, ['lint', '--json', '--rulebook', rulebook, '-'], {
    input: text,
    encoding: 'utf8',
    cwd: service.work,
  });
  assert.equal(stderr, '');
  const report = JSON.parse(stdout);
  const [file] = report.files ?? report;
  return file.violations.map((it) => `${it.rule}@${it.pointer}`).sort();
}

for (const [index, rulebook] of ['v1', 'whatsapp'].entries()) {
  const account = service.account(`Account ${rulebook}`, rulebook, `1555000111${index}`);
  story(`violations in the editor equal those of lint: ${COUNT} documents of ${rulebook}`, async () => {
    const { page } = await visitor(account, { next: '/console/new' });
    const json = page.getByRole('radio', { name: 'JSON' });
    const form = page.getByRole('radio', { name: 'Form' });
    await json.check();
    const tested = { documents: 0, violations: 0, forms: 0, rules: new Set() };
    for (const text of documents(rulebook, COUNT)) {
      const expected = lint(text, rulebook);
      const answered = page.waitForResponse((it) => it.url().endsWith('/validate') && it.request().postData() === text);
      await page.locator('#json-text').fill(text);
      await answered;
      await settled(page);
      assert.deepEqual(await shownViolations(page), expected, `JSON view: ${text}`);
      tested.documents += 1;
      tested.violations += expected.length;
      for (const it of expected) tested.rules.add(it.split('@')[0]);
      if (tested.forms === FORMS || !(await form.isEnabled())) continue;
      const checked = page.waitForResponse((it) => it.url().endsWith('/validate'));
      await form.check();
      await checked;
      await settled(page);
      // A key that is there twice is not in the document that the form shows.
      const inForm = expected.filter((it) => !it.startsWith('duplicate-key@'));
      assert.deepEqual(await shownViolations(page), inForm, `form: ${text}`);
      tested.forms += 1;
      await json.check();
    }
    console.log(
      `${rulebook}: ${tested.documents} documents (${tested.forms} also in the form), ${tested.violations} violations of ${tested.rules.size} rules`,
    );
    assert.ok(tested.documents >= COUNT && tested.forms === FORMS && tested.rules.size >= 10);
  });
}
