// The faults of the account: which calls fail, how, and how often they did.
import { html, nothing, repeat } from '../../lit.js';
import { api, isAbort } from '../../api.js';
import { strings } from '../../strings.js';
import { emulator as t } from '../../strings/emulator.js';
import { tag } from '../../ui/badge.js';
import { confirm } from '../../ui/dialog.js';
import { icon } from '../../ui/icons.js';
import { notice } from '../../ui/state.js';
import { toast } from '../../ui/toast.js';
import { reading } from './reading.js';

const percent = new Intl.NumberFormat(strings.lang, { style: 'percent', maximumFractionDigits: 4 });

/** @param {any} it */
const frequency = (it) => (it.times ? t.times(it.times, it.matched) : t.share(percent.format(it.share), it.matched));

/** @param {import('../../main.js').Context} context */
export function faultsCard(context) {
  /** @type {ReturnType<typeof reading<any[]>>} */
  const faults = reading(context, async () => (await api.get('emulator/faults', { signal: context.signal })).data.data);
  /** @type {unknown} */
  let error = null;

  /** @param {string} path @param {string} done */
  async function remove(path, done) {
    error = null;
    try {
      await api.delete(path, { signal: context.signal });
      toast(done);
    } catch (problem) {
      if (isAbort(problem)) return;
      error = problem;
    }
    await faults.reload();
    requestAnimationFrame(() => {
      // The button that had the focus is gone.
      if (document.activeElement === document.body) document.getElementById('faults-title')?.focus();
    });
  }

  async function removeAll() {
    if (await confirm({ title: t.deleteAllTitle, text: t.deleteAllText, action: t.deleteAll, danger: true })) {
      await remove('emulator/faults', t.faultsDeleted);
    }
  }

  /** @param {any} it */
  const fault = (it) => html`<li class="script-item fault" data-testid="fault">
    <div>
      <p><span class="quiet">#${it.id}</span> <strong>${it.call}</strong> <code dir="ltr">${it.kind}${it.code === undefined ? '' : ` ${it.code}`}${it.delay ? ` ${it.delay}` : ''}</code></p>
      <p class="quiet">${it.name ? html`<code dir="ltr">${it.name}</code> · ` : nothing}${frequency(it)}${it.spent ? html` ${tag(t.spent)}` : nothing}</p>
    </div>
    <button class="icon-button" type="button" aria-label=${t.deleteFault(it.id)} title=${t.deleteFault(it.id)} @click=${() => remove(`emulator/faults/${it.id}`, t.faultDeleted(it.id))}>${icon('trash')}</button>
  </li>`;

  return {
    load: faults.load,
    view: () => html`<section class="card" aria-labelledby="faults-title">
      <header class="card-head"><div><h2 id="faults-title" tabindex="-1">${t.faults}</h2><p class="quiet">${t.faultsLead}</p></div>
        ${faults.value?.length ? html`<button class="button button-small" type="button" @click=${removeAll}>${t.deleteAll}</button>` : nothing}</header>
      ${error ? html`<div class="card-body">${notice(error)}</div>` : nothing}
      ${faults.state(1)}
      ${faults.value ? faults.value.length ? html`<ul class="script-items">${repeat(faults.value, (it) => it.id, fault)}</ul>` : html`<p class="card-body quiet">${t.noFaults}</p>` : nothing}
    </section>`,
  };
}
