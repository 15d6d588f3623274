// Uses the client that @hey-api/openapi-ts generated, without changes.

import { client } from './v1/client.gen.js';
import {
  createTemplate,
  createWebhook,
  deleteTemplate,
  deleteWebhook,
  editTemplate,
  listEvents,
  listTemplates,
  listVersions,
  listWebhooks,
  renderTemplate,
  reviewTemplate,
  showTemplate,
  validateTemplate,
} from './v1/sdk.gen.js';
import type { Component, Event, ListTemplatesData, NewTemplate, TemplateEdit, Values, Violation } from './v1/types.gen.js';

function setting(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set`);
  return value;
}

const run = Date.now().toString(16);
const path = { phone_number_id: setting('SUITE_PHONE'), key: setting('SUITE_KEY') };
client.setConfig({ baseUrl: setting('SUITE_ADDRESS'), auth: () => setting('SUITE_TOKEN') });

const passed = new Map<string, number>();
let failed = 0;

function check(description: string, condition: boolean | undefined, ...details: unknown[]): void {
  if (condition) {
    passed.set(description, (passed.get(description) ?? 0) + 1);
  } else {
    failed += 1;
    console.error(`  failed: ${description}`, JSON.stringify(details));
  }
}

/** The data of a successful response. */
async function ok<Data>(description: string, call: Promise<{ data?: Data; error?: unknown; response?: Response }>) {
  const { data, error, response } = await call;
  check(description, data !== undefined && response !== undefined, error);
  if (data === undefined || response === undefined) throw new Error(description);
  return { data, response };
}

const components: Component[] = [
  { type: 'HEADER', format: 'MEDIA', example: { media_url: 'https://shop.example/parcel.jpg' } },
  {
    type: 'BODY',
    text: 'Hi {{1}}, your order {{2}} is on its way.',
    example: { body_text: [['Ada', 'A-1024']] },
  },
  { type: 'FOOTER', text: 'Thank you for your order.' },
  {
    type: 'BUTTONS',
    buttons: [
      { type: 'QUICK_REPLY', text: 'Thank you' },
      { type: 'URL', text: 'Track it', url: 'https://shop.example/track/{{1}}', example: 'A-1024' },
      { type: 'PHONE_NUMBER', text: 'Call us', phone_number: '+15550001111' },
      { type: 'COPY_CODE', example: 'THANKS5' },
    ],
  },
];

function orderShipped(name: string): NewTemplate {
  return { name, language: 'en_US', category: 'UTILITY', allow_category_change: true, components };
}

// Create
const start = (await ok('position in the event feed', listEvents({ path, query: { after: 'latest' } }))).data;
const names = [0, 1, 2, 3, 4].map((it) => `order_shipped_ts_${run}_${it}`);
const ids: string[] = [];
for (const name of names) {
  const { data } = await ok('create', createTemplate({ path, body: orderShipped(name), headers: { 'Idempotency-Key': name } }));
  check('status', data.status === 'APPROVED' && data.category === 'UTILITY', data);
  ids.push(data.id);
}
const [id, paused] = ids as [string, string];
const [name] = names as [string];
const again = await ok('repeat', createTemplate({ path, body: orderShipped(name), headers: { 'Idempotency-Key': name } }));
check('idempotent create', again.data.id === id && again.response.headers.get('idempotent-replayed') === 'true');
const taken = await createTemplate({ path, body: orderShipped(name) });
check(
  'name conflict',
  taken.error?.type === '/problems/name-taken' && 'existing_id' in taken.error && taken.error.existing_id === id,
  taken.error,
);

// Read
const read = await ok('read', showTemplate({ path: { ...path, id } }));
const tag = read.response.headers.get('etag') ?? '';
check('name', read.data.name === name && read.data.version === 1, read.data);
check('what was sent is read', JSON.stringify(read.data.components) === JSON.stringify(components), read.data.components);
for (const component of read.data.components) {
  switch (component.type) {
    case 'HEADER':
      check('header', component.format === 'MEDIA' && component.example.media_url.endsWith('parcel.jpg'), component);
      break;
    case 'BODY':
      check('body', component.example?.body_text?.[0]?.[1] === 'A-1024', component);
      break;
    case 'BUTTONS': {
      const button = component.buttons[1];
      check('button', button?.type === 'URL' && button.url.includes('track'), button);
      break;
    }
    default:
      check('other component', component.type === 'FOOTER', component);
  }
}
const unchanged = await showTemplate({ path: { ...path, id }, headers: { 'If-None-Match': tag } });
check('conditional read', unchanged.response?.status === 304, unchanged);
const missing = await showTemplate({ path: { ...path, id: '1' } });
check('unknown template', missing.error?.type === '/problems/template-unknown', missing.error);

// List all pages
const found: string[] = [];
let pages = 0;
for (let after: string | undefined, more = true; more; ) {
  const filters: ListTemplatesData['query'] = { status: ['APPROVED'], category: ['UTILITY', 'MARKETING'] };
  const query = { ...filters, limit: 2, ...(after ? { after } : {}) };
  const { data } = await ok('page', listTemplates({ path, query }));
  found.push(...data.data.map((it) => it.id));
  pages += 1;
  more = data.paging.next !== undefined;
  after = data.paging.cursors.after;
}
check('all pages', pages >= 3 && ids.every((it) => found.includes(it)) && new Set(found).size === found.length, pages, found);

// Edit with the ETag
const edit: TemplateEdit = {
  components: read.data.components.map((it) => (it.type === 'FOOTER' ? { ...it, text: 'Thank you!' } : it)),
};
const edited = await ok('edit', editTemplate({ path: { ...path, id }, body: edit, headers: { 'If-Match': tag } }));
check('new version', edited.data.version === 2 && edited.response.headers.get('etag') !== tag, edited.data);
const outdated = await editTemplate({ path: { ...path, id }, body: edit, headers: { 'If-Match': tag } });
check('outdated edit', outdated.error?.type === '/problems/revision-outdated', outdated.error);
const versions = await ok('versions', listVersions({ path: { ...path, id } }));
check('both versions', versions.data.data.map((it) => it.version).join() === '2,1', versions.data);

// Render
const values: Values = {
  header: ['https://shop.example/parcel.jpg'],
  body: ['Ada', 'A-1024'],
  buttons: { 1: 'A-1024', 3: 'THANKS5' },
};
const rendered = await ok('render', renderTemplate({ path: { ...path, id }, body: values }));
check('text', rendered.data.texts.body === 'Hi Ada, your order A-1024 is on its way.', rendered.data.texts);
check('button', rendered.data.texts.buttons?.[1]?.url === 'https://shop.example/track/A-1024', rendered.data.texts);
const header = rendered.data.payload.template.components?.[0]?.parameters?.[0];
check('payload', header?.image?.link === 'https://shop.example/parcel.jpg', rendered.data.payload);
const wrong = await renderTemplate({ path: { ...path, id }, body: { body: ['Ada'] } });
check('wrong values', wrong.error && 'violations' in wrong.error && wrong.error.violations[0]?.rule === 'value-missing', wrong.error);

// A 422 as violations
const text = 'Hi {{1}}, {{3}} is on its way.';
const invalid: NewTemplate = {
  ...orderShipped(`invalid_${run}`),
  language: 'english',
  components: components.map((it) => (it.type === 'BODY' ? { ...it, text } : it)),
};
const rejected = await createTemplate({ path, body: invalid });
const violations: Violation[] = rejected.error && 'violations' in rejected.error ? rejected.error.violations : [];
check('violations', ['language-form', 'placeholder-gap'].every((rule) => violations.some((it) => it.rule === rule)), rejected.error);
const gap = violations.find((it) => it.rule === 'placeholder-gap');
check('span', gap?.pointer === '/components/1/text' && text.slice(gap.span?.start, gap.span?.end) === '{{3}}', gap);
const reused = await createTemplate({ path, body: invalid, headers: { 'Idempotency-Key': name } });
check('reused key', reused.error?.type === '/problems/idempotency-key-reused', reused.error);
const result = await ok('validate', validateTemplate({ path, body: invalid }));
check('not valid', !result.data.valid && result.data.violations.length >= 2, result.data);
const dryRun = await ok('validate an edit', validateTemplate({ path, body: edit, query: { template: id } }));
check('valid', dryRun.data.valid, dryRun.data);

// Review, webhooks, deletion
const review = await ok('review', reviewTemplate({ path: { ...path, id: paused }, body: { decision: 'pause', reason: 'Too many.' } }));
check('paused', review.data.status === 'PAUSED', review.data);
const webhook = await ok('webhook', createWebhook({ path, body: { url: 'http://127.0.0.1:9/hooks', events: ['template.approved'] } }));
check('secret', webhook.data.secret.startsWith('whsec_'), webhook.data);
const webhooks = await ok('webhooks', listWebhooks({ path }));
check('listed', webhooks.data.data.some((it) => it.id === webhook.data.id), webhooks.data);
const gone = await deleteWebhook({ path: { ...path, id: webhook.data.id } });
check('delete webhook', gone.response?.status === 204, gone.error);
for (const it of ids) {
  const deleted = await deleteTemplate({ path: { ...path, id: it } });
  check('delete', deleted.response?.status === 204, deleted.error);
}

// Events
const events: Event[] = [];
for (let after = start.paging.cursors.after, more = true; more; ) {
  const { data } = await ok('events', listEvents({ path, query: { after, limit: 3 } }));
  events.push(...data.data);
  more = data.paging.next !== undefined;
  after = data.paging.cursors.after;
}
check('events without gaps', events.every((it, index) => it.seq === (events[0]?.seq ?? 0) + index), events);
const types = events.flatMap((it) => ('template_id' in it && it.template_id === paused ? [it.type] : []));
check('events of a template', types.join() === 'template.created,template.paused,template.deleted', types);

const total = [...passed.values()].reduce((sum, it) => sum + it, failed);
console.log(`  ${[...passed].map(([it, count]) => (count > 1 ? `${it} ×${count}` : it)).join(', ')}`);
console.log(`@hey-api/openapi-ts: ${failed ? `${failed} of ${total} checks failed` : `${total} checks passed`}`);
process.exit(failed ? 1 : 0);
