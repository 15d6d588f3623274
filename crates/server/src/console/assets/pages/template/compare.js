// Two versions side by side, word by word.
import { html, nothing } from '../../lit.js';
import { api } from '../../api.js';
import { strings } from '../../strings.js';
import { template as t } from '../../strings/template.js';
import { icon } from '../../ui/icons.js';
import { loading } from '../../ui/state.js';
import { changesView } from '../review/changes.js';

/** The content of a version, without what every version has. @param {any} template */
const content = ({ category, components }) => ({ category, components });

/** @param {import('../template.js').Shared} shared */
export function compareCard(shared) {
  const { context } = shared;
  let from = 0;
  let to = 0;
  /** The contents of both versions. @type {[unknown, unknown]|null} */
  let pair = null;
  /** Versions never change, so they are read once. @type {Map<number, Promise<any>>} */
  const read = new Map();

  /** @param {number} version */
  function document_(version) {
    const kept = read.get(version) ?? api.get(`message_templates/${shared.template.id}`, { query: { version }, signal: context.signal });
    read.set(version, kept);
    kept.catch(() => read.delete(version));
    return kept;
  }

  /** @param {number} older @param {number} newer */
  async function compare(older, newer) {
    from = older;
    to = newer;
    pair = null;
    context.update();
    try {
      const [before, after] = await Promise.all([document_(older), document_(newer)]);
      if (from !== older || to !== newer) return;
      pair = [content(before.data), content(after.data)];
      context.update();
    } catch (error) {
      shared.fail(error);
    }
  }

  /** Compares a version with the one before. @param {number} newer */
  function open(newer) {
    const at = shared.versions.findIndex((it) => it.version === newer);
    void compare(shared.versions[at + 1].version, newer);
    requestAnimationFrame(() => {
      document.getElementById('compare')?.scrollIntoView({ block: 'nearest' });
      document.getElementById('compare-title')?.focus();
    });
  }

  /** @param {string} label @param {number} value @param {(version: number) => void} choose */
  const choice = (label, value, choose) => html`<label class="compare-choice"><span class="label">${label}</span>
    <select class="select" @change=${(/** @type {any} */ event) => choose(Number(event.target.value))}>
      ${shared.versions.map((it) => html`<option value=${it.version} .selected=${it.version === value}>${t.version(it.version)} · ${strings.status[it.status]}</option>`)}
    </select></label>`;

  return {
    open,
    view: () => (from
      ? html`<section class="card" id="compare" aria-labelledby="compare-title">
        <header class="card-head"><h2 id="compare-title" tabindex="-1">${t.comparing}</h2>
          <button class="icon-button card-close" type="button" aria-label=${strings.actions.close} @click=${() => { from = 0; context.update(); }}>${icon('close')}</button></header>
        <div class="card-body stack">
          <div class="compare-choices">
            ${choice(t.from, from, (version) => compare(version, to))}
            ${icon('chevron', 'flip')}
            ${choice(t.to, to, (version) => compare(from, version))}
          </div>
          ${pair ? changesView(...pair) : loading(1)}
        </div>
      </section>`
      : nothing),
  };
}
