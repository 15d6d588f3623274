"""Repeatedly kills the primary of a PostgreSQL cluster while writers create templates through two
instances of the service, and checks after each failover that no acknowledged template is lost. Then
it does the same with asynchronous replication, where templates must be lost. This control shows that
the check detects losses.

Run it through scripts/cluster-test, optionally with the rounds:

  killed  the primary and its Patroni are killed
  held    the same, after the standbys have received no log for a second
  frozen  the processes are stopped instead, and their connections stay open
  silent  no process is killed, but no standby confirms anything for a while
"""

import collections
import os
import signal
import sys
import tempfile
import threading
import time

from cluster import Cluster
from instances import Service, document, read_all, wait_until

WRITERS, INSTANCES = 8, 2
# Limits in seconds: from the recovery of the database to the first 201, and for any response.
MAX_RECOVERY_SECONDS, MAX_RESPONSE_SECONDS = 15.0, 10.0
# Delay between the requests of a writer: enough load at any time, and CPU time left for Patroni.
REQUEST_INTERVAL_SECONDS = 0.02
# Duration of the held and silent phases, and number of writes acknowledged meanwhile in the control.
HELD_SECONDS, SILENT_SECONDS, MIN_LOST_WRITES = 1.0, 15.0, 50
# Time for acknowledgements that were already in flight when the log was held.
IN_FLIGHT_SECONDS = 0.25
# Problems that guarantee that nothing was written; after any other failure the outcome is unknown.
NOT_WRITTEN = {"busy", "storage-full", "unavailable"}
UNKNOWN = ("outcome-unknown", "deadline", "no response")
KINDS = ("killed", "held", "frozen", "silent")
DEFAULT_ROUNDS = ("killed", "held", "frozen", "silent", "killed", "held", "frozen")


class Writers:
    """Threads that create templates in sequence and record the responses. Writers with an even number
    send an Idempotency-Key and retry until the create is acknowledged; the others send none and never
    retry."""

    def __init__(self, services, prefix):
        self.services, self.prefix = services, prefix
        self.lock, self.stopped, self.running = threading.Lock(), threading.Event(), threading.Event()
        self.in_flight, self.acknowledged, self.times = 0, {}, []
        # Names with unknown outcome, names that were certainly not written, keys that were sent again,
        # and keys whose first outcome was unknown.
        self.unknown, self.not_written, self.repeated, self.first_unknown = set(), set(), {}, set()
        self.statuses, self.slowest, self.unexpected = collections.Counter(), 0.0, []
        self.running.set()
        self.threads = [threading.Thread(target=self.write, args=(number,), daemon=True) for number in range(WRITERS)]
        for thread in self.threads:
            thread.start()

    def write(self, writer):
        count, keyed = 0, writer % 2 == 0
        while not self.stopped.is_set():
            name, count, attempts = f"{self.prefix}_{writer}_{count}", count + 1, 0
            while not self.stopped.is_set():
                attempts += 1
                done = self.send(self.services[(writer + count + attempts) % INSTANCES], name, keyed, attempts)
                time.sleep(REQUEST_INTERVAL_SECONDS)
                if done or not keyed:
                    break

    def send(self, service, name, keyed, attempts):
        """Sends a create; returns whether the response is final."""
        if not self.wait_for_turn():
            return True
        started = time.monotonic()
        status, response = service.call("POST", "/message_templates", document(name), name if keyed else None)
        ended = time.monotonic()
        problem = response.get("type", "").removeprefix("/problems/")
        with self.lock:
            self.in_flight -= 1
            self.slowest = max(self.slowest, ended - started)
            self.statuses[f"{status or 'no response'} {problem}".strip()] += 1
            if status == 201:
                self.acknowledged[name] = response["id"]
                self.unknown.discard(name)
                self.times.append((started, ended))
                if attempts > 1:
                    self.repeated[name] = response["id"]
            elif status == 503 and problem in NOT_WRITTEN:
                # A create with a key is retried, and an earlier attempt may have been committed.
                (self.unknown if keyed else self.not_written).add(name)
            else:
                self.unknown.add(name)
                if keyed:
                    self.first_unknown.add(name)
                if status != 503:
                    self.unexpected.append((name, status, response))
        return status not in (0, 503)

    def wait_for_turn(self):
        """Waits while the writers are paused; returns False once they are stopped."""
        while True:
            self.running.wait()
            with self.lock:
                if self.stopped.is_set():
                    return False
                if self.running.is_set():
                    self.in_flight += 1
                    return True

    def pause(self):
        with self.lock:
            self.running.clear()
        wait_until(lambda: self.in_flight == 0, 30, "the writers have paused")

    def resume(self):
        self.slowest = 0.0
        self.running.set()

    def stop(self):
        self.stopped.set()
        self.running.set()
        for thread in self.threads:
            thread.join()

    def first_after(self, start):
        """Returns the time of the first acknowledgement of a request sent after the start time."""
        with self.lock:
            return min((ended for started, ended in self.times if started > start), default=None)

    def acknowledged_after(self, start):
        """Returns the number of acknowledgements after the start time."""
        with self.lock:
            return sum(ended > start for _, ended in self.times)


