// Texts of the sign-in page.
export const signIn = {
  title: 'Sign in',
  lead: 'See, edit and review message templates.',
  token: 'Access token',
  tokenHint: 'It begins with gt_. The operator or a colleague with the scope “credentials” creates it.',
  submit: 'Sign in',
  busy: 'Signing in…',
  byLink: 'Signing in with your link…',
  /** @param {string} account */
  replaces: (account) => `You are signed in to ${account}. The link ends this session and signs you in to the account that it is for.`,
  replace: 'Sign in with the link',
  stay: 'Stay signed in',
  ended: 'Your session has ended. Sign in again to go on where you were.',
  otherWay: 'No token at hand? The operator can send you a link that works once:',
  command: 'galley console ACCOUNT',
  show: 'Show the token',
  hide: 'Hide the token',
  required: 'Enter the access token.',
  problems: /** @type {Record<string, string>} */ ({
    'invalid-link': 'This link was used before, or its 60 seconds are over. Ask for a new one.',
    'token-unknown': 'This token does not exist. Check that you copied all of it.',
    'token-expired': 'This token has expired. Use a newer one.',
    'token-revoked': 'This token was revoked. Use another one.',
    'account-disabled': 'The account of this token is disabled. Ask the operator.',
    'too-many-failures': 'Too many wrong tokens came from your address. Wait a minute, then try again.',
  }),
};
