// Realistic templates for the pages: an energy supplier with the rulebook whatsapp.

const body = (text, ...samples) => ({
  type: 'BODY',
  text,
  ...(samples.length > 0 ? { example: { body_text: [samples] } } : {}),
});
const header = (text, ...samples) => ({
  type: 'HEADER',
  format: 'TEXT',
  text,
  ...(samples.length > 0 ? { example: { header_text: samples } } : {}),
});
const footer = (text) => ({ type: 'FOOTER', text });
const buttons = (...list) => ({ type: 'BUTTONS', buttons: list });
const reply = (text) => ({ type: 'QUICK_REPLY', text });
const link = (text, url, sample) => ({ type: 'URL', text, url, ...(sample ? { example: [sample] } : {}) });

const INVOICE_URL = 'https://lumen.example/invoices/';
const invoiceButtons = (open, question) =>
  buttons(link(open, `${INVOICE_URL}{{1}}`, `${INVOICE_URL}R-2026-118`), reply(question));

const INVOICE = {
  en_US: [
    header('Invoice {{1}}', 'R-2026-118'),
    body(
      'Hello {{1}}, your electricity invoice for *{{2}}* is ready. The amount of *{{3}}* will be collected on {{4}}.\n\nYou do not need to do anything.',
      ...['Ada', 'October', '€ 84.20', 'November 28'],
    ),
    footer('Lumen Energy · Reply STOP to opt out'),
    invoiceButtons('Open the invoice', 'I have a question'),
  ],
  de: [
    header('Rechnung {{1}}', 'R-2026-118'),
    body(
      'Hallo {{1}}, deine Stromrechnung für *{{2}}* ist da. Der Betrag von *{{3}}* wird am {{4}} eingezogen.\n\nDu musst nichts weiter tun.',
      ...['Ada', 'Oktober', '84,20 €', '28. November'],
    ),
    footer('Lumen Energy · STOP zum Abmelden'),
    invoiceButtons('Rechnung öffnen', 'Ich habe eine Frage'),
  ],
  fr: [
    header('Facture {{1}}', 'R-2026-118'),
    body(
      'Bonjour {{1}}, votre facture pour *{{2}}* est disponible. Le montant de *{{3}}* sera prélevé le {{4}} au plus tôt.',
      ...['Ada', 'octobre', '84,20 €', '28 novembre'],
    ),
  ],
  ar: [
    header('فاتورة {{1}}', 'R-2026-118'),
    body(
      'مرحبًا {{1}}، فاتورة الكهرباء لشهر *{{2}}* جاهزة. سيتم سحب مبلغ *{{3}}* في {{4}} تلقائيًا.',
      ...['ليلى', 'أكتوبر', '84.20 €', '28 نوفمبر'],
    ),
    footer('لومن للطاقة'),
  ],
  he: [body('שלום {{1}}, החשבון שלך לחודש *{{2}}* מוכן. הסכום *{{3}}* ייגבה בקרוב.', 'נועה', 'אוקטובר', '₪ 320')],
};

const INVOICE_EDITED = [
  header('Your invoice {{1}}', 'R-2026-118'),
  body(
    'Hi {{1}}, your electricity invoice for *{{2}}* is ready. We will collect *{{3}}* from your account on {{4}}.\n\nNothing to do for you.\n\n_Questions? Just reply to this message._',
    ...['Ada', 'October', '€ 84.20', 'November 28'],
  ),
  ...INVOICE.en_US.slice(2),
];

const OUTAGE = {
  en_US:
    'We are working on a power outage in {{1}}. Power should be back by *{{2}}*.\n\n- Check your fuse box first\n- Keep the fridge closed\n- Call us only in an emergency',
  de: 'In {{1}} ist der Strom ausgefallen. Bis *{{2}}* sollte er wieder da sein.\n\n- Prüfe zuerst die Sicherungen\n- Lass den Kühlschrank zu',
  es: 'Estamos trabajando en un corte de luz en {{1}}. Volverá antes de las *{{2}}* horas.',
  pl: 'Usuwamy awarię prądu w {{1}}. Prąd wróci do *{{2}}* najpóźniej.',
};

