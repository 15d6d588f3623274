"""Three instances on one PostgreSQL under mixed load, of which one is killed every few seconds.
Nothing that was acknowledged may be lost, names are unique, events are numbered without gaps and
tell each template's story in its order, and every event reaches the endpoint.

To be run by scripts/suites/with-postgres. GALLEY_MINUTE says how many seconds it takes (default: 60).
"""

import http.server
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time

from instances import Service, document, everything, wait

WRITERS, INSTANCES, BETWEEN_KILLS = 6, 3, 4
SETTINGS = {
    "GALLEY_WEBHOOKS_ALLOW_PRIVATE": "true",
    "GALLEY_WEBHOOKS_PER_SECOND": "1000",
    "GALLEY_WEBHOOKS_RETRIES": "0s 1s 2s 5s 10s 10s",
}


class Receiver(http.server.BaseHTTPRequestHandler):
    """Takes every event; some only at the second try."""

    seen, order, lock, requests = {}, [], threading.Lock(), 0

    def do_POST(self):
        event = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with Receiver.lock:
            Receiver.requests += 1
            good = random.random() > 0.05
            if good:
                if event["seq"] not in Receiver.seen:
                    Receiver.order.append(event)
                Receiver.seen.setdefault(event["seq"], []).append(event)
        self.send_response(204 if good else 500)
        self.end_headers()

    def log_message(self, *_):
        pass


class Writer(threading.Thread):
    """Makes templates, edits them, pauses them, deletes some; remembers what was acknowledged."""

    def __init__(self, number, services, stopped):
        super().__init__()
        self.number, self.services, self.stopped = number, services, stopped
        self.alive, self.deleted, self.maybe, self.odd, self.acknowledged = {}, set(), set(), [], 0
        self.dice = random.Random(number)

    def run(self):
        count = 0
        while not self.stopped.is_set():
            name, count = f"t_{self.number}_{count}", count + 1
            id = self.create(name)
            if id is None:
                continue
            for _ in range(self.dice.randrange(3)):
                body = {"components": [{"type": "BODY", "text": f"Another text {self.dice.random()}"}]}
                self.change("PATCH", f"/message_templates/{id}", body, name)
            if self.dice.random() < 0.3:
                self.change("DELETE", f"/message_templates/{id}", None, name)

    def call(self, *request):
        return self.dice.choice(self.services).call(*request)

    def create(self, name):
        while not self.stopped.is_set():
            status, answer = self.call("POST", "/message_templates", document(name), name)
            if status == 201:
                self.acknowledged += 1
                self.alive[name] = answer["id"]
                return answer["id"]
            if status not in (0, 503):
                self.odd.append((name, status, answer))
                return None
        self.maybe.add(name)
        return None

    def change(self, method, path, body, name):
        status, answer = self.call(method, path, body)
        if status in (200, 204):
            self.acknowledged += 1
            if method == "DELETE":
                self.deleted.add(name)
                self.alive.pop(name, None)
        elif status in (0, 503) and method == "DELETE":
            # It may have happened.
            self.maybe.add(name)
            self.alive.pop(name, None)
        elif status not in (0, 503):
            self.odd.append((name, status, answer))


def main():
    seconds = int(os.environ.get("GALLEY_MINUTE", "60"))
    receiver = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as work:
        services = [Service(work, number, SETTINGS) for number in range(INSTANCES)]
        try:
            run(services, work, seconds, f"http://127.0.0.1:{receiver.server_port}/")
        finally:
            for service in services:
                service.stop()


def run(services, work, seconds, url):
    status, answer = services[0].call("POST", "/webhooks", {"url": url})
    if status != 201:
        sys.exit(f"postgres-instances: no endpoint: {answer}")
    stopped, kills = threading.Event(), 0
    writers = [Writer(number, services, stopped) for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(BETWEEN_KILLS)
        victim = kills % INSTANCES
        services[victim].stop(signal.SIGKILL)
        kills += 1
        services[victim] = Service(work, INSTANCES + kills, SETTINGS)
    stopped.set()
    for writer in writers:
        writer.join()
    kept, events = everything(services[0])
    newest = len(events)
    wait(lambda: len(Receiver.seen) >= newest, 60, "every event is delivered")
    judge(writers, kept, events, kills)


def judge(writers, kept, events, kills):
    alive = {name: id for writer in writers for name, id in writer.alive.items()}
    deleted = set().union(*(writer.deleted for writer in writers))
    maybe = set().union(*(writer.maybe for writer in writers))
    lost = {name: id for name, id in alive.items() if kept.get(name) != [id]}
    back = deleted & kept.keys()
    strangers = kept.keys() - alive.keys() - maybe
    seqs = [event["seq"] for event in events]
    faults = [
        (lost, "acknowledged and lost"),
        (back, "deleted and back"),
        (strangers, "made by nobody"),
        (seqs != list(range(1, len(seqs) + 1)), "events are not numbered without gaps"),
        (story_faults(events), "stories out of order"),
        (sorted(Receiver.seen) != seqs, "events not delivered"),
        (delivery_faults(), "delivered in another order"),
        ([odd for writer in writers for odd in writer.odd], "refused"),
    ]
    twice = sum(len(taken) - 1 for taken in Receiver.seen.values())
    print(
        f"postgres-instances: {kills} kills among {INSTANCES} instances, {WRITERS} writers, "
        f"{sum(writer.acknowledged for writer in writers)} writes acknowledged, {len(lost)} lost, "
        f"{len(events)} events without a gap, all delivered ({twice} more than once, {Receiver.requests} requests)"
    )
    found = [f"{what}: {str(fault)[:500]}" for fault, what in faults if fault]
    if found:
        sys.exit("postgres-instances: " + "\n".join(found))


def story_faults(events):
    """Each template is made first, its versions count up, and nothing comes after its end."""
    faults, versions, ended = [], {}, set()
    for event in events:
        id, kind = event["template_id"], event["type"]
        begun = id in versions
        if (kind == "template.created") == begun or id in ended:
            faults.append(event)
        if kind == "template.edited" and event["version"] != versions.get(id, 0) + 1:
            faults.append(event)
        versions[id] = event["version"]
        if kind == "template.deleted":
            ended.add(id)
    return faults


def delivery_faults():
    """Each event of a template came for the first time behind those before it."""
    faults, last = [], {}
    for event in Receiver.order:
        if event["seq"] < last.get(event["template_id"], 0):
            faults.append(event)
        last[event["template_id"]] = event["seq"]
    return faults


if __name__ == "__main__":
    main()
