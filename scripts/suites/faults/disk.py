"""A model of a disk that loses power: replays the log of the shim, and builds images of what may be left.

A sync makes the changes of its file durable that were made before it began. Of all other changes, any
part may be on the disk: a write may be missing, or have reached the disk in part, in units of a sector.
Directory entries become durable when the directory is synced; a file that was created, renamed or
removed since may be found as it was before. Directory changes are lost from the last one backwards, as
in a file system with a journal.
"""

import struct

RECORD = struct.Struct("<BBHIQQII")
OPEN, CREATE, WRITE, TRUNCATE, SYNC_BEGIN, SYNC_END, RENAME, UNLINK = range(1, 9)
SECTOR_BYTES = 512


class Record:
    """One entry of the log; `end` is the log's length after it."""

    __slots__ = ("op", "name", "thread", "inode", "offset", "data", "end")

    def __init__(self, op, name, thread, inode, offset, data, end):
        self.op, self.name, self.thread, self.inode = op, name, thread, inode
        self.offset, self.data, self.end = offset, data, end


def read_log(log):
    """The records of a log."""
    records, position = [], 0
    while position < len(log):
        op, _, name_bytes, thread, inode, offset, data_bytes, _ = RECORD.unpack_from(log, position)
        name = position + RECORD.size
        data = name + name_bytes
        position = data + data_bytes
        records.append(Record(op, log[name:data].decode(), thread, inode, offset, log[data:position], position))
    return records


class File:
    """The durable bytes of a file, and its changes since."""

    def __init__(self):
        self.durable, self.pending = bytearray(), []

    def sync(self, before):
        done = [record for record in self.pending if record.end <= before]
        self.pending = [record for record in self.pending if record.end > before]
        for record in done:
            apply(self.durable, record.op, record.offset, record.data)

    def image(self, random, kept):
        """The bytes after a power cut: each pending change is there with the probability `kept`, or in part."""
        content = bytearray(self.durable)
        for record in self.pending:
            if random.random() < kept:
                apply(content, record.op, record.offset, record.data)
            elif record.op == WRITE and random.random() < 0.5:
                for offset, sector in sectors(record):
                    if random.random() < 0.5:
                        apply(content, WRITE, offset, sector)
            elif record.op == WRITE and random.random() < 0.3:
                # The new size is on the disk, and the bytes are not.
                grow(content, record.offset + len(record.data))
        return content


def apply(content, op, offset, data):
    if op == WRITE:
        grow(content, offset)
        content[offset : offset + len(data)] = data
    else:
        grow(content, offset)
        del content[offset:]


def grow(content, size):
    content.extend(bytes(max(0, size - len(content))))


def sectors(record):
    """The parts of a write that reach the disk one by one."""
    start, end = record.offset, record.offset + len(record.data)
    while start < end:
        stop = min(end, (start // SECTOR_BYTES + 1) * SECTOR_BYTES)
        yield start, record.data[start - record.offset : stop - record.offset]
        start = stop


class Disk:
    """A directory of files while the log is replayed."""

    def __init__(self, ignored_syncs=frozenset()):
        self.files, self.durable, self.pending, self.by_inode, self.begun = {}, {}, [], {}, {}
        # The `end` of syncs that have no effect.
        self.ignored_syncs = ignored_syncs

    def replay(self, record):
        if record.op == OPEN and record.name in self.files:
            self.by_inode[record.inode] = self.files[record.name]
        elif record.op == CREATE:
            self.files[record.name] = self.by_inode[record.inode] = File()
            # An inode can be used again, so the change itself names the file.
            self.pending.append((record, self.files[record.name]))
        elif record.op in (WRITE, TRUNCATE):
            self.by_inode[record.inode].pending.append(record)
        elif record.op == SYNC_BEGIN:
            self.begun[record.thread, record.inode] = record
        elif record.op == SYNC_END:
            self.sync(record, self.begun.pop((record.thread, record.inode)))
        elif record.op == RENAME:
            source, target = record.name.split("\n")
            self.files[target] = self.files.pop(source)
            self.pending.append((record, None))
        elif record.op == UNLINK:
            self.files.pop(record.name, None)
            self.pending.append((record, None))

    def sync(self, record, begin):
        if record.name == ".":
            self.durable = self.entries([it for it in self.pending if it[0].end <= begin.end])
            self.pending = [it for it in self.pending if it[0].end > begin.end]
        elif begin.end not in self.ignored_syncs:
            self.by_inode[record.inode].sync(begin.end)

    def entries(self, changes):
        """The durable entries after some changes."""
        entries = dict(self.durable)
        for record, file in changes:
            if record.op == CREATE:
                entries[record.name] = file
            elif record.op == UNLINK:
                entries.pop(record.name, None)
            else:
                source, target = record.name.split("\n")
                if source in entries:
                    entries[target] = entries.pop(source)
        return entries

    def image(self, random, directory):
        """Writes what a power cut may leave now. The -shm files are left out: SQLite rebuilds them."""
        kept = random.choice([0.0, 0.3, 0.7, 0.95, 1.0])
        changes = self.pending[: random.randint(0, len(self.pending))]
        for name, file in self.entries(changes).items():
            if not name.endswith("-shm"):
                (directory / name).write_bytes(file.image(random, kept))


def syncs_only_in_full_mode(records):
    """The syncs that SQLite omits with `synchronous=NORMAL`: all syncs of the store's WAL, except after its
    header and before a checkpoint copies it. Returns the `end` of their first records."""
    previous, begun, omitted = {}, {}, set()
    for record in records:
        # SQLite syncs the directory together with a new WAL.
        if record.op not in (WRITE, SYNC_BEGIN) or record.name == ".":
            continue
        pending, last = begun.pop(record.thread, None), previous.get(record.thread)
        if pending and record.name != "galley.db":
            omitted.add(pending.end)
        if record.op == SYNC_BEGIN and record.name == "galley.db-wal":
            is_header = last and last.op == WRITE and last.name == record.name and last.offset == 0
            if not is_header:
                begun[record.thread] = record
        previous[record.thread] = record
    return omitted | {record.end for record in begun.values()}
