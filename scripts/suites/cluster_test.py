"""Kills the primary of a PostgreSQL cluster again and again while writers create templates through
two instances of the service, and looks after each failover whether anything is lost that was
acknowledged. Then it does the same with asynchronous replication, where something has to be lost:
a check that does not see that would not see anything.

To be run by scripts/cluster-test, which may name the rounds:

  killed  the primary and its Patroni are killed
  held    the same, after none of its log has reached a standby for a second
  frozen  they stand still instead, and their connections stay open
  silent  nobody is killed, but no standby confirms anything for a while
"""

import collections
import os
import signal
import sys
import tempfile
import threading
import time

from cluster import Cluster
from instances import Service, document, everything, wait

WRITERS, INSTANCES = 8, 2
# So long after the database the service has to be back, and so long nobody waits for an answer.
BACK_WITHIN, LONGEST_ANSWER = 15.0, 10.0
# Between the requests of a writer: enough load to be hit at any moment, and cores left for Patroni.
PAUSE = 0.02
# So long the log is held back, and so much is acknowledged meanwhile in the control.
HELD, SILENT, LOST_AT_LEAST = 1.0, 15.0, 50
# What an acknowledgement may still need on its way to us when the log is held already.
ON_ITS_WAY = 0.25
# Whoever is told one of these knows that nothing was done; after any other failure nobody knows.
NOTHING_DONE = {"busy", "storage-full", "unavailable"}
UNKNOWN = ("outcome-unknown", "deadline", "no answer")
KINDS = ("killed", "held", "frozen", "silent")
USUAL = ("killed", "held", "frozen", "silent", "killed", "held", "frozen")


class Writers:
    """Create templates one after the other, and remember what they were told. Those with an even
    number send an Idempotency-Key and repeat what failed until it is acknowledged; the others send
    none and repeat nothing."""

    def __init__(self, services, prefix):
        self.services, self.prefix = services, prefix
        self.lock, self.stopped, self.going = threading.Lock(), threading.Event(), threading.Event()
        self.under_way, self.acknowledged, self.times = 0, {}, []
        # Names of which nobody knows, names that nothing was done for, keys that were sent again, and
        # those of them whose first outcome was unknown.
        self.unknown, self.refused, self.repeated, self.doubtful = set(), set(), {}, set()
        self.statuses, self.slowest, self.odd = collections.Counter(), 0.0, []
        self.going.set()
        self.threads = [threading.Thread(target=self.write, args=(number,), daemon=True) for number in range(WRITERS)]
        for thread in self.threads:
            thread.start()

    def write(self, writer):
        count, keyed = 0, writer % 2 == 0
        while not self.stopped.is_set():
            name, count, tries = f"{self.prefix}_{writer}_{count}", count + 1, 0
            while not self.stopped.is_set():
                tries += 1
                answered = self.send(self.services[(writer + count + tries) % INSTANCES], name, keyed, tries)
                time.sleep(PAUSE)
                if answered or not keyed:
                    break

    def send(self, service, name, keyed, tries):
        """Whether there was an answer that settles it."""
        if not self.may_go():
            return True
        begun = time.monotonic()
        status, answer = service.call("POST", "/message_templates", document(name), name if keyed else None)
        ended = time.monotonic()
        problem = answer.get("type", "").removeprefix("/problems/")
        with self.lock:
            self.under_way -= 1
            self.slowest = max(self.slowest, ended - begun)
            self.statuses[f"{status or 'no answer'} {problem}".strip()] += 1
            if status == 201:
                self.acknowledged[name] = answer["id"]
                self.unknown.discard(name)
                self.times.append((begun, ended))
                if tries > 1:
                    self.repeated[name] = answer["id"]
            elif status == 503 and problem in NOTHING_DONE:
                # With a key it is sent again, and an earlier try may have been done.
                (self.unknown if keyed else self.refused).add(name)
            else:
                self.unknown.add(name)
                if keyed:
                    self.doubtful.add(name)
                if status != 503:
                    self.odd.append((name, status, answer))
        return status not in (0, 503)

    def may_go(self):
        """Waits while the others pause. `False`: nothing is sent any more."""
        while True:
            self.going.wait()
            with self.lock:
                if self.stopped.is_set():
                    return False
                if self.going.is_set():
                    self.under_way += 1
                    return True

    def pause(self):
        with self.lock:
            self.going.clear()
        wait(lambda: self.under_way == 0, 30, "the writers pause")

    def resume(self):
        self.slowest = 0.0
        self.going.set()

    def stop(self):
        self.stopped.set()
        self.going.set()
        for thread in self.threads:
            thread.join()

    def first_after(self, moment):
        """When the first was acknowledged that was sent after this moment."""
        with self.lock:
            return min((ended for begun, ended in self.times if begun > moment), default=None)

    def acknowledged_after(self, moment):
        with self.lock:
            return sum(ended > moment for _, ended in self.times)


