// Starts the real service with an empty store on a free port, and creates accounts, tokens and
// sign-in links with its command line.
//
// SUITE_GALLEY is the binary. With SUITE_ASSETS=DIRECTORY, the files of the console come from that
// directory instead of the binary, so that changes of the pages need no compiler.

import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { serveAssets } from './assets_proxy.mjs';

const START_MS = 30_000;
export const ALL_SCOPES = 'read,write,review,webhooks,credentials,audit';
const GRAPH_VERSION = 'v23.0';

/** Waits until `condition` returns something, and returns it. */
export async function until(condition, milliseconds, description) {
  const end = Date.now() + milliseconds;
  for (;;) {
    const result = await condition();
    if (result) return result;
    if (Date.now() > end) throw new Error(`timed out after ${milliseconds} ms: ${description}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

function environment(work, extra) {
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith('GALLEY_'));
  return {
    ...Object.fromEntries(kept),
    GALLEY_STORE: `sqlite:${join(work, 'galley.db')}`,
    GALLEY_LOG_FORMAT: 'human',
    GALLEY_ACCESS_LOG: 'true',
    GALLEY_WEBHOOKS_ALLOW_PRIVATE: 'true',
    GALLEY_EMULATOR: 'true',
    ...extra,
  };
}

class Account {
  constructor(service, created, name, phone, scopes = ALL_SCOPES) {
    this.service = service;
    this.name = name;
    this.phone = phone;
    /** What tokens and links of the account permit unless a test says otherwise. */
    this.scopes = scopes;
    this.id = created.account_id;
    this.key = service.secret(created.key);
    service.secret(created.token);
    this.base = `/api/v1.0/${phone}/${this.key}`;
  }

  /** Creates a token and returns its secret and id. */
  token(name, scopes = this.scopes) {
    const created = this.service.cli('token', 'create', this.id, '--name', name, '--scopes', scopes);
    return { id: created.id, name, secret: this.service.secret(created.token) };
  }

  /** Creates a sign-in link and returns its path with the fragment. */
  link(scopes = this.scopes) {
    const { url, expires_at: expires } = this.service.cli('console', this.id, '--scopes', scopes);
    if (!(Date.parse(expires) > Date.now())) throw new Error(`the link has expired already: ${expires}`);
    const { pathname, hash } = new URL(url);
    this.service.secret(hash.replace('#link=', ''));
    return pathname + hash;
  }

  /** Calls API v1.0 of the account with a token; fails unless the status is a success. */
  call(token, method, path, body) {
    return this.#request(token, method, this.base + path, body);
  }

  /** Sends a template message, as clients of WhatsApp's Cloud API do. */
  send(token, to, template) {
    const body = { messaging_product: 'whatsapp', to, type: 'template', template };
    return this.#request(token, 'POST', `/${GRAPH_VERSION}/${this.phone}/messages`, body);
  }

  async #request(token, method, path, body) {
    const response = await fetch(this.service.direct + path, {
      method,
      headers: { authorization: `Bearer ${token.secret}`, 'content-type': 'application/json' },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text === '' ? undefined : JSON.parse(text);
  }
}

export class Service {
  /** @param {Record<string, string>} settings further settings, by their environment variables */
  static async start(settings = {}) {
    const service = new Service();
    service.galley = process.env.SUITE_GALLEY;
    service.work = mkdtempSync(join(tmpdir(), 'galley-console-'));
    service.environment = environment(service.work, settings);
    service.secrets = new Set();
    service.logFile = join(service.work, 'log');
    const log = openSync(service.logFile, 'w');
    service.process = spawn(service.galley, ['serve', '--listen', '127.0.0.1:0'], {
      cwd: service.work,
      env: service.environment,
      stdio: ['ignore', 'ignore', log],
    });
    service.exited = new Promise((resolve) => service.process.once('exit', (code) => resolve(code)));
    service.direct = await until(
      () => {
        if (service.process.exitCode !== null) throw new Error(`the service did not start:\n${service.log()}`);
        return /listening on (http:[^ ]*) /.exec(service.log())?.[1];
      },
      START_MS,
      'the service listens',
    );
    const assets = process.env.SUITE_ASSETS;
    service.proxy = assets ? await serveAssets(assets, service.direct) : null;
    /** The address that browsers use. */
    service.address = service.proxy?.address ?? service.direct;
    return service;
  }

  log() {
    return readFileSync(this.logFile, 'utf8');
  }

  cli(...parameters) {
    const output = execFileSync(this.galley, [...parameters, '--json'], {
      cwd: this.work,
      env: this.environment,
      encoding: 'utf8',
    });
    return output.trim() === '' ? undefined : JSON.parse(output);
  }

  /** Remembers a secret: the log must not contain it when the service stops. */
  secret(value) {
    if (typeof value !== 'string' || value.length < 16) throw new Error(`not a secret: ${value}`);
    this.secrets.add(value);
    return value;
  }

  account(name, rulebook, phone) {
    const created = this.cli(
      ...['account', 'create', name, '--rulebook', rulebook, '--review', 'manual', '--phone', phone],
    );
    return new Account(this, created, name, phone);
  }

  /** Creates an emulator account. */
  emulator(name, phone, ...flags) {
    const created = this.cli('account', 'create', name, '--rulebook', 'whatsapp', '--emulator', '--phone', phone, ...flags);
    return new Account(this, created, name, phone, `${ALL_SCOPES},emulator`);
  }

  /** Stops the service. Fails if it did not end well, or if its log shows what it must not. */
  async stop() {
    this.proxy?.close();
    this.process.kill('SIGTERM');
    const code = await this.exited;
    const lines = this.log().split('\n');
    rmSync(this.work, { recursive: true });
    if (code !== 0) throw new Error(`the service ended with ${code}:\n${lines.slice(-5).join('\n')}`);
    const wrong = lines.filter((it) => / 5\d\d /.test(it) || it.includes('panicked'));
    if (wrong.length > 0) throw new Error(`failures in the log:\n${wrong.slice(0, 3).join('\n')}`);
    const leaked = [...this.secrets].filter((it) => lines.some((line) => line.includes(it)));
    if (leaked.length > 0) throw new Error(`the log contains ${leaked.length} secrets`);
  }
}
