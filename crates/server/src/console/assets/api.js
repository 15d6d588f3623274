// Talks to the service: fetch, problems as errors, ETags, the session.
//
// Paths are relative to `/console/api/{phone_number_id}/`; a path that begins with `/` is used as it is.
// Every failure is a `Problem`; an aborted request is an `AbortError` (`isAbort`).
// A 401 also ends the session: listeners of `onSessionEnd` are called once.

/**
 * @typedef {object} Session
 * @property {{id: string, name: string, rulebook: 'v1'|'whatsapp', review: 'auto'|'manual'|'scripted', four_eyes: boolean, emulator?: 'standard'|'faithful', connected?: true}} account
 * @property {{id: string, name: string, scopes: string[], expires_at?: string}} token
 * @property {string[]} phone_number_ids
 * @property {string} idle_expires_at
 * @property {string} expires_at
 *
 * @typedef {object} Violation
 * @property {string} pointer
 * @property {string} rule
 * @property {string} message
 * @property {string} [hint]
 * @property {{start: number, end: number}} [span]
 *
 * @typedef {object} RequestOptions
 * @property {Record<string, string|number|boolean|undefined|null|string[]>|URLSearchParams} [query]
 * @property {unknown} [body]
 * @property {string} [text]  JSON that is sent as it is
 * @property {string|null} [ifMatch]
 * @property {string} [idempotencyKey]
 * @property {AbortSignal} [signal]
 *
 * @typedef {object} Answer
 * @property {number} status
 * @property {any} data     the parsed body, undefined without one
 * @property {string|null} etag
 * @property {Headers} headers
 */

/** A refused or failed request, in the words of RFC 9457. */
export class Problem extends Error {
  /** @param {number} status @param {any} body @param {Headers} [headers] */
  constructor(status, body, headers) {
    super(body.detail || body.title || `HTTP ${status}`);
    this.name = 'Problem';
    this.status = status;
    /** The stable last segment of `type`; `offline` if there was no response. */
    this.slug = String(body.type ?? '').split('/').pop() ?? '';
    this.title = String(body.title ?? '');
    this.detail = String(body.detail ?? '');
    /** @type {Violation[]} */
    this.violations = body.violations ?? [];
    this.requestId = body.request_id;
    this.etag = headers?.get('etag') ?? null;
    /** All members of the problem, such as `possible` or `existing_id`. */
    this.body = body;
  }
}

/** @param {unknown} error */
export const isAbort = (error) => error instanceof DOMException && error.name === 'AbortError';

/** @type {Session|null} */
let session = null;
/** @type {Set<() => void>} */
const endListeners = new Set();

/** Tells the other tabs of this browser about sign-ins and sign-outs. @type {BroadcastChannel|undefined} */
let otherTabs;

/** Responses that boot.js has asked for, by address. @returns {Map<string, Promise<Response|undefined>>|undefined} */
const earlyResponses = () => /** @type {any} */ (globalThis).galleyEarly;

function endSession() {
  earlyResponses()?.clear();
  if (!session) return;
  session = null;
  for (const listener of endListeners) listener();
}

/** @param {RequestOptions['query']} query */
export function toQuery(query) {
  if (!query) return '';
  const params = query instanceof URLSearchParams ? query : new URLSearchParams();
  if (params !== query) {
    for (const [name, value] of Object.entries(query)) {
      if (value === undefined || value === null || value === '') continue;
      if (Array.isArray(value)) {
        if (value.length) params.set(name, value.join(','));
      } else params.set(name, String(value));
    }
  }
  const text = params.toString();
  return text && `?${text}`;
}

/** @param {Response} response */
async function parse(response) {
  const text = await response.text();
  if (!text) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return { title: response.statusText || `HTTP ${response.status}`, detail: text.slice(0, 300) };
  }
}

