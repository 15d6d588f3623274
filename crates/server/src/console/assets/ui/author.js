// The author of a change, as people read it.
// Their words are here, not in strings/, because the editor loads those and names no author.

/** A token by its name; one without a name by its id. @param {string|undefined} id @param {string|undefined} name */
export const tokenName = (id, name) => name || `token ${id ?? '?'}`;

/** @param {string|undefined} id of a token, `operator` or `service` @param {string|undefined} name of the token */
export function author(id, name) {
  if (id === 'operator') return 'the operator';
  if (id === 'service') return 'the service';
  return tokenName(id, name);
}
