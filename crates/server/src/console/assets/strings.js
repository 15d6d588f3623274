// The catalogue of texts. Those of every page are here, those of one page in a file of strings/, which
// loads with the page. To translate the console, replace these files, `lang` and `dir`.
import { common } from './strings/common.js';

export const strings = {
  lang: 'en',
  dir: 'ltr',
  ...common,
};
