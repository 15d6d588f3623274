// The idempotency key of a create.

/** 128 random bits. Not `crypto.randomUUID`, which browsers offer over HTTPS and on this machine only. */
export const newRequestKey = () =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
