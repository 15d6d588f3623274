// An address that leads nowhere.
import { html } from '../lit.js';
import { paths } from '../router.js';
import { strings } from '../strings.js';
import { icon } from '../ui/icons.js';

export function page() {
  const t = strings.notFound;
  return {
    title: t.title,
    view: () => html`<section class="state">${icon('sheet')}
      <h1 tabindex="-1">${t.title}</h1><p>${t.text}</p>
      <a class="button button-primary" href=${paths.list()}>${t.action}</a></section>`,
  };
}
