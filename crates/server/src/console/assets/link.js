// The secret of a sign-in link is in the fragment of the address. It leaves the address, and with it the
// history, before anything else happens; the sign-in page takes it from here, once.

/** @type {string|null} */
let secret = null;

/** @returns {boolean} whether the address had a link */
export function captureLink() {
  const found = new URLSearchParams(location.hash.slice(1)).get('link');
  if (found === null) return false;
  secret = found;
  history.replaceState(history.state, '', location.pathname + location.search);
  return true;
}

export function takeLink() {
  const taken = secret;
  secret = null;
  return taken;
}
