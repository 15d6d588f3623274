// Texts that every page uses.
export const common = {
  product: 'Galley',
  home: 'Galley, all templates',
  skip: 'Skip to the content',
  navigation: 'Main',
  nav: { list: 'Templates', review: 'Review', emulator: 'Emulator', account: 'Account' },
  signedInAs: (/** @type {string} */ name) => `Signed in with the token ${name}`,
  stillSignedIn: (/** @type {string} */ why) => `You are still signed in: signing out did not work. ${why}. Try again.`,
  theme: { system: 'Theme: as the system', light: 'Theme: light', dark: 'Theme: dark' },
  loading: 'Loading…',
  justNow: 'just now',
  copied: 'Copied',
  copyFailed: 'The browser refused to copy. Select the text and copy it by hand.',
  actions: {
    cancel: 'Cancel', close: 'Close', copy: 'Copy', dismiss: 'Dismiss', retry: 'Try again', showMore: 'Show more',
    signOut: 'Sign out', edit: 'Edit', save: 'Save', reload: 'Show the present state',
  },
  status: /** @type {Record<string, string>} */ ({
    APPROVED: 'Approved', PENDING: 'Pending', REJECTED: 'Rejected', PAUSED: 'Paused', DISABLED: 'Disabled',
    ARCHIVED: 'Archived',
    delivered: 'Delivered', waiting: 'Waiting', failed: 'Failed', accepted: 'Accepted', sent: 'Sent', read: 'Read',
  }),
  category: /** @type {Record<string, string>} */ ({
    MARKETING: 'Marketing', UTILITY: 'Utility', AUTHENTICATION: 'Authentication',
  }),
  shortcuts: {
    title: 'Keyboard shortcuts',
    enable: 'Use shortcuts with single keys',
    note: 'Shortcuts pause while you type in a field.',
    help: 'Show this list', list: 'Go to the templates', review: 'Go to the review queue',
    account: 'Go to the account', emulator: 'Go to the emulator', create: 'Create a template',
  },
  notFound: {
    title: 'Page not found',
    text: 'This address does not lead to a page of the console.',
    action: 'All templates',
  },
  errors: {
    title: 'That did not work',
    unexpected: 'The console met an unexpected error. Reload the page; if it happens again, tell the operator.',
    requestId: 'Request id',
    bySlug: /** @type {Record<string, {title: string, text?: string}>} */ ({
      offline: { title: 'Galley does not answer', text: 'Check the connection and try again.' },
      'scope-missing': { title: 'Your token does not permit this' },
      'template-unknown': { title: 'This template does not exist', text: 'It was deleted, or it belongs to another account.' },
      'revision-outdated': { title: 'The template was changed in the meantime', text: 'Nothing was done. Look at the present state, then decide again.' },
      'session-ended': { title: 'Your session has ended', text: 'Sign in again to go on.' },
      'four-eyes': { title: 'Another person has to decide' },
    }),
  },
};