class Checker:
    """Looks at everything that is kept, while the writers pause."""

    def __init__(self, services):
        self.services, self.read, self.asked = services, set(), set()

    def faults(self, writers, thorough=False):
        """What is wrong, by name. `thorough`: also reads again what was read before."""
        kept, events = everything(self.services[0])
        created = collections.Counter(event["template_id"] for event in events if event["type"] == "template.created")
        seqs = [event["seq"] for event in events]
        ours = {name: ids for name, ids in kept.items() if name.startswith(f"{writers.prefix}_")}
        lost = {
            name: id for name, id in writers.acknowledged.items()
            if ours.get(name) != [id] or created[id] != 1 or not self.is_readable(name, id, thorough)
        }
        return {
            "acknowledged and lost": lost,
            "kept twice": [name for name, ids in kept.items() if len(ids) > 1],
            "told that nothing was done, and kept": sorted(writers.refused & ours.keys()),
            "kept, and made by nobody": sorted(ours.keys() - writers.acknowledged.keys() - writers.unknown - writers.refused),
            "made anew by a repeated key": [] if lost else self.made_anew(writers),
            "events not numbered without gaps": [] if seqs == list(range(1, len(seqs) + 1)) else seqs[-20:],
            "events and templates do not match": sorted(
                created.keys() ^ {id for ids in kept.values() for id in ids} | {id for id, times in created.items() if times > 1}
            ),
            "answered in another way": writers.odd,
            "instances that ended": [it.process.args for it in self.services if it.process.poll() is not None],
        }

    def is_readable(self, name, id, again):
        if id in self.read and not again:
            return True
        status, template = self.services[len(self.read) % INSTANCES].call("GET", f"/message_templates/{id}")
        self.read.add(id)
        return status == 200 and template["name"] == name and template["components"] == document(name)["components"]

    def made_anew(self, writers):
        """Keys that were sent more than once are sent once more, to each instance."""
        wrong = []
        for name, id in writers.repeated.items():
            for service in self.services if name not in self.asked else ():
                answer = service.call("POST", "/message_templates", document(name), name)
                if answer[0] != 201 or answer[1]["id"] != id:
                    wrong.append((name, id, *answer))
            self.asked.add(name)
        return wrong


class Rounds:
    """Takes the primary away and brings it back; one line for each time."""

    HEADER = "round    node   promoted    commits  201 again  node back  acknowledged  unknown  slowest"

    def __init__(self, cluster, writers, synchronous):
        self.cluster, self.writers, self.synchronous = cluster, writers, synchronous
        self.behind, self.slowest, self.faults = 0.0, 0.0, []

    def run(self, kind):
        """One of KINDS. Afterwards the writers pause, so that everything can be looked at."""
        before, known = len(self.writers.acknowledged), len(self.faults)
        wait(lambda: len(self.writers.acknowledged) > before + 3 * WRITERS, 30, "the writers go on")
        node = self.cluster.primary()
        line = self.silence(node) if kind == "silent" else self.fail_over(node, kind)
        self.writers.pause()
        slowest = self.writers.slowest
        self.slowest = max(self.slowest, slowest)
        if slowest > LONGEST_ANSWER:
            self.faults.append(f"{kind}: an answer took {slowest:.1f} s, longer than {LONGEST_ANSWER} s")
        times = "  ".join(f"{'–':>9}" if moment is None else f"{moment:7.1f} s" for moment in line)
        unknown = sum(count for status, count in self.writers.statuses.items() if status.endswith(UNKNOWN))
        print(
            f"{kind:7}  {node.name:>4}  {times}  {len(self.writers.acknowledged):12}  {unknown:7}  {slowest:5.2f} s", flush=True
        )
        for fault in self.faults[known:]:
            print(f"         {fault}", flush=True)

    def fail_over(self, node, kind):
        others = [it for it in self.cluster.nodes if it is not node]
        if kind == "held":
            self.hold(node)
        node.freeze() if kind == "frozen" else node.kill()
        gone = time.monotonic()
        wait(lambda: self.cluster.primary(others), 60, "another node takes over", 0.1)
        promoted = time.monotonic()
        write = "INSERT INTO probe VALUES (now()) RETURNING 1"
        wait(lambda: self.cluster.sql(write, others), 60, "the new primary commits", 0.1)
        commits = time.monotonic()
        while not self.writers.first_after(gone) and time.monotonic() < commits + BACK_WITHIN:
            time.sleep(0.05)
        if not self.writers.first_after(gone):
            self.faults.append(f"{kind}: no 201 within {BACK_WITHIN} s after the new primary commits")
        if kind == "frozen":
            node.kill()
        wait(lambda: self.writers.first_after(gone), 60, "the service is back", 0.05)
        again = self.writers.first_after(gone)
        self.behind = max(self.behind, again - commits)
        node.start()
        wait(lambda: self.cluster.is_whole(self.synchronous), 120, "the node is a standby again", 0.2)
        return promoted - gone, commits - gone, again - gone, time.monotonic() - gone

    def hold(self, node):
        """Lets no log leave the primary any more: what is acknowledged now is nowhere else."""
        for sender in self.senders(node):
            os.kill(sender, signal.SIGSTOP)
        since = time.monotonic() + ON_ITS_WAY
        if not self.synchronous:
            wait(lambda: self.writers.acknowledged_after(since) >= LOST_AT_LEAST, 30, "the writers need no standby")
            return
        time.sleep(HELD)
        if alone := self.writers.acknowledged_after(since):
            self.faults.append(f"held: {alone} acknowledged that no standby had")

    def silence(self, node):
        """Both standbys are there and say nothing for a while; nobody takes over."""
        senders = self.senders(node)
        for sender in senders:
            os.kill(sender, signal.SIGSTOP)
        time.sleep(SILENT)
        for sender in senders:
            os.kill(sender, signal.SIGCONT)
        spoken = time.monotonic()
        wait(lambda: self.writers.first_after(spoken), BACK_WITHIN, "silent: 201 again after the standbys answer", 0.05)
        return None, None, SILENT + self.writers.first_after(spoken) - spoken, None

    def senders(self, node):
        found = node.senders()
        if len(found) != len(self.cluster.nodes) - 1:
            sys.exit("cluster-test: not every standby is sent the log")
        return found


