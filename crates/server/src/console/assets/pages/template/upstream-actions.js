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

/** States in which the provider has the template, with the content that was sent here. */
const PRESENT = ['synced', 'queued', 'held', 'refused', 'conflict'];

/** @param {string} state @param {boolean} [isHeld] because of its category @returns {string[]} */
export const actionsOf = (state, isHeld = false) => {
  const actions = ACTIONS[state] ?? [];
  return isHeld && PRESENT.includes(state) && !actions.includes('accept') ? ['accept', ...actions] : actions;
};

/** Whether the provider changed the category of a template that does not allow it. @param {any} template */
export const isCategoryHeld = (template) => template.allow_category_change === false && Boolean(template.previous_category);

/** Whether the state changes by itself soon. @param {string} state */
export const isMoving = (state) => state === 'queued' || state === 'sending';

/** Whether both sides have content to compare. @param {string} state */
export const isCompared = (state) => state === 'drifted' || state === 'conflict';

/** Members that the two sides of a template have in common. @param {any} document */
export const comparable = ({ category, components = [] }) => ({ category, components });
