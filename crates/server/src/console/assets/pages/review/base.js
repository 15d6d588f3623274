// Which version a review compares with. Pure.

/** @typedef {{version: number, status: string, reason?: string}} Version */

/**
 * The live version; without one, as while a template is paused, the newest approved one; otherwise the
 * previous version, whose rejection the edit answers. `null` for the first version.
 * @param {{version: number, live_version?: number}} template
 * @param {Version[]} versions newest first
 * @returns {{kind: 'live' | 'approved' | 'previous', version: number, reason?: string} | null}
 */
export function baseOf({ version, live_version: live }, versions) {
  if (live !== undefined && live !== version) return { kind: 'live', version: live };
  const older = versions.filter((it) => it.version < version);
  const approved = older.find((it) => it.status === 'APPROVED');
  if (approved) return { kind: 'approved', version: approved.version };
  const [previous] = older;
  if (!previous) return null;
  const reason = previous.status === 'REJECTED' ? previous.reason : undefined;
  return { kind: 'previous', version: previous.version, ...(reason ? { reason } : {}) };
}