class Checker:
    """Checks all stored data while the writers are paused."""

    def __init__(self, services):
        self.services, self.read, self.replayed = services, set(), set()

    def errors(self, writers, thorough=False):
        """Returns the errors by description. `thorough` also rereads templates that were read before."""
        stored, events = read_all(self.services[0])
        created = collections.Counter(event["template_id"] for event in events if event["type"] == "template.created")
        seqs = [event["seq"] for event in events]
        created_here = {name: ids for name, ids in stored.items() if name.startswith(f"{writers.prefix}_")}
        lost = {
            name: id for name, id in writers.acknowledged.items()
            if created_here.get(name) != [id] or created[id] != 1 or not self.is_readable(name, id, thorough)
        }
        return {
            "acknowledged but lost": lost,
            "stored twice": [name for name, ids in stored.items() if len(ids) > 1],
            "reported as not written but stored": sorted(writers.not_written & created_here.keys()),
            "stored but never requested": sorted(
                created_here.keys() - writers.acknowledged.keys() - writers.unknown - writers.not_written
            ),
            "created again by a repeated key": [] if lost else self.created_again(writers),
            "gaps in event numbers": [] if seqs == list(range(1, len(seqs) + 1)) else seqs[-20:],
            "events and templates do not match": sorted(
                created.keys() ^ {id for ids in stored.values() for id in ids} | {id for id, times in created.items() if times > 1}
            ),
            "unexpected responses": writers.unexpected,
            "terminated instances": [it.process.args for it in self.services if it.process.poll() is not None],
        }

    def is_readable(self, name, id, again):
        if id in self.read and not again:
            return True
        status, template = self.services[len(self.read) % INSTANCES].call("GET", f"/message_templates/{id}")
        self.read.add(id)
        return status == 200 and template["name"] == name and template["components"] == document(name)["components"]

    def created_again(self, writers):
        """Sends repeated keys once more to each instance; returns the responses that differ."""
        errors = []
        for name, id in writers.repeated.items():
            for service in self.services if name not in self.replayed else ():
                response = service.call("POST", "/message_templates", document(name), name)
                if response[0] != 201 or response[1]["id"] != id:
                    errors.append((name, id, *response))
            self.replayed.add(name)
        return errors


class FailoverRounds:
    """Removes the primary and brings it back; prints one line per round."""

    HEADER = "round    node   promoted    commits  201 again  node back  acknowledged  unknown  slowest"

    def __init__(self, cluster, writers, synchronous):
        self.cluster, self.writers, self.synchronous = cluster, writers, synchronous
        self.slowest_recovery, self.slowest, self.errors = 0.0, 0.0, []

    def run(self, kind):
        """Runs one round of a kind in KINDS, and leaves the writers paused for the checks."""
        before, known = len(self.writers.acknowledged), len(self.errors)
        wait_until(lambda: len(self.writers.acknowledged) > before + 3 * WRITERS, 30, "the writers continue")
        node = self.cluster.primary()
        line = self.silence(node) if kind == "silent" else self.fail_over(node, kind)
        self.writers.pause()
        slowest = self.writers.slowest
        self.slowest = max(self.slowest, slowest)
        if slowest > MAX_RESPONSE_SECONDS:
            self.errors.append(f"{kind}: a response took {slowest:.1f} s, longer than {MAX_RESPONSE_SECONDS} s")
        times = "  ".join(f"{'–':>9}" if seconds is None else f"{seconds:7.1f} s" for seconds in line)
        unknown = sum(count for status, count in self.writers.statuses.items() if status.endswith(UNKNOWN))
        print(
            f"{kind:7}  {node.name:>4}  {times}  {len(self.writers.acknowledged):12}  {unknown:7}  {slowest:5.2f} s", flush=True
        )
        for error in self.errors[known:]:
            print(f"         {error}", flush=True)

    def fail_over(self, node, kind):
        others = [it for it in self.cluster.nodes if it is not node]
        if kind == "held":
            self.hold(node)
        node.freeze() if kind == "frozen" else node.kill()
        failed_at = time.monotonic()
        wait_until(lambda: self.cluster.primary(others), 60, "another node takes over", 0.1)
        promoted = time.monotonic()
        write = "INSERT INTO probe VALUES (now()) RETURNING 1"
        wait_until(lambda: self.cluster.sql(write, others), 60, "the new primary commits", 0.1)
        commits = time.monotonic()
        while not self.writers.first_after(failed_at) and time.monotonic() < commits + MAX_RECOVERY_SECONDS:
            time.sleep(0.05)
        if not self.writers.first_after(failed_at):
            self.errors.append(f"{kind}: no 201 within {MAX_RECOVERY_SECONDS} s after the new primary commits")
        if kind == "frozen":
            node.kill()
        wait_until(lambda: self.writers.first_after(failed_at), 60, "the service recovers", 0.05)
        again = self.writers.first_after(failed_at)
        self.slowest_recovery = max(self.slowest_recovery, again - commits)
        node.start()
        wait_until(lambda: self.cluster.is_complete(self.synchronous), 120, "the node is a standby again", 0.2)
        return promoted - failed_at, commits - failed_at, again - failed_at, time.monotonic() - failed_at

    def hold(self, node):
        """Stops replication: writes acknowledged from now on exist on the primary only."""
        for sender in self.senders(node):
            os.kill(sender, signal.SIGSTOP)
        since = time.monotonic() + IN_FLIGHT_SECONDS
        if not self.synchronous:
            description = "writes are acknowledged without a standby"
            wait_until(lambda: self.writers.acknowledged_after(since) >= MIN_LOST_WRITES, 30, description)
            return
        time.sleep(HELD_SECONDS)
        if unreplicated := self.writers.acknowledged_after(since):
            self.errors.append(f"held: {unreplicated} writes acknowledged without a standby")

    def silence(self, node):
        """Stops replication for a while; both standbys stay connected, and none takes over."""
        senders = self.senders(node)
        for sender in senders:
            os.kill(sender, signal.SIGSTOP)
        time.sleep(SILENT_SECONDS)
        for sender in senders:
            os.kill(sender, signal.SIGCONT)
        resumed = time.monotonic()
        description = "silent: 201 again after the standbys respond"
        wait_until(lambda: self.writers.first_after(resumed), MAX_RECOVERY_SECONDS, description, 0.05)
        return None, None, SILENT_SECONDS + self.writers.first_after(resumed) - resumed, None

    def senders(self, node):
        found = node.senders()
        if len(found) != len(self.cluster.nodes) - 1:
            sys.exit("cluster-test: not every standby receives the log")
        return found


