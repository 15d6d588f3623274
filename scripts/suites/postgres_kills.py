"""Repeatedly kills PostgreSQL while writers create templates through two instances of the service,
and then checks that no acknowledged template is lost.

Run it through scripts/suites/with-postgres. GALLEY_PG_KILLS is the number of kills (default: 20).
"""

import os
import pathlib
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time

from instances import Service, document, read_all, wait_until

WRITERS = 8
# Limits in seconds: from the restart of the database to the first 201, and for any response.
MAX_RECOVERY_SECONDS, MAX_RESPONSE_SECONDS = 3.0, 8.0


def main():
    kills = int(os.environ.get("GALLEY_PG_KILLS", "20"))
    with tempfile.TemporaryDirectory() as work:
        services = [Service(work, number) for number in range(2)]
        try:
            run(services, kills)
        finally:
            for service in services:
                service.stop()


class Writers:
    """Threads that create templates in sequence, and retry failed requests with the same key."""

    def __init__(self, services):
        self.services, self.stopped = services, threading.Event()
        self.lock, self.acknowledged, self.requests = threading.Lock(), {}, 0
        self.unknown, self.slowest, self.unexpected, self.last_acknowledged = 0, 0.0, [], 0.0
        self.threads = [threading.Thread(target=self.write, args=(number,), daemon=True) for number in range(WRITERS)]
        for thread in self.threads:
            thread.start()

    def write(self, writer):
        count = 0
        while not self.stopped.is_set():
            name, count = f"t_{writer}_{count}", count + 1
            while True:
                service = self.services[(writer + count) % len(self.services)]
                started = time.monotonic()
                status, response = service.call("POST", "/message_templates", document(name), name)
                elapsed = time.monotonic() - started
                with self.lock:
                    self.requests += 1
                    self.slowest = max(self.slowest, elapsed)
                    self.unknown += response.get("type") == "/problems/outcome-unknown"
                    if status == 201:
                        self.acknowledged[name] = response["id"]
                        self.last_acknowledged = time.monotonic()
                    elif status not in (0, 503):
                        self.unexpected.append((name, status, response))
                if status not in (0, 503) or self.stopped.is_set():
                    break

    def stop(self):
        self.stopped.set()
        for thread in self.threads:
            thread.join()


def kill_server():
    """Kills all server processes at once, as a machine failure would.

    A process that the server starts after its children were listed would survive, and wait for a lock of a
    killed one while it holds the shared memory. So the server is stopped before they are listed.
    """
    pid = int(pathlib.Path(os.environ["GALLEY_TEST_PGDATA"], "postmaster.pid").read_text().split()[0])
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: is_stopped(pid), 10, "the server stops")
    children = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout.split()
    for process in [*map(int, children), pid]:
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            pass


def is_stopped(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def start_server():
    """Restarts the server; returns the time at which it is up."""
    start = shlex.split(os.environ["GALLEY_TEST_PGCTL"]) + ["start"]
    for _ in range(50):
        if subprocess.run(start, cwd="/", capture_output=True).returncode == 0:
            return time.monotonic()
        time.sleep(0.1)  # killed processes may still exist
    sys.exit("the server did not restart")


def run(services, kills):
    writers, longest_recovery = Writers(services), 0.0
    for number in range(kills):
        before = len(writers.acknowledged)
        wait_until(lambda: len(writers.acknowledged) > before + 20, 30, "the writers continue")
        kill_server()
        up = start_server()
        wait_until(lambda: writers.last_acknowledged > up, 30, "the service recovers")
        longest_recovery = max(longest_recovery, writers.last_acknowledged - up)
    writers.stop()
    stored, events = read_all(services[0])
    seqs = [event["seq"] for event in events]
    lost = {name: id for name, id in writers.acknowledged.items() if stored.get(name) != [id]}
    duplicates = [name for name, ids in stored.items() if len(ids) > 1]
    gaps = seqs != list(range(1, len(seqs) + 1))
    print(
        f"postgres-kills: {kills} kills, {WRITERS} writers on {len(services)} instances, {writers.requests} requests, "
        f"{len(writers.acknowledged)} acknowledged, {writers.unknown} with unknown outcome, {len(lost)} lost, "
        f"{len(duplicates)} duplicates, {len(seqs)} events; slowest recovery {longest_recovery:.2f} s after the restart, "
        f"slowest response {writers.slowest:.2f} s"
    )
    checks = [
        (lost, "acknowledged but lost"),
        (duplicates, "stored twice"),
        (gaps, "gaps in event numbers"),
        (writers.unexpected, "unexpected responses"),
        (longest_recovery > MAX_RECOVERY_SECONDS, f"recovery took longer than {MAX_RECOVERY_SECONDS} s"),
        (writers.slowest > MAX_RESPONSE_SECONDS, f"a response took longer than {MAX_RESPONSE_SECONDS} s"),
    ]
    errors = [f"{description}: {str(details)[:500]}" for details, description in checks if details]
    if errors:
        sys.exit("postgres-kills: " + "\n".join(errors))


if __name__ == "__main__":
    main()
