// What the rounds of the Node clients share: counting checks, and comparing what was sent with what
// is read back. A check that fails is told at once, and the round goes on.

import { readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";

export const address = process.env.SUITE_ADDRESS;
export const account = process.env.SUITE_ACCOUNT;
export const token = process.env.SUITE_TOKEN;

export const png = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10, ...Array(256).keys()]);

let passed = 0;
let failed = 0;

/** Counts one check; `seen` is told if it fails. */
export function check(what, good, ...seen) {
  if (good) {
    passed += 1;
    return;
  }
  failed += 1;
  console.error(`  not so: ${what}`, ...seen.map((it) => `\n    ${JSON.stringify(it) ?? it}`));
}

export function equal(what, seen, wanted) {
  check(what, isDeepStrictEqual(seen, wanted), seen, wanted);
}

/** Demands that a call is refused, and gives the refusal back. */
export async function refused(what, call) {
  try {
    check(what, false, await call());
    return undefined;
  } catch (error) {
    check(what, true);
    return error;
  }
}

/** Runs a round to its end, tells the total and ends the process. */
export async function round(name, run) {
  try {
    await run();
  } catch (error) {
    check("the round goes to its end", false, error?.stack, error?.response);
  }
  const manifest = new URL(`node_modules/${name}/package.json`, `file://${process.cwd()}/`);
  const { version } = JSON.parse(readFileSync(manifest, "utf8"));
  console.log(
    failed > 0
      ? `${name} ${version}: ${failed} of ${passed + failed} checks failed`
      : `${name} ${version}: ${passed} checks passed`,
  );
  process.exit(failed > 0 || passed === 0 ? 1 : 0);
}

/**
 * Where what was read back does not hold what was sent. Some things are read back otherwise, as from
 * Meta: the handle of a sample as its address, the code of a button as a list, words in capitals.
 */
export function missing(sent, read, at = "") {
  if (Array.isArray(sent)) {
    if (!Array.isArray(read) || sent.length !== read.length) return [at];
    return sent.flatMap((value, index) => missing(value, read[index], `${at}/${index}`));
  }
  if (sent !== null && typeof sent === "object") {
    if (read === null || typeof read !== "object") return [at];
    return Object.entries(sent).flatMap(([key, value]) => {
      const handle = key === "headerHandle" || key === "header_handle";
      if (handle && read[key]?.[0]?.startsWith(`${address}/media/`)) return [];
      const code = key === "example" && sent.type === "COPY_CODE" && typeof value === "string";
      const word = key === "flowAction" || key === "flow_action";
      const wanted = code ? [value] : word ? value.toUpperCase() : value;
      return missing(wanted, read[key], `${at}/${key}`);
    });
  }
  return isDeepStrictEqual(sent, read) ? [] : [at];
}
