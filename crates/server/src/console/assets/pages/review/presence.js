// Whether a person is there. A page that asks the service by itself keeps the session alive, so it stops
// a while after the last input and goes on with the next one.

const IDLE_MS = 10 * 60_000;
const INPUTS = ['pointerdown', 'pointermove', 'keydown', 'wheel'];

/** When the last input came, over all items of the queue. */
let lastInput = Date.now();

/** Whether the last input was long ago. */
export const isIdle = (now = Date.now()) => now - lastInput >= IDLE_MS;

/**
 * Notices input until the signal fires.
 * @param {AbortSignal} signal
 * @param {() => void} resume called with the first input after a pause
 * @param {EventTarget} target
 */
export function notice(signal, resume, target = document) {
  const noticed = () => {
    const wasIdle = isIdle();
    lastInput = Date.now();
    if (wasIdle) resume();
  };
  for (const input of INPUTS) target.addEventListener(input, noticed, { signal, passive: true });
}
