// What the form offers under each rulebook: lengths, header formats, button types and their fields.
// The service has the last word: these tables only lay out the form and its counters.

/** Maximum lengths in characters; `whatsapp` is WhatsApp's own limit where Galley's is higher. */
const LENGTHS = {
  v1: {
    name: { max: 512 },
    header: { max: 1024, whatsapp: 60 },
    body: { max: 4096, whatsapp: 1024 },
    footer: { max: 1024, whatsapp: 60 },
    label: { max: 128, whatsapp: 25 },
    code: { max: 128, whatsapp: 20 },
    url: { max: 2000 },
  },
  whatsapp: {
    name: { max: 512 },
    header: { max: 60 },
    body: { max: 1024 },
    cardBody: { max: 160 },
    footer: { max: 60 },
    label: { max: 25 },
    code: { max: 20 },
    url: { max: 2000 },
    offer: { max: 16 },
  },
};

/** The length limits of a rulebook. */
export const lengths = (rulebook) => LENGTHS[rulebook] ?? LENGTHS.v1;

/** The header formats of a rulebook. */
export const headerFormats = (rulebook) =>
  rulebook === 'v1' ? ['TEXT', 'MEDIA'] : ['TEXT', 'IMAGE', 'VIDEO', 'DOCUMENT', 'GIF', 'LOCATION', 'PRODUCT'];

/** Header formats whose sample is a file. */
export const isMedia = (format) => ['MEDIA', 'IMAGE', 'VIDEO', 'DOCUMENT', 'GIF'].includes(format);

/** The most buttons of a template. */
export const maxButtons = (rulebook) => (rulebook === 'v1' ? 20 : 10);

/**
 * @typedef {{key: string, kind: "label" | "url" | "phone" | "code" | "text" | "choice" | "check", optional?: boolean, options?: string[], when?: (button: any) => boolean}} ButtonField
 */

const label = { key: 'text', kind: 'label' };
const optionalLabel = { ...label, optional: true };
const isOneOf =
  (...types) =>
  (button) =>
    types.includes(String(button?.otp_type ?? '').toUpperCase());

/** @type {Record<string, ButtonField[]>} */
const FIELDS = {
  QUICK_REPLY: [label],
  URL: [label, { key: 'url', kind: 'url' }],
  PHONE_NUMBER: [label, { key: 'phone_number', kind: 'phone' }],
  COPY_CODE: [{ key: 'example', kind: 'code' }],
  OTP: [
    { key: 'otp_type', kind: 'choice', options: ['COPY_CODE', 'ONE_TAP', 'ZERO_TAP'] },
    optionalLabel,
    { key: 'autofill_text', kind: 'label', optional: true, when: isOneOf('ONE_TAP', 'ZERO_TAP') },
    { key: 'supported_apps/0/package_name', kind: 'text', when: isOneOf('ONE_TAP', 'ZERO_TAP') },
    { key: 'supported_apps/0/signature_hash', kind: 'text', when: isOneOf('ONE_TAP', 'ZERO_TAP') },
    { key: 'zero_tap_terms_accepted', kind: 'check', when: isOneOf('ZERO_TAP') },
  ],
  FLOW: [
    label,
    { key: 'flow_id', kind: 'text', optional: true },
    { key: 'flow_name', kind: 'text', optional: true },
    { key: 'flow_action', kind: 'choice', options: ['', 'NAVIGATE', 'DATA_EXCHANGE'], optional: true },
    { key: 'navigate_screen', kind: 'text', optional: true },
  ],
  CATALOG: [optionalLabel],
  MPM: [optionalLabel],
  SPM: [optionalLabel],
  VOICE_CALL: [label],
  ORDER_DETAILS: [optionalLabel],
  REQUEST_CONTACT_INFO: [],
};

/** The button types of a rulebook. */
export const buttonTypes = (rulebook) =>
  rulebook === 'v1' ? ['QUICK_REPLY', 'URL', 'PHONE_NUMBER', 'COPY_CODE'] : Object.keys(FIELDS);

/**
 * The fields of a button.
 * @param {any} button
 * @returns {ButtonField[]}
 */
export function buttonFields(button) {
  const fields = FIELDS[String(button?.type ?? '').toUpperCase()] ?? [optionalLabel];
  return fields.filter((it) => it.when === undefined || it.when(button));
}

/**
 * A new button of a type; labels that were typed before are kept.
 * @param {string} type
 * @param {any} [previous]
 */
export function newButton(type, previous) {
  const button = { type };
  for (const field of buttonFields({ type })) {
    const kept = previous?.[field.key];
    if (typeof kept === 'string' && kept !== '' && field.kind === 'label') button[field.key] = kept;
    else if (field.kind === 'choice' && !field.optional) button[field.key] = field.options[0];
    else if (!field.optional && field.kind !== 'check') button[field.key] = '';
  }
  return button;
}

/** Languages that the form suggests under `v1`. */
const V1_LANGUAGES = (
  'ar_AE ar_EG ar_SA bg_BG bn_BD ca_ES cs_CZ da_DK de_AT de_CH de_DE el_GR en_AU en_CA en_GB en_IE en_IN en_NZ en_US ' +
  'en_ZA es_AR es_CL es_CO es_ES es_MX et_EE fa_IR fi_FI fr_BE fr_CA fr_CH fr_FR he_IL hi_IN hr_HR hu_HU id_ID it_IT ' +
  'ja_JP ko_KR lt_LT lv_LV ms_MY nb_NO nl_BE nl_NL pl_PL pt_BR pt_PT ro_RO ru_RU sk_SK sl_SI sr_RS sv_SE sw_KE ta_IN ' +
  'th_TH tr_TR uk_UA ur_PK vi_VN zh_CN zh_HK zh_TW zu_ZA'
).split(' ');

/** Languages that WhatsApp has. */
const WHATSAPP_LANGUAGES = (
  'af ar ar_AE ar_EG ar_LB ar_MA ar_QA ar_SA az be_BY bg bn bn_IN ca cs da de de_AT de_CH el en en_AE en_AU en_CA en_GB ' +
  'en_GH en_IE en_IN en_JM en_MY en_NZ en_QA en_SG en_UG en_US en_ZA es es_AR es_CL es_CO es_CR es_DO es_EC es_ES es_HN ' +
  'es_MX es_PA es_PE es_UY es_VE et fa fi fil fr fr_BE fr_CA fr_CH fr_CI fr_MA ga gu ha he hi hr hu id it ja ka kk kn ko ' +
  'ky_KG lo lt lv mk ml mr ms nb nl nl_BE pa pl prs_AF ps_AF pt_BR pt_PT ro ru rw_RW si_LK sk sl sq sr sv sw ta te th tr ' +
  'uk ur uz vi zh_CN zh_HK zh_TW zu'
).split(' ');

/** The languages that the form suggests. */
export const languages = (rulebook) => (rulebook === 'v1' ? V1_LANGUAGES : WHATSAPP_LANGUAGES);
