// Active access tokens: names, scopes, last use. Secrets never come here.
import { html, repeat } from '../../lit.js';
import { api } from '../../api.js';
import { account as t } from '../../strings/account.js';
import { tokenName } from '../../ui/author.js';
import { tag } from '../../ui/badge.js';
import { confirm } from '../../ui/dialog.js';
import { timeAgo, timeFull } from '../../ui/time.js';
import { toast } from '../../ui/toast.js';
import { part } from './part.js';

/** @param {import('../../main.js').Context} context */
export function tokensCard(context) {
  /** @type {any[]|null} */
  let tokens = null;

  async function load() {
    tokens = (await api.get('tokens', { signal: context.signal })).data.data;
  }

  /** @param {any} it */
  async function revoke(it) {
    const name = tokenName(it.id, it.name);
    const own = it.id === api.session?.token.id;
    const text = own ? `${t.revokeText(name)} ${t.revokeOwn}` : t.revokeText(name);
    if (!await confirm({ title: t.revokeTitle, text, action: t.revoke, danger: true })) return;
    await card.attempt(async () => {
      await api.delete(`tokens/${it.id}`);
      toast(t.revoked(name));
      await load();
    });
  }

  /** @param {any} it */
  const line = (it) => html`<tr data-testid="token">
    <td data-label=${t.tokenName}><span><strong><bdi>${tokenName(it.id, it.name)}</bdi></strong>${it.id === api.session?.token.id ? html` <span class="badge tone-live">${t.yours}</span>` : ''}</span></td>
    <td data-label=${t.scopes}><span class="tags">${it.scopes.map(tag)}</span></td>
    <td data-label=${t.lastUsed}><span class="quiet">${it.last_used_at ? timeAgo(it.last_used_at) : t.never}</span></td>
    <td data-label=${t.expires}><span class="quiet">${it.expires_at ? timeFull(it.expires_at) : t.noExpiry}</span></td>
    <td><button class="button button-small" type="button" aria-label=${t.revokeToken(tokenName(it.id, it.name))} @click=${() => revoke(it)}>${t.revoke}</button></td>
  </tr>`;

  const card = part(context, {
    id: 'tokens-title',
    title: t.tokens,
    lead: t.tokensLead,
    scope: 'credentials',
    load,
    loaded: () => tokens !== null,
    content: () => html`<table class="table"><thead><tr><th scope="col">${t.tokenName}</th><th scope="col">${t.scopes}</th><th scope="col">${t.lastUsed}</th><th scope="col">${t.expires}</th><th scope="col"><span class="visually-hidden">${t.revoke}</span></th></tr></thead>
      <tbody>${repeat(tokens ?? [], (it) => it.id, line)}</tbody></table>`,
  });
  return card;
}
