"""Instances of the service on one PostgreSQL, for the suites that kill things.

GALLEY_BIN names the binary to test (default: target/debug/galley).
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


def wait(condition, seconds, what, every=0.005):
    """Until it is so."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"{what}: not within {seconds} s")
        time.sleep(every)


def document(name):
    """A template to create. Its text tells its name, so that nobody takes it for another."""
    return {
        "name": name, "language": "en_US", "category": "UTILITY", "allow_category_change": False,
        "components": [{"type": "BODY", "text": f"Text of {name}"}],
    }


class Service:
    """One instance, on a port that the system chooses."""

    def __init__(self, work, number, settings=None):
        root = pathlib.Path(__file__).resolve().parents[2]
        galley = os.environ.get("GALLEY_BIN", str(root / "target/debug/galley"))
        self.log = pathlib.Path(work) / f"log{number}"
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GALLEY_")}
        environment |= {"GALLEY_BOOTSTRAP_KEY": KEY, "GALLEY_BOOTSTRAP_TOKEN": TOKEN, "GALLEY_ACCESS_LOG": "false"}
        environment |= settings or {}
        store = environment.get("GALLEY_STORE") or os.environ["GALLEY_TEST_POSTGRES"]
        command = [galley, "serve", "--listen", "127.0.0.1:0", "--store", store]
        self.process = subprocess.Popen(command, cwd=work, env=environment, stderr=self.log.open("w"))
        self.port = self.wait_for_port()

    def wait_for_port(self):
        end = time.monotonic() + 30
        while time.monotonic() < end:
            found = re.search(r"listening on http://127\.0\.0\.1:(\d+)", self.log.read_text())
            if found:
                return int(found.group(1))
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        self.process.kill()
        sys.exit(f"the service does not start:\n{self.log.read_text()}")

    def call(self, method, path, body=None, key=None):
        """The status and the document of an answer; status 0 if there is none."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        if key:
            headers["Idempotency-Key"] = key
        try:
            connection.request(method, BASE + path, json.dumps(body) if body else None, headers)
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if text else {}
        except (OSError, http.client.HTTPException, ValueError):
            return 0, {}
        finally:
            connection.close()

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait(timeout=30)


def everything(service):
    """The ids of each name, and all events."""
    kept, events, after = {}, [], ""
    while True:
        _, page = service.call("GET", f"/message_templates?limit=100{after}")
        for template in page["data"]:
            kept.setdefault(template["name"], []).append(template["id"])
        if "next" not in page["paging"]:
            break
        after = f"&after={page['paging']['cursors']['after']}"
    while True:
        _, page = service.call("GET", f"/events?limit=100&after={events[-1]['seq'] if events else 0}")
        if not page["data"]:
            return kept, events
        events.extend(page["data"])
