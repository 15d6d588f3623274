// The messages that the sandbox has accepted, as their recipients read them.
import { html, nothing, repeat } from '../../lit.js';
import { api, isAbort } from '../../api.js';
import { proofView } from '../../proof.js';
import { paths } from '../../router.js';
import { emulator as t } from '../../strings/emulator.js';
import { badge } from '../../ui/badge.js';
import { copyButton } from '../../ui/copy.js';
import { pager } from '../../ui/pager.js';
import { empty, notice } from '../../ui/state.js';
import { mergeFirstPage } from '../review/merge.js';
import { clockText } from './clock-time.js';
import { firstMessage, phoneNumber, proofOf } from './message.js';
import { reading } from './reading.js';

const PAGE = 20;
const MOST = 100;

/** @typedef {{id: string, to: string, template_id: string, name?: string, language?: string, template_deleted?: boolean, version: number, status: string, code?: number, sent_at: string, texts: import('./message.js').Texts}} Message */
/** @typedef {{items: Message[], after: string|undefined}} Page */

/** Whether the template is gone; without a name, the service does not even know it any more. @param {Message} it */
const isDeleted = (it) => it.template_deleted || it.name === undefined;

/** @param {import('../../main.js').Context} context */
export function inboxCard(context) {
  const { signal, update } = context;
  /** Versions that were sent, with their components. @type {Map<string, any>} */
  const templates = new Map();
  let isBusy = false;
  /** @type {unknown} */
  let moreError = null;

  /** @param {number} limit @param {string} [after] @returns {Promise<Page>} */
  async function readPage(limit, after) {
    const { data } = await api.get('emulator/messages', { query: { limit, after }, signal });
    data.data.forEach(readTemplate);
    return { items: data.data, after: new URLSearchParams(data.next ?? '').get('after') ?? undefined };
  }

  /** @param {Message} it */
  const key = (it) => `${it.template_id}/${it.version}`;

  /** Only the template knows of which kind a header is. @param {Message} it */
  async function readTemplate(it) {
    const hasHeader = it.texts.header || it.texts.cards?.some((card) => card.header);
    if (!hasHeader || isDeleted(it) || templates.has(key(it))) return;
    templates.set(key(it), undefined);
    try {
      templates.set(key(it), (await api.get(`message_templates/${it.template_id}`, { query: { version: it.version }, signal })).data);
    } catch {
      return; // The kind is guessed.
    }
    update();
  }

  const messages = /** @type {ReturnType<typeof reading<Page>>} */ (reading(context, async () => {
    const former = messages.value;
    const limit = Math.min(Math.max(former?.items.length ?? 0, PAGE), MOST);
    const first = await readPage(limit);
    if (!former) return first;
    const known = new Set(former.items.map((it) => it.id));
    const arrived = first.items.filter((it) => !known.has(it.id)).length;
    if (arrived) context.announce(t.arrived(arrived));
    return mergeFirstPage(former, first);
  }));

  async function more() {
    isBusy = true;
    moreError = null;
    update();
    try {
      const page = await readPage(PAGE, messages.value?.after);
      const known = new Set(messages.value?.items.map((it) => it.id));
      messages.value = { items: [...(messages.value?.items ?? []), ...page.items.filter((it) => !known.has(it.id))], after: page.after };
    } catch (error) {
      if (isAbort(error)) return;
      moreError = error;
    }
    isBusy = false;
    update();
  }

  /** @param {Message} it */
  function message(it) {
    const template = { components: templates.get(key(it))?.components, language: it.language };
    const to = phoneNumber(it.to);
    const name = it.name ?? it.template_id;
    return html`<li class="message" data-testid="message" data-id=${it.id}>
      <div class="message-facts">
        <p class="message-to"><span class="visually-hidden">${t.to}</span> <bdi dir="ltr">${to}</bdi></p>
        <p class="message-status">${badge(it.status)}${it.code ? html` <span class="quiet">${t.code(it.code)}</span>` : nothing}</p>
        <p class="message-template"><span class="visually-hidden">${t.template}</span>
          ${isDeleted(it) ? html`<bdi>${t.deleted(name)}</bdi>` : html`<a href=${paths.template(it.template_id)}><bdi>${name}</bdi></a>`}
          <span class="quiet">${t.version(it.version)}</span></p>
        <p class="quiet"><span class="visually-hidden">${t.sent}</span> <time dir="auto" datetime=${it.sent_at} title=${t.sentAt}>${clockText(it.sent_at)}</time></p>
      </div>
      ${proofView(proofOf(it.texts, template, t.copyCode), { label: t.messageTo(to), language: it.language, empty: t.emptyMessage })}
    </li>`;
  }

  function none() {
    const session = api.session;
    const calls = firstMessage({ origin: location.origin, account: session?.account.id ?? '', phone: session?.phone_number_ids[0] });
    return html`${empty({ title: t.noMessages, text: t.noMessagesText, mark: 'send' })}
      <div class="inbox-calls"><pre class="well" tabindex="0" role="region" aria-label=${t.firstMessage}>${calls}</pre>${copyButton(calls)}</div>`;
  }

  return {
    load: messages.load,
    reload: messages.reload,
    view: () => html`<section class="card inbox" aria-labelledby="inbox-title">
      <header class="card-head"><div><h2 id="inbox-title">${t.inbox}</h2><p class="quiet">${t.inboxLead}</p></div></header>
      ${messages.state(3)}
      ${messages.value ? messages.value.items.length
    ? html`<ol class="messages">${repeat(messages.value.items, (it) => it.id, message)}</ol>
          ${moreError ? html`<div class="card-body">${notice(moreError)}</div>` : nothing}
          ${pager({ more: messages.value.after !== undefined, busy: isBusy, load: more })}`
    : none() : nothing}
    </section>`,
  };
}
