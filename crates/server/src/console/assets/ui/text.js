// Messages of the service put names and values in backticks; here they become code.
import { html } from '../lit.js';

/** @param {string} text */
export const marked = (text) => text.split(/`([^`]+)`/).map((piece, index) => (index % 2 ? html`<code>${piece}</code>` : piece));
