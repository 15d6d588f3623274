// Starts the first requests while the modules load: who is signed in and, on the list, its modules, which
// index.html does not name, because other pages do without them, and, for those who are signed in, its first rows.
// api.js takes the responses by their address; those that it does not ask for are dropped.
{
  const early = new Map();
  const ask = (url) => fetch(url, { headers: { Accept: 'application/json', 'Galley-Console': '1' }, credentials: 'same-origin', cache: 'no-store' });
  const { pathname, search } = location;
  if (!/^\/console\/sign-in/.test(pathname)) early.set('/console/session', ask('/console/session'));
  if (/^\/console(\/(templates\/?)?)?$/.test(pathname)) {
    const address = new URLSearchParams(search);
    const query = new URLSearchParams({ group: 'name' });
    const known = (it) => /^(PENDING|APPROVED|REJECTED|PAUSED|DISABLED|ARCHIVED)$/.test(it);
    const status = (address.get('status') ?? '').split(',').filter(known).join(',');
    for (const name of ['q', 'status', 'category', 'language']) {
      const value = name === 'status' ? status : address.get(name);
      if (value) query.set(name, value);
    }
    query.set('limit', '25');
    const url = `/console/api/-/message_templates?${query}`;
    early.set(url, early.get('/console/session').then(({ status }) => (status === 200 ? ask(url) : undefined)));
    for (const name of ['pages/list', 'pages/list/row', 'strings/list', 'ui/language', 'ui/pager']) {
      const link = Object.assign(document.createElement('link'), { rel: 'modulepreload' });
      link.href = new URL(`./${name}.js`, document.currentScript.src).href;
      document.head.append(link);
    }
  }
  for (const response of early.values()) response.catch(() => undefined);
  globalThis.galleyEarly = early;
}
