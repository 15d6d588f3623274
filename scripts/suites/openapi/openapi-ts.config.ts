import { defineConfig } from '@hey-api/openapi-ts';

const options = { module: { extension: '.js' } } as const;

export default defineConfig([
  { input: './v1.json', output: { path: './v1', ...options } },
  { input: './graph.json', output: { path: './graph', ...options } },
]);
