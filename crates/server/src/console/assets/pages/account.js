// The account: webhooks, tokens, audit feed, and who is signed in.
import { html } from '../lit.js';
import { api } from '../api.js';
import { account as t } from '../strings/account.js';
import { tokenName } from '../ui/author.js';
import { tag } from '../ui/badge.js';
import { timeFull } from '../ui/time.js';
import { auditCard } from './account/audit.js';
import { tokensCard } from './account/tokens.js';
import { upstreamCard } from './account/upstream.js';
import { webhooksCard } from './account/webhooks.js';

/** @param {string} term @param {unknown} detail */
const fact = (term, detail) => html`<div><dt>${term}</dt><dd>${detail}</dd></div>`;

function facts() {
  const { account, token, phone_number_ids: phones, idle_expires_at: idle, expires_at: expires } = /** @type {import('../api.js').Session} */ (api.session);
  return html`
    <section class="card" aria-labelledby="facts-title">
      <header class="card-head"><h2 id="facts-title">${t.account}</h2></header>
      <dl class="facts">
        ${fact(t.facts.name, html`<bdi>${account.name}</bdi>`)}
        ${fact(t.facts.id, html`<code>${account.id}</code>`)}
        ${fact(t.facts.rulebook, t.rulebook[account.rulebook] ?? account.rulebook)}
        ${fact(t.facts.review, t.review[account.review] ?? account.review)}
        ${fact(t.facts.fourEyes, account.four_eyes ? t.fourEyesOn : t.fourEyesOff)}
        ${account.emulator ? fact(t.facts.emulator, t.emulator[account.emulator] ?? account.emulator) : ''}
        ${fact(t.facts.phones, phones.length ? html`<span class="lines">${phones.map((it) => html`<code>${it}</code>`)}</span>` : t.anyPhone)}
      </dl>
    </section>
    <section class="card" aria-labelledby="session-title">
      <header class="card-head"><h2 id="session-title">${t.session}</h2></header>
      <dl class="facts">
        ${fact(t.facts.token, html`<bdi>${tokenName(token.id, token.name)}</bdi>`)}
        ${fact(t.facts.scopes, html`<span class="tags">${token.scopes.map(tag)}</span>`)}
        ${fact(t.facts.idle, timeFull(idle))}
        ${fact(t.facts.expires, timeFull(expires))}
      </dl>
    </section>`;
}

/** @param {import('../main.js').Context} context */
export function page(context) {
  const upstream = api.session?.account.connected ? [upstreamCard(context)] : [];
  const parts = [...upstream, webhooksCard(context), tokensCard(context), auditCard(context)];
  return {
    title: t.title,
    view: () => html`
      <div class="page-head"><h1 tabindex="-1">${t.title}</h1></div>
      <div class="account">
        <div class="stack">${parts.map((it) => it.view())}</div>
        <aside class="stack account-aside" aria-label=${t.account}>${api.session ? facts() : ''}</aside>
      </div>`,
  };
}