const WINTER = [
  header('Winter tariff'),
  body(
    'Hi {{1}}! Lock in *{{2}}* per kWh until March.\n\n> “We saved 140 € last winter.” — the Kims\n\nOffer ends {{3}}. ~{{4}}~ only {{2}} now!',
    ...['Sam', '24 ct', 'November 30', '31 ct'],
  ),
  footer('Reply STOP to opt out'),
  buttons(
    link('See the offer', 'https://lumen.example/winter'),
    { type: 'PHONE_NUMBER', text: 'Call us', phone_number: '+4930111222333' },
    { type: 'COPY_CODE', example: 'WINTER24' },
    reply('Not interested'),
  ),
];

/** Name, category, text, samples. */
const PLAIN = [
  ['meter_reading', 'UTILITY', 'Please send us your meter reading by {{1}}. It takes one minute.', 'Friday'],
  ['contract_renewed', 'UTILITY', 'Good news, {{1}}: your contract now runs until {{2}} at the same price.', 'Ada', 'June 2027'],
  ['appointment_reminder', 'UTILITY', 'Our technician visits you on {{1}} between {{2}} and {{3}}. Please be at home.', 'Monday', '9', '11'],
  ['move_in_checklist', 'UTILITY', 'Welcome home, {{1}}!\n\n1. Note the meter reading\n2. Send us a photo\n3. Done', 'Ada'],
  ['solar_webinar', 'MARKETING', 'Join our free solar webinar on {{1}}. We show what a balcony plant really yields.', 'Thursday'],
  ['refer_a_friend', 'MARKETING', 'Tell a friend about Lumen: you both get {{1}} when they switch to us.', '50 €'],
  ['payment_failed', 'UTILITY', 'We could not collect {{1}}. Please check your account details until {{2}}, or reply here.', '84.20 €', 'Friday'],
  ['tariff_change_notice', 'UTILITY', 'From {{1}} on, your price per kWh changes to {{2}}. You may cancel until {{3}} free of charge.', 'January 1', '29 ct', 'December 15'],
];

/** Creates an account with everything that the screens show. Returns it, its tokens and the ids of its templates. */
export async function energySupplier(service, { webhook } = {}) {
  const account = service.account('Lumen Energy', 'whatsapp', '4930111222333');
  const mira = account.token('Mira (marketing)');
  const jonas = account.token('Jonas (review)');
  const nightly = account.token('nightly import', 'read,write');
  const ids = {};
  const create = async (name, language, category, components, author = mira) => {
    const document = { name, language, category, components };
    const { id } = await account.call(author, 'POST', '/message_templates', document);
    ids[`${name}:${language}`] = id;
    return id;
  };
  const edit = (id, components, author = mira) =>
    account.call(author, 'PATCH', `/message_templates/${id}`, { components });
  const decide = (id, decision, reason) =>
    account.call(jonas, 'POST', `/message_templates/${id}/review`, reason ? { decision, reason } : { decision });

  if (webhook) {
    await account.call(mira, 'POST', '/webhooks', { url: `${webhook}/galley` });
    const events = ['template.approved', 'template.rejected'];
    await account.call(mira, 'POST', '/webhooks', { url: `${webhook}/decisions`, events });
  }
  const party = await create('summer_party', 'en_US', 'MARKETING', [
    body('Our summer party starts at {{1}} in the courtyard. Bring a friend!', '18:00'),
  ]);
  await decide(party, 'approve');
  await decide(party, 'disable', 'The party is over.');
  for (const [index, [name, category, text, ...samples]] of PLAIN.entries()) {
    const id = await create(name, 'en_US', category, [body(text, ...samples)], index % 3 ? mira : nightly);
    if (index % 4 !== 1) await decide(id, 'approve');
    if (index % 5 === 2) await edit(id, [body(text.replace('.', ' — thank you.'), ...samples)]);
    if (index % 2) {
      const german = `Guten Tag {{1}}, wir melden uns wegen „${name.replaceAll('_', ' ')}“ und helfen gern weiter.`;
      const translated = await create(name, 'de', category, [body(german, 'Ada')]);
      if (index % 3 === 0) await decide(translated, 'approve');
    }
  }
  for (const [language, text] of Object.entries(OUTAGE)) {
    const id = await create('power_outage', language, 'UTILITY', [body(text, 'Berlin-Mitte', '18:30')]);
    if (language !== 'pl') await decide(id, 'approve');
    if (language === 'es') await decide(id, 'pause', 'The Spanish hotline is closed this week.');
  }
  const winter = await create('winter_tariff', 'en_US', 'MARKETING', WINTER);
  await decide(winter, 'reject', 'The saving in the quote needs a source. Also say that the price excludes the base fee.');
  for (const [language, components] of Object.entries(INVOICE)) {
    const id = await create('invoice_ready', language, 'UTILITY', components);
    if (language === 'fr') await decide(id, 'reject', 'The other languages have a footer with the opt-out. Please add it here, too.');
    else if (language !== 'he') await decide(id, 'approve');
  }
  await edit(ids['invoice_ready:en_US'], INVOICE_EDITED, nightly);
  return { account, mira, jonas, nightly, ids };
}

