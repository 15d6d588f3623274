// The one place that names the vendored lit-html.
import { nothing } from './vendor/lit-html/lit-html.js';
import { repeat as keyed } from './vendor/lit-html/directives/repeat.js';

export { html, svg, render, nothing } from './vendor/lit-html/lit-html.js';
export { live } from './vendor/lit-html/directives/live.js';
export { classMap } from './vendor/lit-html/directives/class-map.js';

/** @type {<T>(items: Iterable<T>, key: (item: T) => unknown, template: (item: T, index: number) => unknown) => unknown} */
export const repeat = keyed;

/** For attributes that are absent without a value. @template T @param {T} value */
export const ifDefined = (value) => value ?? nothing;