def found(faults):
    return [f"{what}: {len(items)}, such as {str(items)[:400]}" for what, items in faults.items() if items]


def with_synchronous(cluster, services, checker, kinds):
    """Nothing may be lost."""
    print(f"\nsynchronous standbys\n{Rounds.HEADER}", flush=True)
    writers = Writers(services, "sync")
    rounds, wrong = Rounds(cluster, writers, True), []
    for number, kind in enumerate(kinds, 1):
        writers.resume()
        rounds.run(kind)
        wrong += found(checker.faults(writers, thorough=number == len(kinds)))
        if wrong:
            break
    writers.stop()
    counts = ", ".join(f"{count} × {status}" for status, count in sorted(writers.statuses.items()))
    print(
        f"{number} rounds: {len(writers.acknowledged)} acknowledged, {'see below' if wrong else '0 lost, 0 twice'}; "
        f"{len(writers.repeated)} by a key that was sent again, {len(writers.doubtful & writers.repeated.keys())} of them after "
        f"an unknown outcome, each one template; answers: {counts}; "
        f"201 again at most {rounds.behind:.1f} s after the database, slowest answer {rounds.slowest:.2f} s", flush=True,
    )
    return wrong + rounds.faults


def with_asynchronous(cluster, services, checker):
    """Something has to be lost, and nothing else may be wrong."""
    cluster.set_synchronous(False)
    print(f"\nthe control: asynchronous standbys\n{Rounds.HEADER}", flush=True)
    writers = Writers(services, "async")
    rounds = Rounds(cluster, writers, False)
    rounds.run("held")
    faults = checker.faults(writers)
    writers.stop()
    lost = faults.pop("acknowledged and lost")
    print(f"1 round: {len(writers.acknowledged)} acknowledged, {len(lost)} of them lost", flush=True)
    return found(faults) + rounds.faults + ([] if lost else ["the control has lost nothing: this test proves nothing"])


def main():
    # Whoever ends this program, in whichever way, ends with it what it has started.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    kinds, begun = sys.argv[1:] or USUAL, time.monotonic()
    if unknown := set(kinds) - set(KINDS):
        sys.exit(f"cluster-test: no such round: {', '.join(sorted(unknown))} (there are {', '.join(KINDS)})")
    with Cluster() as cluster, tempfile.TemporaryDirectory() as work:
        os.environ["GALLEY_TEST_POSTGRES"] = cluster.address()
        version = cluster.sql("SHOW server_version").split()[0]
        print(f"cluster-test: 3 nodes with PostgreSQL {version}, {WRITERS} writers on {INSTANCES} instances", flush=True)
        services = []
        try:
            for number in range(INSTANCES):
                services.append(Service(work, number))
            checker = Checker(services)
            wrong = with_synchronous(cluster, services, checker, kinds)
            wrong += with_asynchronous(cluster, services, checker)
        finally:
            for service in services:
                service.stop(signal.SIGKILL)
    print(f"\ncluster-test: {time.monotonic() - begun:.0f} s, {'failed' if wrong else 'all is well'}", flush=True)
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("cluster-test: ended from outside")
