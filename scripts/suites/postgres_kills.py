"""Kills PostgreSQL again and again while writers create templates through two instances of the
service, and looks afterwards whether anything that was acknowledged is lost.

To be run by scripts/suites/with-postgres. GALLEY_PG_KILLS says how often the server is killed
(default: 20).
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

from instances import Service, document, everything, wait

WRITERS = 8
# So long after the database the service has to be back, and so long nobody waits for an answer.
BACK_WITHIN, LONGEST_ANSWER = 3.0, 8.0


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
    """Create templates one after the other; what is refused for a while is sent again, with its key."""

    def __init__(self, services):
        self.services, self.stopped = services, threading.Event()
        self.lock, self.acknowledged, self.tries = threading.Lock(), {}, 0
        self.unknown, self.slowest, self.odd, self.last = 0, 0.0, [], 0.0
        self.threads = [threading.Thread(target=self.write, args=(number,)) for number in range(WRITERS)]
        for thread in self.threads:
            thread.start()

    def write(self, writer):
        count = 0
        while not self.stopped.is_set():
            name, count = f"t_{writer}_{count}", count + 1
            while True:
                service = self.services[(writer + count) % len(self.services)]
                begun = time.monotonic()
                status, answer = service.call("POST", "/message_templates", document(name), name)
                took = time.monotonic() - begun
                with self.lock:
                    self.tries += 1
                    self.slowest = max(self.slowest, took)
                    self.unknown += answer.get("type") == "/problems/outcome-unknown"
                    if status == 201:
                        self.acknowledged[name] = answer["id"]
                        self.last = time.monotonic()
                    elif status not in (0, 503):
                        self.odd.append((name, status, answer))
                if status not in (0, 503) or self.stopped.is_set():
                    break

    def stop(self):
        self.stopped.set()
        for thread in self.threads:
            thread.join()


def kill_server():
    """All of it at once, as when a machine goes."""
    pid = int(pathlib.Path(os.environ["GALLEY_TEST_PGDATA"], "postmaster.pid").read_text().split()[0])
    children = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout.split()
    for process in [pid, *map(int, children)]:
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            pass


def start_server():
    start = shlex.split(os.environ["GALLEY_TEST_PGCTL"]) + ["start"]
    for _ in range(50):
        if subprocess.run(start, cwd="/", capture_output=True).returncode == 0:
            return time.monotonic()
        time.sleep(0.1)  # what was killed may not be gone yet
    sys.exit("the server does not start again")


def run(services, kills):
    writers, longest_back = Writers(services), 0.0
    for number in range(kills):
        before = len(writers.acknowledged)
        wait(lambda: len(writers.acknowledged) > before + 20, 30, "the writers go on")
        kill_server()
        up = start_server()
        wait(lambda: writers.last > up, 30, "the service is back")
        longest_back = max(longest_back, writers.last - up)
    writers.stop()
    kept, events = everything(services[0])
    seqs = [event["seq"] for event in events]
    lost = {name: id for name, id in writers.acknowledged.items() if kept.get(name) != [id]}
    twice = [name for name, ids in kept.items() if len(ids) > 1]
    gaps = seqs != list(range(1, len(seqs) + 1))
    print(
        f"postgres-kills: {kills} kills, {WRITERS} writers on {len(services)} instances, {writers.tries} requests, "
        f"{len(writers.acknowledged)} acknowledged, {writers.unknown} of unknown outcome, {len(lost)} lost, "
        f"{len(twice)} twice, {len(seqs)} events; back {longest_back:.2f} s after the database at the latest, "
        f"slowest answer {writers.slowest:.2f} s"
    )
    faults = [
        (lost, "acknowledged and lost"),
        (twice, "kept twice"),
        (gaps, "events are not numbered without gaps"),
        (writers.odd, "refused"),
        (longest_back > BACK_WITHIN, f"not back within {BACK_WITHIN} s"),
        (writers.slowest > LONGEST_ANSWER, f"an answer took longer than {LONGEST_ANSWER} s"),
    ]
    found = [f"{what}: {str(fault)[:500]}" for fault, what in faults if fault]
    if found:
        sys.exit("postgres-kills: " + "\n".join(found))


if __name__ == "__main__":
    main()
