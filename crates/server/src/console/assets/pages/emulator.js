// The emulator of the account: its clock, the messages of the sandbox, review rules and faults.
import { html } from '../lit.js';
import { api } from '../api.js';
import { emulator as t } from '../strings/emulator.js';
import { icon } from '../ui/icons.js';
import { empty } from '../ui/state.js';
import { clockCard } from './emulator/clock.js';
import { faultsCard } from './emulator/faults.js';
import { inboxCard } from './emulator/inbox.js';
import { rulesCard } from './emulator/rules.js';
import { isIdle, notice } from './review/presence.js';

const SCOPE = 'emulator';
/** How often everything is read again while the page is visible and a person is there. */
const REFRESH_MS = 3_000;

/** @param {unknown} content */
const frame = (content) => html`<div class="page-head"><h1 tabindex="-1">${t.title}</h1></div>${content}`;

/** @param {import('../main.js').Context} context */
export function page(context) {
  const kind = api.session?.account.emulator;
  if (!kind) {
    return { title: t.title, view: () => frame(empty({ title: t.notAnEmulator, text: t.notAnEmulatorText, mark: 'info' })) };
  }
  if (!api.can(SCOPE)) {
    return { title: t.title, view: () => frame(html`<p class="card card-body locked quiet">${icon('key')}${t.needsScope(SCOPE)}</p>`) };
  }
  const inbox = inboxCard(context);
  const clock = clockCard(context, inbox.reload);
  const faults = faultsCard(context);
  const rules = rulesCard(context);
  const parts = [inbox, clock, faults, rules];
  const refresh = () => parts.forEach((it) => void it.load());
  refresh();
  const timer = setInterval(() => {
    if (document.visibilityState === 'visible' && !isIdle()) refresh();
  }, REFRESH_MS);
  document.addEventListener('visibilitychange', () => document.visibilityState === 'visible' && refresh(), { signal: context.signal });
  notice(context.signal, refresh);
  return {
    title: t.title,
    view: () => html`
      <div class="page-head"><h1 tabindex="-1">${t.title}</h1><p class="page-lead">${t.lead[kind]}</p></div>
      <div class="stack">
        ${clock.view()}
        <div class="emulator">${inbox.view()}<div class="stack">${rules.view()}${faults.view()}</div></div>
      </div>`,
    dispose() {
      clearInterval(timer);
      clock.dispose();
    },
  };
}
