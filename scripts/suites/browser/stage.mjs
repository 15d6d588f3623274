// One service and one browser for the tests of a file.

import { after, test } from 'node:test';
import { keepPictures, launch, Visitor } from './browser.mjs';
import { Service } from './service.mjs';

/** Starts both; they stop after the last test of the file. */
export async function openStage(settings) {
  const service = await Service.start(settings);
  const browser = await launch();
  /** @type {Visitor[]} */
  const visitors = [];
  after(async () => {
    try {
      await browser.close();
    } finally {
      await service.stop();
    }
  });
  return {
    service,
    browser,
    /** A person who is signed in with a link of the account, or not at all. */
    async visitor(account, { scopes, next, ...options } = {}) {
      const visitor = await Visitor.arrive(browser, service, options);
      visitors.push(visitor);
      if (account) await visitor.signIn(account.link(scopes), next);
      return visitor;
    },
    /** A test; at its end, no visitor may have met errors, and all of them leave. */
    story: (name, run) =>
      test(name, async () => {
        try {
          await run();
          for (const visitor of visitors) visitor.assertNoFindings();
        } catch (error) {
          await keepPictures(name, visitors);
          throw error;
        } finally {
          for (const visitor of visitors.splice(0)) await visitor.context.close();
        }
      }),
  };
}
