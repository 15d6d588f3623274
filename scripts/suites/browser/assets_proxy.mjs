// For work on the pages: serves the files of the console from a directory, as the binary would, and
// passes everything else on to the service.

import { createServer, request } from 'node:http';
import { readFileSync } from 'node:fs';
import { join, normalize } from 'node:path';
import { gzipSync } from 'node:zlib';

const HASH = '0123456789abcdef';
const TYPES = { css: 'text/css', html: 'text/html', js: 'text/javascript', svg: 'image/svg+xml' };
const PAGE = /^\/console(?:\/|\/new|\/review(?:\/\d+)?|\/account|\/emulator|\/sign-in|\/templates\/\d+(?:\/edit)?)?$/;

/** @param {string} directory @param {string} service the address of the service */
export async function serveAssets(directory, service) {
  const policy = (await fetch(`${service}/console`)).headers.get('content-security-policy');

  function file(name, response, cache) {
    let content;
    try {
      content = readFileSync(join(directory, normalize(`/${name}`)));
    } catch {
      response.writeHead(404).end();
      return;
    }
    if (name === 'index.html') content = String(content).replaceAll('{{assets}}', `/console/assets/${HASH}`);
    response.writeHead(200, {
      'content-type': `${TYPES[name.split('.').pop()] ?? 'application/octet-stream'}; charset=utf-8`,
      'content-encoding': 'gzip',
      'cache-control': cache,
      'content-security-policy': policy,
    });
    response.end(gzipSync(content, { level: 9 }));
  }

  const server = createServer((incoming, response) => {
    const { pathname } = new URL(incoming.url, service);
    const [, name] = /^\/console\/assets\/[0-9a-f]+\/(.+)$/.exec(pathname) ?? [];
    if (name) return file(name, response, 'public, max-age=31536000, immutable');
    if (incoming.method === 'GET' && PAGE.test(pathname)) return file('index.html', response, 'no-cache');
    const { method, headers } = incoming;
    const outgoing = request(new URL(incoming.url, service), { method, headers, agent: false }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    outgoing.on('error', () => response.destroy());
    response.on('close', () => outgoing.destroy());
    incoming.pipe(outgoing);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    address: `http://127.0.0.1:${server.address().port}`,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
