"""Runs three instances on one PostgreSQL database under mixed load and kills one of them every few
seconds. Checks that no acknowledged write is lost, that names are unique, that events are numbered
without gaps and in order for each template, and that every event is delivered.

Run it through scripts/suites/with-postgres. GALLEY_MINUTE is the duration in seconds (default: 60).
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

from instances import Service, document, read_all, wait_until

WRITERS, INSTANCES, KILL_INTERVAL_SECONDS = 6, 3, 4
SETTINGS = {
    "GALLEY_WEBHOOKS_ALLOW_PRIVATE": "true",
    "GALLEY_WEBHOOKS_PER_SECOND": "1000",
    "GALLEY_WEBHOOKS_RETRIES": "0s 1s 2s 5s 10s 10s",
}


class Receiver(http.server.BaseHTTPRequestHandler):
    """Webhook receiver that accepts every event, and fails some attempts at random."""

    received, order, lock, requests = {}, [], threading.Lock(), 0

    def do_POST(self):
        event = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with Receiver.lock:
            Receiver.requests += 1
            accepted = random.random() > 0.05
            if accepted:
                if event["seq"] not in Receiver.received:
                    Receiver.order.append(event)
                Receiver.received.setdefault(event["seq"], []).append(event)
        self.send_response(204 if accepted else 500)
        self.end_headers()

    def log_message(self, *_):
        pass


class Writer(threading.Thread):
    """Creates templates, edits them and deletes some; records what was acknowledged."""

    def __init__(self, number, services, stopped):
        super().__init__(daemon=True)
        self.number, self.services, self.stopped = number, services, stopped
        self.existing, self.deleted, self.unknown, self.unexpected, self.acknowledged = {}, set(), set(), [], 0
        self.random = random.Random(number)

    def run(self):
        count = 0
        while not self.stopped.is_set():
            name, count = f"t_{self.number}_{count}", count + 1
            id = self.create(name)
            if id is None:
                continue
            for _ in range(self.random.randrange(3)):
                body = {"components": [{"type": "BODY", "text": f"Another text {self.random.random()}"}]}
                self.change("PATCH", f"/message_templates/{id}", body, name)
            if self.random.random() < 0.3:
                self.change("DELETE", f"/message_templates/{id}", None, name)

    def call(self, *request):
        return self.random.choice(self.services).call(*request)

    def create(self, name):
        while not self.stopped.is_set():
            status, response = self.call("POST", "/message_templates", document(name), name)
            if status == 201:
                self.acknowledged += 1
                self.existing[name] = response["id"]
                return response["id"]
            if status not in (0, 503):
                self.unexpected.append((name, status, response))
                return None
        self.unknown.add(name)
        return None

    def change(self, method, path, body, name):
        status, response = self.call(method, path, body)
        if status in (200, 204):
            self.acknowledged += 1
            if method == "DELETE":
                self.deleted.add(name)
                self.existing.pop(name, None)
        elif status in (0, 503) and method == "DELETE":
            # The deletion may have been committed.
            self.unknown.add(name)
            self.existing.pop(name, None)
        elif status not in (0, 503):
            self.unexpected.append((name, status, response))


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
    status, response = services[0].call("POST", "/webhooks", {"url": url})
    if status != 201:
        sys.exit(f"postgres-instances: the endpoint could not be registered: {response}")
    stopped, kills = threading.Event(), 0
    writers = [Writer(number, services, stopped) for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(KILL_INTERVAL_SECONDS)
        victim = kills % INSTANCES
        services[victim].stop(signal.SIGKILL)
        kills += 1
        services[victim] = Service(work, INSTANCES + kills, SETTINGS)
    stopped.set()
    for writer in writers:
        writer.join()
    stored, events = read_all(services[0])
    newest = len(events)
    wait_until(lambda: len(Receiver.received) >= newest, 60, "every event is delivered")
    check(writers, stored, events, kills)


def check(writers, stored, events, kills):
    existing = {name: id for writer in writers for name, id in writer.existing.items()}
    deleted = set().union(*(writer.deleted for writer in writers))
    unknown = set().union(*(writer.unknown for writer in writers))
    lost = {name: id for name, id in existing.items() if stored.get(name) != [id]}
    undeleted = deleted & stored.keys()
    unrequested = stored.keys() - existing.keys() - unknown
    seqs = [event["seq"] for event in events]
    checks = [
        (lost, "acknowledged but lost"),
        (undeleted, "deleted but still stored"),
        (unrequested, "stored but never requested"),
        (seqs != list(range(1, len(seqs) + 1)), "gaps in event numbers"),
        (history_errors(events), "template events out of order"),
        (sorted(Receiver.received) != seqs, "events not delivered"),
        (delivery_order_errors(), "events delivered out of order"),
        ([it for writer in writers for it in writer.unexpected], "unexpected responses"),
    ]
    duplicates = sum(len(events) - 1 for events in Receiver.received.values())
    print(
        f"postgres-instances: {kills} kills among {INSTANCES} instances, {WRITERS} writers, "
        f"{sum(writer.acknowledged for writer in writers)} writes acknowledged, {len(lost)} lost, "
        f"{len(events)} events without a gap, all delivered ({duplicates} more than once, {Receiver.requests} requests)"
    )
    errors = [f"{description}: {str(details)[:500]}" for details, description in checks if details]
    if errors:
        sys.exit("postgres-instances: " + "\n".join(errors))


def history_errors(events):
    """Returns events that violate the order: created first, versions increase, none after deletion."""
    errors, versions, deleted = [], {}, set()
    for event in events:
        id, kind = event["template_id"], event["type"]
        exists = id in versions
        if (kind == "template.created") == exists or id in deleted:
            errors.append(event)
        if kind == "template.edited" and event["version"] != versions.get(id, 0) + 1:
            errors.append(event)
        versions[id] = event["version"]
        if kind == "template.deleted":
            deleted.add(id)
    return errors


def delivery_order_errors():
    """Returns events that were first delivered after a later event of the same template."""
    errors, last = [], {}
    for event in Receiver.order:
        if event["seq"] < last.get(event["template_id"], 0):
            errors.append(event)
        last[event["template_id"]] = event["seq"]
    return errors


if __name__ == "__main__":
    main()
