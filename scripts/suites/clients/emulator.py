"""Starts `galley emulator`, makes the calls that only an emulator has, and receives its webhooks, as the
callback of an app does. Needs only the standard library."""

import atexit
import hashlib
import hmac
import http.client
import json
import os
import select
import signal
import subprocess
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

# How long to wait for a webhook, and for the emulator to start or to stop.
WEBHOOK_SECONDS = 20
START_SECONDS = 60
STOP_SECONDS = 20

VERIFY_TOKEN = "verify-token-of-the-suite"

SIGNATURE = "X-Hub-Signature-256"


class Request:
    """A webhook request, as it came."""

    def __init__(self, body, headers, at):
        self.body = body
        self.headers = headers
        self.at = at
        self.payload = json.loads(body)

    def changes(self):
        """Returns field and value of each change."""
        entries = self.payload["entry"]
        return [(it["field"], it["value"]) for entry in entries for it in entry["changes"]]


class Receiver:
    """The callback of an app on a free port of 127.0.0.1. It answers the handshake, checks the signature of
    each request, and keeps them in the order of their arrival."""

    def __init__(self):
        self.requests = []
        self.handshakes = []
        self.refused = []
        self._secret = None
        self._changed = threading.Condition()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                query = {
                    key: values[0] for key, values in parse_qs(urlsplit(self.path).query).items()
                }
                self.respond(*receiver.handshake(query))

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                self.respond(*receiver.receive(body, self.headers))

            def respond(self, status, text):
                body = text.encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/meta"

    def handshake(self, query):
        """Answers the handshake: status and text."""
        with self._changed:
            self.handshakes.append(query)
            self._changed.notify_all()
        if query.get("hub.mode") == "subscribe" and query.get("hub.verify_token") == VERIFY_TOKEN:
            return 200, query["hub.challenge"]
        return 403, ""

    def receive(self, body, headers):
        """Takes a request: status and text."""
        at = time.time()
        with self._changed:
            # The emulator prints its secret when it is ready, and may send before that line is read.
            self._changed.wait_for(lambda: self._secret, START_SECONDS)
            if not self.is_genuine(body, headers.get(SIGNATURE)):
                self.refused.append(body)
                return 401, ""
            self.requests.append(Request(body, headers, at))
            self.accept(body)
            self._changed.notify_all()
        return 200, ""

    def is_genuine(self, body, signature):
        """Whether the signature is that of the app."""
        digest = hmac.new(self._secret.encode(), body, hashlib.sha256).hexdigest()
        return hmac.compare_digest(f"sha256={digest}", signature or "")

    def accept(self, body):
        """Handles a genuine request. A client with a webhook parser of its own overrides this."""

    def set_secret(self, secret):
        """Sets the app secret; requests wait for it."""
        with self._changed:
            self._secret = secret
            self._changed.notify_all()

    def wait(self, find, seconds=WEBHOOK_SECONDS):
        """Waits until `find()` returns something, and returns it; at the end, what it returns then."""
        with self._changed:
            return self._changed.wait_for(find, seconds)

    def changes(self, field=None, start=0):
        """Returns the values of a field, or field and value of all changes, from a request on."""
        found = [it for request in self.requests[start:] for it in request.changes()]
        return found if field is None else [value for name, value in found if name == field]

    def statuses(self, message_id=None, start=0):
        """Returns the statuses of a message, or of all messages."""
        found = [
            it for value in self.changes("messages", start) for it in value.get("statuses", [])
        ]
        return [it for it in found if message_id in (None, it["id"])]

    def wait_for_change(self, field, seconds=WEBHOOK_SECONDS, **members):
        """Waits for a change with these members; returns its value, or None."""

        def find():
            found = self.changes(field)
            return next((it for it in found if members.items() <= it.items()), None)

        return self.wait(find, seconds)

    def wait_for_statuses(self, message_id, count):
        """Waits for so many statuses of a message; returns those that came."""
        self.wait(lambda: len(self.statuses(message_id)) >= count)
        return self.statuses(message_id)


