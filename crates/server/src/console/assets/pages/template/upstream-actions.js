// What can be done about a template at the provider, by its state there. The service decides again.

/** @type {Record<string, string[]>} */
const ACTIONS = {
  drifted: ['accept', 'push'],
  missing: ['push'],
  refused: ['retry'],
  conflict: ['accept', 'push', 'retry'],
  held: ['retry'],
  local: ['submit'],
};

/** @param {string} state @returns {string[]} */
export const actionsOf = (state) => ACTIONS[state] ?? [];

/** Whether the state changes by itself soon. @param {string} state */
export const isMoving = (state) => state === 'queued' || state === 'sending';

/** Whether both sides have content to compare. @param {string} state */
export const isCompared = (state) => state === 'drifted' || state === 'conflict';

/** Members that the two sides of a template have in common. @param {any} document */
export const comparable = ({ category, components = [] }) => ({ category, components });
