"""Runs `galley` on a store in a directory, with or without the shim, and sends requests to it."""

import http.client
import json
import os
import re
import signal
import subprocess
import time

KEY, TOKEN, PHONE = "key-of-the-writers", "token-of-the-writers", "15550001111"
START_SECONDS = 30
SETTINGS = {
    "GALLEY_BOOTSTRAP_KEY": KEY, "GALLEY_BOOTSTRAP_TOKEN": TOKEN, "GALLEY_ACCESS_LOG": "false",
    "GALLEY_DRAIN_DELAY": "0s", "GALLEY_WEBHOOKS_ALLOW_PRIVATE": "true", "GALLEY_WEBHOOKS_TIMEOUT": "500ms",
    "GALLEY_WEBHOOKS_RETRIES": "0s " + "1s " * 20, "GALLEY_EVENTS_KEPT": "36500d",
    "GALLEY_SECRET_KEY": "the secret key of the fixtures", "GALLEY_PUBLIC_URL": "https://galley.example",
    "GALLEY_EMULATOR": "true",
}


class Violation(Exception):
    """A promise that the service has broken."""


class StartFailed(Exception):
    """The service ended before it listened."""


def environment(control=None):
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GALLEY_")}
    return inherited | SETTINGS | (control.variables() if control else {})


def run(galley, directory, *arguments, control=None):
    """Runs a command on the store of the directory."""
    command = [galley, *arguments, "--store", f"sqlite:{directory}/galley.db"]
    return subprocess.run(
        command, cwd=directory, env=environment(control), capture_output=True, text=True, errors="replace", timeout=60
    )


def must_run(galley, directory, *arguments):
    done = run(galley, directory, *arguments)
    if done.returncode != 0:
        raise Violation(f"galley {' '.join(arguments)} ends with {done.returncode}: {done.stderr}{done.stdout}")
    return done.stdout


class Service:
    """One process, on a free port."""

    def __init__(self, galley, directory, control=None):
        self.log_file = directory.parent / f"{directory.name}.log{time.monotonic_ns()}"
        command = [galley, "serve", "--listen", "127.0.0.1:0", "--store", f"sqlite:{directory}/galley.db"]
        with self.log_file.open("w") as log:
            self.process = subprocess.Popen(
                command, cwd=directory, env=environment(control), stderr=log, stdout=subprocess.DEVNULL
            )
        self.port = self.wait_for_port()

    def wait_for_port(self):
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            ended = self.process.poll() is not None
            match = re.search(r"listening on http://127\.0\.0\.1:(\d+)", self.log)
            if match:
                return int(match.group(1))
            if ended:
                raise StartFailed(self.log)
            time.sleep(0.005)
        self.kill()
        raise Violation(f"the service did not start within {START_SECONDS} s: {self.log}")

    @property
    def log(self):
        return self.log_file.read_text(errors="replace")

    @property
    def is_running(self):
        return self.process.poll() is None

    def send(self, method, path, body=None, token=TOKEN, **headers):
        """Sends a request; returns the status and the bytes of the response, or status 0 without one."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        headers = {"Authorization": f"Bearer {token}", **headers}
        if body is not None and not isinstance(body, bytes):
            headers["Content-Type"], body = "application/json", json.dumps(body)
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException):
            return 0, b""
        finally:
            connection.close()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        """Stops the service as a supervisor does, and checks how it ended."""
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Violation("the service did not stop within 20 s") from None
        if status != 0:
            raise Violation(f"the service stopped with status {status}: {self.log}")


class Client:
    """Sends requests of one account."""

    def __init__(self, service, key=KEY, token=TOKEN, phone=PHONE):
        self.service, self.token, self.base = service, token, f"/api/v1.0/{phone}/{key}"

    def call(self, method, path, body=None, **headers):
        """Sends a request. Fails if the service responds with a server error other than 503."""
        path = path if path.startswith(("/v23.0", "/media")) else self.base + path
        status, response = self.service.send(method, path, body, self.token, **headers)
        try:
            response = json.loads(response) if response else {}
        except ValueError:
            pass  # the bytes of a file
        if status >= 500 and status != 503:
            raise Violation(f"{method} {path.replace(self.base, '')} is answered {status}: {response}")
        return status, response

    def read(self, path):
        """Reads something that must be there."""
        status, response = self.call("GET", path)
        if status != 200:
            raise Violation(f"GET {path} is answered {status}: {response}")
        return response

    def templates(self):
        """All templates, as lists by name."""
        found, after = {}, ""
        while True:
            page = self.read(f"/message_templates?limit=100{after}")
            for template in page["data"]:
                found.setdefault(template["name"], []).append(template)
            if "next" not in page["paging"]:
                return found
            after = f"&after={page['paging']['cursors']['after']}"

    def events(self):
        """All events. Fails if their numbers have a gap."""
        events = []
        while True:
            page = self.read(f"/events?limit=100&after={len(events)}")["data"]
            if not page:
                return events
            events += page
            if events[-1]["seq"] != len(events):
                raise Violation(f"{len(events)} events, and the last has the number {events[-1]['seq']}")


def outcome(status, response):
    """What a client knows about its write: "done", "refused" or "unknown"."""
    if 200 <= status < 300:
        return "done"
    if status == 503 and response["type"] != "/problems/outcome-unknown":
        return "refused"
    if status in (0, 503):
        return "unknown"
    raise Violation(f"a write is answered {status}: {response}")


def document(name, text=None):
    """A template document; its text names it, so that templates cannot be confused."""
    return {
        "name": name, "language": "en_US", "category": "UTILITY", "allow_category_change": False,
        "components": [{"type": "BODY", "text": text or f"Text of {name}"}],
    }


def wait_until(condition, seconds, description):
    """Waits until the condition holds. The time is a limit, not a delay."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise Violation(f"not within {seconds} s: {description}")
        time.sleep(0.01)