class Emulator:
    """A running `galley emulator`. `receiver` is its callback."""

    def __init__(self, *arguments, receiver=None):
        self._directory = tempfile.TemporaryDirectory(prefix="suite-")
        work = Path(self._directory.name)
        self._files = work / "files"
        self._log = work / "log"
        # An empty directory, without a galley.toml or files of another run.
        for directory in (work / "empty", self._files):
            directory.mkdir()
        command = [os.environ["SUITE_GALLEY"], "emulator", "--json", "--listen", "127.0.0.1:0"]
        if receiver:
            command += ["--callback", receiver.url, "--verify-token", VERIFY_TOKEN]
        command += os.environ.get("SUITE_OPTIONS", "").split()
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*command, *arguments],
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=work / "empty",
                env={**os.environ, "TMPDIR": str(self._files)},
            )
        atexit.register(self._end)
        line = self._first_line()
        try:
            self.account = json.loads(line)
        except ValueError:
            raise SystemExit(f"the emulator did not start: {line!r}\n{self.log()}") from None
        for name, value in self.account.items():
            setattr(self, name, value)
        self.base = f"/api/v1.0/{self.phone_number_id}/{self.key}"
        self._address = urlsplit(self.url).netloc
        if receiver:
            receiver.set_secret(self.app_secret)

    def _first_line(self):
        readable, _, _ = select.select([self._process.stdout], [], [], START_SECONDS)
        return self._process.stdout.readline() if readable else b""

    @property
    def pid(self):
        return self._process.pid

    def log(self):
        """Returns what the emulator has written to standard error."""
        return self._log.read_text(errors="replace")

    def call(self, method, path, body=None, **headers):
        """Makes a call below `/api/v1.0/PHONE/KEY`; returns its status and document."""
        return self.request(method, f"{self.base}/{path}", body, **headers)

    def graph(self, method, path, body=None, **headers):
        """Makes a call of the Graph API; returns its status and document."""
        return self.request(method, f"/v24.0/{path}", body, **headers)

    def request(self, method, path, body=None, **headers):
        """Makes a call on a connection of its own; returns its status and document."""
        connection = http.client.HTTPConnection(self._address, timeout=60)
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        headers["Authorization"] = f"Bearer {self.token}"
        if body is not None:
            headers["Content-Type"] = "application/json"
            body = json.dumps(body).encode()
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            text = response.read()
        finally:
            connection.close()
        return response.status, json.loads(text) if text else None

    def ok(self, method, path, body=None):
        """Makes a call that must succeed; returns its document."""
        status, document = self.call(method, path, body)
        if status >= 300:
            raise RuntimeError(f"{method} {path} {body}: {status} {document}")
        return document

    def advance(self, duration):
        """Moves the clock; returns `{"now","applied"}`."""
        return self.ok("POST", "emulator/clock", {"advance": duration})

    def messages(self):
        """Returns all messages that are kept, newest first."""
        found, query = [], "?limit=100"
        while query:
            page = self.ok("GET", f"emulator/messages{query}")
            found += page["data"]
            query = page.get("next")
        return found

    def message(self, message_id):
        """Returns a message as the emulator keeps it."""
        return next((it for it in self.messages() if it["id"] == message_id), None)

    def stop(self):
        """Stops the emulator; returns what was not as it should be."""
        problems = []
        if self._process.poll() is not None:
            problems.append(f"it terminated before with {self._process.returncode}")
        self._process.send_signal(signal.SIGTERM)
        try:
            if status := self._process.wait(STOP_SECONDS):
                problems.append(f"exit status {status}")
        except subprocess.TimeoutExpired:
            problems.append("it did not stop")
        log = self.log()
        problems += [
            f"the log contains the {it}"
            for it in ("key", "token", "app_secret")
            if self.account[it] in log
        ]
        if "panicked" in log:
            problems.append("the log contains a panic")
        problems += [f"{it.name} was left behind" for it in self._files.iterdir()]
        if problems:
            problems.append(log[-2000:])
        self._end()
        return problems

    def _end(self):
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._directory.cleanup()
        atexit.unregister(self._end)
