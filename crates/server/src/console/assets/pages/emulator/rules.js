// The review rules of the account, in the order in which they are tried. A PUT replaces them; the page only shows them.
import { html, nothing } from '../../lit.js';
import { api } from '../../api.js';
import { strings } from '../../strings.js';
import { emulator as t } from '../../strings/emulator.js';
import { tag } from '../../ui/badge.js';
import { reading } from './reading.js';

/** @param {any} it */
const rule = (it) => html`<li class="script-item" data-testid="rule">
  <p>${it.name ? html`<code dir="ltr">${it.name}</code>` : t.allNames}${it.category ? html` ${tag(strings.category[it.category] ?? it.category)}` : nothing}</p>
  <p class="quiet"><strong>${t.outcome[it.outcome] ?? it.outcome}</strong>${it.reason ? html` <code>${it.reason}</code>` : nothing}, ${it.after && it.after !== '0s' ? t.after(it.after) : t.atOnce}</p>
</li>`;

/** @param {import('../../main.js').Context} context */
export function rulesCard(context) {
  /** @type {ReturnType<typeof reading<any[]>>} */
  const rules = reading(context, async () => (await api.get('emulator/rules', { signal: context.signal })).data.rules);
  return {
    load: rules.load,
    view: () => html`<section class="card" aria-labelledby="rules-title">
      <header class="card-head"><div><h2 id="rules-title">${t.rules}</h2><p class="quiet">${t.rulesLead}</p></div></header>
      ${rules.state(1)}
      ${rules.value ? rules.value.length ? html`<ol class="script-items">${rules.value.map(rule)}</ol>` : html`<p class="card-body quiet">${t.noRules}</p>` : nothing}
    </section>`,
  };
}