/** A response that boot.js has asked for already; each is used once. @param {string} method @param {string} url */
function early(method, url) {
  const started = earlyResponses();
  const response = method === 'GET' ? started?.get(url) : undefined;
  started?.delete(url);
  return response;
}

/**
 * @param {string} method @param {string} url @param {RequestOptions} [options]
 * @returns {Promise<Answer>}
 */
async function send(method, url, options = {}) {
  /** @type {Record<string, string>} */
  const headers = { Accept: 'application/json', 'Galley-Console': '1' };
  const body = options.text ?? (options.body === undefined ? undefined : JSON.stringify(options.body));
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  if (options.ifMatch) headers['If-Match'] = options.ifMatch;
  if (options.idempotencyKey) headers['Idempotency-Key'] = options.idempotencyKey;
  const address = url + toQuery(options.query);
  let response;
  try {
    response = (await early(method, address)) ?? (await fetch(address, {
      method,
      headers,
      body,
      signal: options.signal,
      credentials: 'same-origin',
      cache: 'no-store',
      redirect: 'error',
      referrerPolicy: 'no-referrer',
    }));
  } catch (error) {
    if (isAbort(error)) throw error;
    throw new Problem(0, { type: '/problems/offline' });
  }
  const data = await parse(response);
  // An early response knows nothing of the signal.
  options.signal?.throwIfAborted();
  if (!response.ok) throw new Problem(response.status, data ?? {}, response.headers);
  return { status: response.status, data, etag: response.headers.get('etag'), headers: response.headers };
}

/** Reads concern no phone number in particular; a create is stored under the first. @param {string} method @param {string} path */
function fullPath(method, path) {
  if (path.startsWith('/')) return path;
  const phone = (method !== 'GET' && session?.phone_number_ids[0]) || '-';
  return `/console/api/${encodeURIComponent(phone)}/${path}`;
}

/** @param {string} method */
const call = (method) => async (/** @type {string} */ path, /** @type {RequestOptions} */ options = {}) => {
  try {
    return await send(method, fullPath(method, path), options);
  } catch (error) {
    if (error instanceof Problem && error.status === 401) endSession();
    throw error;
  }
};

export const api = {
  get: call('GET'),
  post: call('POST'),
  patch: call('PATCH'),
  delete: call('DELETE'),

  /** Who is signed in, as last read. */
  get session() {
    return session;
  },
  /** Reads who is signed in; null if the visitor is not (204), or not any more (401). */
  async loadSession() {
    try {
      session = (await send('GET', '/console/session')).data ?? null;
    } catch (error) {
      if (!(error instanceof Problem && error.status === 401)) throw error;
      session = null;
    }
    return session;
  },
  /** @param {{token: string}|{link: string}} credentials */
  async signIn(credentials) {
    earlyResponses()?.clear();
    await send('POST', '/console/session', { body: credentials });
    otherTabs?.postMessage('changed');
    return api.loadSession();
  },
  /** Ends the session; one that has ended before (401) is no failure. */
  async signOut() {
    await send('DELETE', '/console/session').catch((error) => {
      if (!(error instanceof Problem && error.status === 401)) throw error;
    });
    otherTabs?.postMessage('changed');
    earlyResponses()?.clear();
    session = null;
  },
  /** @param {string} scope */
  can: (scope) => session?.token.scopes.includes(scope) ?? false,
  /** @param {() => void} listener */
  onSessionEnd: (listener) => endListeners.add(listener),
  /**
   * Reads the session again whenever another tab signs in or out, because both share one cookie. The listener gets
   * the session as it was; listeners of `onSessionEnd` are called if there is none any more.
   * @param {(before: Session|null) => void} listener
   */
  onOtherTab(listener) {
    otherTabs = new BroadcastChannel('galley.session');
    otherTabs.onmessage = async () => {
      const before = session;
      earlyResponses()?.clear();
      const now = await api.loadSession().catch(() => before);
      if (now) return listener(before);
      session = before;
      endSession();
    };
  },
};
