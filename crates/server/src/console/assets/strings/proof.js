// Texts of proofs and comparisons.

/** The name of a leaf of a document, such as `BUTTONS/buttons/0/text`. */
function leafName(/** @type {string} */ path) {
  const names = {
    name: 'Name',
    language: 'Language',
    category: 'Category',
    allow_category_change: 'Category may change',
  };
  if (names[path]) return names[path];
  return path
    .replace(/^CAROUSEL\/cards\/(\d+)\//, (_, index) => `Card ${Number(index) + 1} · `)
    .replace(/BUTTONS\/buttons\/(\d+)\/?/, (_, index) => `Button ${Number(index) + 1} · `)
    .replace(/example\/(?:body|header)_text\/(?:0\/)?(\d+)$/, (_, index) => `sample {{${Number(index) + 1}}}`)
    .replace(
      /example\/(?:body|header)_text_named_params\/(\d+)\/(\w+)$/,
      (_, index, key) => `sample ${Number(index) + 1} ${key}`,
    )
    .replace(/example\/(?:media_url|header_handle(?:\/0)?)$/, 'attachment')
    .replace(/example(?:\/0)?$/, 'sample')
    .replace('LIMITED_TIME_OFFER/limited_time_offer/', 'Offer · ')
    .replace(/HEADER\//, 'Header · ')
    .replace(/BODY\//, 'Body · ')
    .replace(/FOOTER\//, 'Footer · ')
    .replace(/(^| · )(Header|Body|Footer) · text$/, '$1$2')
    .replace(/ · text$/, ' · label')
    .replaceAll('_', ' ');
}

export const proof = {
  failed: 'The proof cannot be shown now.',
  title: 'Proof',
  empty: 'The message appears here as you write it.',
  buttons: 'Buttons',
  cards: 'Cards',
  card: (/** @type {number} */ index, /** @type {number} */ count) => `Card ${index} of ${count}`,
  placeholder: (/** @type {string} */ name, /** @type {boolean} */ filled) =>
    filled ? `Sample for {{${name}}}` : `{{${name}}} has no sample`,
  untitled: 'No label',
  expires: 'Shows when the offer expires',
  code: 'Code',
  truncated: 'The rest is not shown.',
  callPermission: 'Choose whether the business may call',
  formats: {
    MEDIA: 'Attachment',
    IMAGE: 'Image',
    VIDEO: 'Video',
    DOCUMENT: 'Document',
    GIF: 'GIF',
    LOCATION: 'Location',
    PRODUCT: 'Product',
  },
};

export const diff = {
  leaf: leafName,
  added: 'added:',
  removed: 'removed:',
  none: 'No differences.',
  placeholdersAdded: 'Placeholders added',
  placeholdersRemoved: 'Placeholders removed',
  empty: 'empty',
};
