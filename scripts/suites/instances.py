"""Starts instances of the service on one PostgreSQL database, for the suites that kill processes.

GALLEY_BIN is the binary to test (default: target/debug/galley).
"""

import http.client
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

KEY, TOKEN, PHONE = "key-of-the-writers", "token-of-the-writers", "15550001111"
BASE = f"/api/v1.0/{PHONE}/{KEY}"


def galley():
    """Returns the path of the binary to test."""
    return os.environ.get("GALLEY_BIN", str(pathlib.Path(__file__).resolve().parents[2] / "target/debug/galley"))


def wait_until(condition, seconds, description, interval=0.005):
    """Waits until the condition holds, and exits with an error after the given time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"timed out after {seconds} s: {description}")
        time.sleep(interval)


def document(name):
    """Returns a template document. Its text contains its name, so templates cannot be confused."""
    return {
        "name": name, "language": "en_US", "category": "UTILITY", "allow_category_change": False,
        "components": [{"type": "BODY", "text": f"Text of {name}"}],
    }


class Service:
    """One instance, on a free port."""

    def __init__(self, work, number, settings=None):
        self.log = pathlib.Path(work) / f"log{number}"
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GALLEY_")}
        environment |= {"GALLEY_BOOTSTRAP_KEY": KEY, "GALLEY_BOOTSTRAP_TOKEN": TOKEN, "GALLEY_ACCESS_LOG": "false"}
        environment |= settings or {}
        store = environment.get("GALLEY_STORE") or os.environ["GALLEY_TEST_POSTGRES"]
        command = [galley(), "serve", "--listen", "127.0.0.1:0", "--store", store]
        # Without this script's output, whose reader would wait for a process that is left over.
        self.process = subprocess.Popen(
            command, cwd=work, env=environment, stdout=subprocess.DEVNULL, stderr=self.log.open("w")
        )
        self.port = self.wait_for_port()

    def wait_for_port(self):
        end = time.monotonic() + 30
        while time.monotonic() < end:
            match = re.search(r"listening on http://127\.0\.0\.1:(\d+)", self.log.read_text())
            if match:
                return int(match.group(1))
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        self.process.kill()
        sys.exit(f"the service did not start:\n{self.log.read_text()}")

    def call(self, method, path, body=None, key=None):
        """Sends a request; returns the status and the JSON body, or status 0 without a response."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        if key:
            headers["Idempotency-Key"] = key
        try:
            connection.request(method, BASE + path, json.dumps(body) if body else None, headers)
            response = connection.getresponse()
            text = response.read()
            return response.status, json.loads(text) if text else {}
        except (OSError, http.client.HTTPException, ValueError):
            return 0, {}
        finally:
            connection.close()

    def stop(self, signal_number=signal.SIGTERM):
        self.process.send_signal(signal_number)
        self.process.wait(timeout=30)


class Provider:
    """An emulator, whose process the suite ends."""

    def __init__(self, work):
        command = [galley(), "emulator", "--listen", "127.0.0.1:0", "--faithful", "--no-limits", "--json"]
        log = (pathlib.Path(work) / "provider.log").open("w")
        self.process = subprocess.Popen(command, cwd=work, stdout=subprocess.PIPE, stderr=log, text=True)
        self.ready = json.loads(self.process.stdout.readline())
        self.port = int(self.ready["url"].rsplit(":", 1)[1])

    def call(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        headers = {"Authorization": f"Bearer {self.ready['token']}", "Content-Type": "application/json"}
        base = f"/api/v1.0/{self.ready['phone_number_id']}/{self.ready['key']}"
        connection.request(method, base + path, json.dumps(body) if body else None, headers)
        text = connection.getresponse().read()
        connection.close()
        return json.loads(text) if text else {}

    def events(self):
        """The types of all events, by name of the template."""
        found, after = {}, 0
        while page := self.call("GET", f"/events?limit=100&after={after}")["data"]:
            for event in page:
                found.setdefault(event["data"]["name"], []).append(event["type"])
            after = page[-1]["seq"]
        return found


def read_all(service):
    """Reads all templates, as lists of ids by name, and all events."""
    stored, events, after = {}, [], ""
    while True:
        _, page = service.call("GET", f"/message_templates?limit=100{after}")
        for template in page["data"]:
            stored.setdefault(template["name"], []).append(template["id"])
        if "next" not in page["paging"]:
            break
        after = f"&after={page['paging']['cursors']['after']}"
    while True:
        _, page = service.call("GET", f"/events?limit=100&after={events[-1]['seq'] if events else 0}")
        if not page["data"]:
            return stored, events
        events.extend(page["data"])
