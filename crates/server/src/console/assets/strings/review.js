// Texts of the review queue.

const number = new Intl.NumberFormat('en');

export const review = {
  title: 'Review',
  queue: 'Queue, oldest template first',
  waiting: (/** @type {number} */ count, /** @type {boolean} */ more) =>
    `${number.format(count)}${more ? '+' : ''} waiting`,
  more: (/** @type {number} */ count) =>
    `The queue is longer: these are the first ${number.format(count)}, in the order in which the templates were created. More follow as you go on.`,
  position: (/** @type {number} */ index, /** @type {number} */ count) => `${index} of ${count}`,
  by: (/** @type {string} */ name) => `by ${name}`,
  empty: 'Nothing waits for review',
  emptyText: 'New and edited templates appear here. This page looks again by itself.',
  notPending: 'This template is not waiting for review any more.',
  openNext: 'Open the next one',
  approve: 'Approve',
  reject: 'Reject',
  reason: 'Reason',
  reasonHint: 'Required to reject. The author reads it.',
  reasonMissing: 'Write a reason: the author has to know what to change.',
  approved: (/** @type {string} */ name) => `Approved ${name}`,
  rejected: (/** @type {string} */ name) => `Rejected ${name}`,
  decision: 'Decision',
  changes: 'What changes',
  comparedWith: {
    live: (/** @type {number} */ version) => `compared with version ${version}, which is live`,
    approved: (/** @type {number} */ version) => `compared with version ${version}, the last approved one; none is live`,
    previous: (/** @type {number} */ version) => `compared with version ${version}, the one before; none was approved yet`,
  },
  newTemplate: 'New template: this is its first version.',
  rejectedBefore: (/** @type {number} */ version) => `Version ${version} was rejected:`,
  base: {
    live: (/** @type {number} */ version) => `Live now, version ${version}`,
    approved: (/** @type {number} */ version) => `Approved last, version ${version}`,
    previous: (/** @type {number} */ version) => `Before, version ${version}`,
  },
  proposed: (/** @type {number} */ version) => `Proposed, version ${version}`,
  version: (/** @type {number} */ version) => `Version ${version}`,
  proofs: 'Proofs',
  own: 'You created or edited this version. This account works with four eyes: another person has to decide.',
  mayNot: 'Your token cannot decide: it lacks the scope review.',
  stale: 'The template was changed while you read it. Nothing was decided.',
  staleAction: 'Show the new version',
  edit: 'Edit',
  open: 'Template page',
  rest: 'Samples and settings',
  shortcuts: {
    approve: 'Approve',
    reject: 'Reject: write the reason',
    next: 'Next in the queue',
    previous: 'Previous in the queue',
    send: 'Send the rejection',
  },
};