def format_errors(errors):
    return [f"{description}: {len(items)}, e.g. {str(items)[:400]}" for description, items in errors.items() if items]


def run_synchronous(cluster, services, checker, kinds):
    """Runs the rounds with synchronous standbys: no acknowledged write may be lost."""
    print(f"\nsynchronous standbys\n{FailoverRounds.HEADER}", flush=True)
    writers = Writers(services, "sync")
    rounds, errors = FailoverRounds(cluster, writers, True), []
    for number, kind in enumerate(kinds, 1):
        writers.resume()
        rounds.run(kind)
        errors += format_errors(checker.errors(writers, thorough=number == len(kinds)))
        if errors:
            break
    writers.stop()
    counts = ", ".join(f"{count} × {status}" for status, count in sorted(writers.statuses.items()))
    rounds_word = "round" if number == 1 else "rounds"
    print(
        f"{number} {rounds_word}: {len(writers.acknowledged)} acknowledged, {'see below' if errors else '0 lost, 0 duplicates'}; "
        f"{len(writers.repeated)} with a repeated key, {len(writers.first_unknown & writers.repeated.keys())} of them after "
        f"an unknown outcome, each one template; responses: {counts}; "
        f"201 again at most {rounds.slowest_recovery:.1f} s after the database, slowest response {rounds.slowest:.2f} s", flush=True,
    )
    return errors + rounds.errors


def run_asynchronous(cluster, services, checker):
    """Runs the control with asynchronous standbys: writes must be lost, without other errors."""
    cluster.set_synchronous(False)
    print(f"\ncontrol: asynchronous standbys\n{FailoverRounds.HEADER}", flush=True)
    writers = Writers(services, "async")
    rounds = FailoverRounds(cluster, writers, False)
    rounds.run("held")
    errors = checker.errors(writers)
    writers.stop()
    lost = errors.pop("acknowledged but lost")
    print(f"1 round: {len(writers.acknowledged)} acknowledged, {len(lost)} of them lost", flush=True)
    return format_errors(errors) + rounds.errors + ([] if lost else ["the control lost no write: the test proves nothing"])


def main():
    # Run the cleanup on SIGTERM as well.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    kinds, started = sys.argv[1:] or DEFAULT_ROUNDS, time.monotonic()
    if unknown := set(kinds) - set(KINDS):
        sys.exit(f"cluster-test: unknown round: {', '.join(sorted(unknown))} (known: {', '.join(KINDS)})")
    with Cluster() as cluster, tempfile.TemporaryDirectory() as work:
        os.environ["GALLEY_TEST_POSTGRES"] = cluster.address()
        version = cluster.sql("SHOW server_version").split()[0]
        print(f"cluster-test: 3 nodes with PostgreSQL {version}, {WRITERS} writers on {INSTANCES} instances", flush=True)
        services = []
        try:
            for number in range(INSTANCES):
                services.append(Service(work, number))
            checker = Checker(services)
            errors = run_synchronous(cluster, services, checker, kinds)
            errors += run_asynchronous(cluster, services, checker)
        finally:
            for service in services:
                service.stop(signal.SIGKILL)
    print(f"\ncluster-test: {time.monotonic() - started:.0f} s, {'failed' if errors else 'passed'}", flush=True)
    if errors:
        sys.exit("\n".join(errors))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("cluster-test: interrupted")
