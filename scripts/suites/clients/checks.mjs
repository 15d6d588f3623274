// Helpers of the Node client rounds: count checks, and compare documents sent with documents read. A
// failed check is printed immediately, and the round continues.

import { readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";

export const address = process.env.SUITE_ADDRESS;
export const account = process.env.SUITE_ACCOUNT;
export const token = process.env.SUITE_TOKEN;

export const png = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10, ...Array(256).keys()]);

let passedCount = 0;
let failedCount = 0;

/** Counts one check; prints the details if it fails. */
export function check(description, passed, ...details) {
  if (passed) {
    passedCount += 1;
    return;
  }
  failedCount += 1;
  console.error(`  failed: ${description}`, ...details.map((it) => `\n    ${JSON.stringify(it) ?? it}`));
}

export function checkEqual(description, actual, expected) {
  check(description, isDeepStrictEqual(actual, expected), actual, expected);
}

/** Checks that a call fails, and returns its error. */
export async function expectError(description, call) {
  try {
    check(description, false, await call());
    return undefined;
  } catch (error) {
    check(description, true);
    return error;
  }
}

/** Runs a round, prints the total and exits. */
export async function round(name, run) {
  try {
    await run();
  } catch (error) {
    check("the round completes", false, error?.stack, error?.response);
  }
  const manifest = new URL(`node_modules/${name}/package.json`, `file://${process.cwd()}/`);
  const { version } = JSON.parse(readFileSync(manifest, "utf8"));
  const options = process.env.SUITE_OPTIONS ? ` with ${process.env.SUITE_OPTIONS}` : "";
  const title = `${name} ${version}${options}`;
  console.log(
    failedCount > 0
      ? `${title}: ${failedCount} of ${passedCount + failedCount} checks failed`
      : `${title}: ${passedCount} checks passed`,
  );
  process.exit(failedCount > 0 || passedCount === 0 ? 1 : 0);
}

/**
 * Returns the paths where the document read differs from the document sent. Some values are returned
 * differently, as Meta does: a sample handle as its URL, a button code as a list, enum values in upper
 * case.
 */
export function differences(sent, read, path = "") {
  if (Array.isArray(sent)) {
    if (!Array.isArray(read) || sent.length !== read.length) return [path];
    return sent.flatMap((value, index) => differences(value, read[index], `${path}/${index}`));
  }
  if (sent !== null && typeof sent === "object") {
    if (read === null || typeof read !== "object") return [path];
    return Object.entries(sent).flatMap(([key, value]) => {
      const isHandle = key === "headerHandle" || key === "header_handle";
      if (isHandle && read[key]?.[0]?.startsWith(`${address}/media/`)) return [];
      const isCode = key === "example" && sent.type === "COPY_CODE" && typeof value === "string";
      const isEnumValue = key === "flowAction" || key === "flow_action";
      const expected = isCode ? [value] : isEnumValue ? value.toUpperCase() : value;
      return differences(expected, read[key], `${path}/${key}`);
    });
  }
  return isDeepStrictEqual(sent, read) ? [] : [path];
}