const DAY_MS = 24 * 60 * 60 * 1000;

/** A message to send: its values in the order of the placeholders of header, body and button. */
const filled = (name, language, values, link) => {
  const parameters = (texts) => texts.map((text) => ({ type: 'text', text }));
  const components = Object.entries(values).map(([type, texts]) => ({ type, parameters: parameters(texts) }));
  const button = { type: 'button', sub_type: 'url', index: '0', parameters: parameters([link]) };
  return { name, language: { code: language }, components: link ? [...components, button] : components };
};

/**
 * Creates an emulator account with messages, rules, faults and a template that is approved in one second. Its clock
 * stands a while after `clockStart`, a morning in the future; all times of its messages are exact.
 */
export async function sandbox(service) {
  const account = service.emulator('Lumen sandbox', '4930111222444');
  const token = account.token('pipeline');
  const call = (method, path, body) => account.call(token, method, path, body);
  const create = (name, language, category, components) =>
    call('POST', '/message_templates', { name, language, category, components });
  const clock = (change) => call('POST', '/emulator/clock', change);
  for (const language of ['en_US', 'ar']) await create('invoice_ready', language, 'UTILITY', INVOICE[language]);
  await create('power_outage', 'en_US', 'UTILITY', [body(OUTAGE.en_US, 'Berlin-Mitte', '18:30')]);
  await create('meter_reading', 'en_US', 'UTILITY', [body('Please send us your meter reading by *{{1}}*. It takes one minute.', 'Friday')]);

  const clockStart = Math.ceil(Date.now() / DAY_MS + 1) * DAY_MS + 9 * 60 * 60 * 1000;
  await clock({ set: new Date(clockStart).toISOString() });
  const ARABIC = ['ليلى', 'أكتوبر', '84.20 €', '28 نوفمبر'];
  await account.send(token, '966501234567', filled('invoice_ready', 'ar', { header: ['R-2026-117'], body: ARABIC }));
  await clock({ advance: '12m' });
  await account.send(token, '+1 555 010 131026', filled('power_outage', 'en_US', { body: ['Berlin-Mitte', '18:30'] }));
  await create('solar_webinar_pending_10m', 'en_US', 'MARKETING', [
    body('Join our free solar webinar on {{1}}. We show what a balcony plant yields.', 'Thursday'),
  ]);
  await clock({ advance: '9m57s' });
  const INVOICE_VALUES = { header: ['R-2026-118'], body: ['Ada', 'October', '€ 84.20', 'November 28'] };
  await account.send(token, '4915112345678', filled('invoice_ready', 'en_US', INVOICE_VALUES, 'R-2026-118'));
  await clock({ advance: '2s' });
  await account.send(token, '4915187654321', filled('meter_reading', 'en_US', { body: ['Friday'] }));

  await call('PUT', '/emulator/rules', {
    rules: [
      { name: 'promo_*', outcome: 'reject', reason: 'PROMOTIONAL' },
      { category: 'MARKETING', after: '2h', outcome: 'approve' },
      { name: 'survey_?', after: '10m', outcome: 'to_marketing' },
    ],
  });
  await call('POST', '/emulator/faults', { call: 'send', name: 'promo_*', times: 3, kind: 'error', code: 131049 });
  await call('POST', '/emulator/faults', { call: 'webhook', share: 0.25, kind: 'duplicate' });
  return { account, clockStart };
}

/** A document that is valid in the rulebook v1. */
export const shopDocument = (name, text = 'Your order has left our warehouse. See you soon.') => ({
  name,
  language: 'en_US',
  category: 'UTILITY',
  allow_category_change: true,
  components: [body(text)],
});
