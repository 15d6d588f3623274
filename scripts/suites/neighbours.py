#!/usr/bin/env python3
"""Measures what an account gets beside others that try to take the service from it. It creates and reads
templates on a schedule and opens new connections, while one of these goes on:

    waits-4x200  four accounts with 200 calls each that wait for a provider that never answers, for the
                 delay of a fault, or for events
    waits-2x512  two accounts with 512 such calls each
    headers      2,000 connections that send half of a header, and come again when they are closed
    bodies       2,000 connections that send half of a body, without credentials, and come again
    readers      2,000 connections that ask for a large response, without credentials, read nothing, and
                 come again
    proofs       500 connections of one account that ask for proofs of documents of 15 and 250 KB
    none         nothing, for comparison

    GALLEY_BIN=target/release/galley scripts/suites/neighbours.py [part …]
    GALLEY_BIN=target/release/galley scripts/suites/with-postgres scripts/suites/neighbours.py [part …]

With scripts/suites/with-postgres it measures on PostgreSQL, otherwise on SQLite. It prints the figures, and
fails if a 99th percentile (waits) or the slowest request (other parts) is over its limit. It is run by
hand, on a machine without other work: scripts/test does not contain it. It needs only the standard library."""

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, deque
from pathlib import Path

from emulator_load import Http, cpu_seconds, figures, percentile
from instances import Service

PARTS = ("none", "waits-4x200", "waits-2x512", "headers", "bodies", "readers", "proofs")

# Limits in milliseconds: of the 99th percentile beside waits, and of the slowest request beside the other parts.
# A connection whose body or response does not go on is closed after 250 ms at the earliest, and clients that
# come again queue beside the new one: it waits for up to two such times (docs/decisions/0026-admission.md).
MAX_P99 = 25
MAX_SLOWEST = 250
MAX_SLOWEST_BESIDE_TRANSFERS = 500

# Time that the other accounts have to begin, and for the last responses.
WARM_UP_SECONDS = 3
WAIT_SECONDS = 20

# A caller that is answered sooner did not wait, and calls again after about a second (`Retry-After`). The
# callers do not do so all at once.
WAITED_SECONDS = 0.5
RETRY_SECONDS = (0.5, 1.5)

SETTINGS = {
    "GALLEY_BOOTSTRAP_KEY": "quiet",
    "GALLEY_BOOTSTRAP_TOKEN": "quiet",
    "GALLEY_SECRET_KEY": "key-of-the-suite-only",
    "GALLEY_UPSTREAM_ALLOW_PRIVATE": "true",
    "GALLEY_EMULATOR": "true",
}


def document(name):
    return {
        "name": name, "language": "en_US", "category": "UTILITY", "allow_category_change": False,
        "components": [{"type": "BODY", "text": f"This is the text of the template {name} of the suite."}],
    }


def placeholders(count):
    """A document whose proof is more than ten times as large as the document."""
    text, example = "{{1}}" * count, {"body_text": [["x"]]}
    components = [{"type": "BODY", "text": text, "example": example}]
    return {"document": {"name": "large", "language": "en_US", "components": components}}


def request(method, path, token, body=None, headers=()):
    body = json.dumps(body) if body is not None else ""
    lines = [
        f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {token}",
        "Content-Type: application/json", f"Content-Length: {len(body)}", *headers,
    ]
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode()


class Provider:
    """A provider without templates. It answers until it is told to hang."""

    def __init__(self):
        self.hangs = False
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}/v23.0"
        self.open = []
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            stream, _ = self.listener.accept()
            self.open.append(stream)
            if not self.hangs:
                threading.Thread(target=self.answer, args=[stream], daemon=True).start()

    def answer(self, stream):
        head = b""
        while b"\r\n\r\n" not in head:
            data = stream.recv(65_536)
            if not data:
                return
            head += data
        body = json.dumps({"data": [], "id": "1", "name": "provider"}).encode()
        stream.sendall(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
            b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
        )
        stream.close()


class Caller(Http):
    """A connection of an account that calls again and again."""

    def __init__(self, make, reopen):
        super().__init__()
        self.make, self.reopen, self.sent = make, reopen, None

    def connection_made(self, transport):
        super().connection_made(transport)
        self.call()

    def call(self):
        if not self.transport.is_closing():
            self.sent = time.monotonic()
            self.transport.write(self.make())

    def complete(self, line, headers, body):
        waited = time.monotonic() - self.sent >= WAITED_SECONDS
        asyncio.get_running_loop().call_later(0 if waited else random.uniform(*RETRY_SECONDS), self.call)

    def connection_lost(self, error):
        asyncio.get_running_loop().call_later(random.uniform(*RETRY_SECONDS), self.reopen)


HALF_HEADER = b"GET /healthz HTTP/1.1\r\nHost: 127"
HALF_BODY = (
    b"POST /console/session HTTP/1.1\r\nHost: 127.0.0.1\r\nSec-Fetch-Site: same-origin\r\n"
    b"Content-Type: application/json\r\nContent-Length: 20\r\n\r\n{"
)


LARGE_RESPONSE = b"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
SILENT = {"headers": HALF_HEADER, "bodies": HALF_BODY, "readers": LARGE_RESPONSE}


class Silent(asyncio.Protocol):
    """A connection that sends this and nothing more. It may also read nothing."""

    def __init__(self, sent, reads, reopen):
        self.sent, self.reads, self.reopen = sent, reads, reopen

    def connection_made(self, transport):
        transport.write(self.sent)
        if not self.reads:
            transport.pause_reading()
            self.probe(transport)

    def probe(self, transport):
        """Sends a byte of a further request: a client that does not read learns only so that it was closed."""
        if not transport.is_closing():
            transport.write(b"G")
            asyncio.get_running_loop().call_later(0.25, self.probe, transport)

    def connection_lost(self, error):
        asyncio.get_running_loop().call_later(0.1, self.reopen)


class Prover(Caller):
    """A connection that asks for proofs without a pause, unless it is refused."""

    def complete(self, line, headers, body):
        pause = 0 if line.split()[1] == "200" else random.uniform(*RETRY_SECONDS)
        asyncio.get_running_loop().call_later(pause, self.call)


def disturb(part, port, accounts):
    """Runs in a process of its own until it is ended."""

    async def run():
        loop = asyncio.get_running_loop()
        tasks = set()

        def begin(protocol):
            def reopen():
                tasks.add(task := loop.create_task(open_one()))
                task.add_done_callback(tasks.discard)

            async def open_one():
                try:
                    await loop.create_connection(lambda: protocol(reopen), "127.0.0.1", port)
                except OSError:
                    loop.call_later(1, reopen)

            loop.call_later(random.uniform(0, 1), reopen)

        for make, count in calls(part, accounts):
            for _ in range(count):
                if part in SILENT:
                    begin(lambda reopen, sent=make: Silent(sent, part != "readers", reopen))
                elif part == "proofs":
                    begin(lambda reopen, make=make: Prover(make, reopen))
                else:
                    begin(lambda reopen, make=make: Caller(make, reopen))
        await asyncio.sleep(600)

    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    asyncio.run(run())


def calls(part, accounts):
    """What the others send, and on how many connections."""
    numbers = iter(range(1_000_000))

    def create(name, headers=()):
        path = f"/v23.0/{accounts[name]}/message_templates"
        return lambda: request("POST", path, name, document(f"{name}_{next(numbers)}"), headers)

    events = request("GET", "/api/v1.0/2/feed/events?after=latest&wait=25", "feed")
    waits = {
        "shop": create("shop"),
        "sandbox": create("sandbox", ["Galley-Fault: delay=30s"]),
        "market": create("market"),
        "feed": lambda: events,
    }
    if part == "waits-4x200":
        return [(make, 200) for make in waits.values()]
    if part == "waits-2x512":
        return [(waits[name], 512) for name in ("shop", "sandbox")]
    if part in SILENT:
        return [(SILENT[part], 2_000)]
    proof = "/api/v1.0/2/feed/message_templates/proof"
    small, large = (request("POST", proof, "feed", placeholders(it)) for it in (3_000, 50_000))
    return [(lambda: small, 450), (lambda: large, 50)]


class Measured(Http):
    """A connection of the quiet account with at most one request in flight."""

    def __init__(self, load):
        super().__init__()
        self.load, self.kind, self.due = load, None, 0

    def connection_made(self, transport):
        super().connection_made(transport)
        self.load.idle.append(self)

    def send(self, kind, due):
        self.kind, self.due = kind, due
        self.transport.write(self.load.request(kind))

    def complete(self, line, headers, body):
        self.load.finish(self.kind, int(line.split()[1]), body, self.due)
        self.kind = None
        self.load.idle.append(self)

    def connection_lost(self, error):
        if self in self.load.idle:
            self.load.idle.remove(self)
        if self.kind:
            self.load.failures["connection closed"] += 1


class Load:
    """Requests on a schedule, whatever the service does. A latency begins when the request was due."""

    def __init__(self, port):
        self.port = port
        self.idle = deque()
        self.failures = Counter()
        self.latencies = {"create": [], "read": [], "new connection": []}
        self.names = iter(range(10_000_000))
        self.prefix = f"quiet_{time.time_ns()}"
        self.read = None

    def request(self, kind):
        base = "/api/v1.0/1/quiet/message_templates"
        if kind == "create":
            return request("POST", base, "quiet", document(f"{self.prefix}_{next(self.names)}"))
        return request("GET", f"{base}/{self.read}", "quiet")

    def finish(self, kind, status, body, due):
        self.latencies[kind].append(1000 * (time.monotonic() - due))
        if status not in (200, 201):
            self.failures[f"{kind}: {status} {body[:100]}"] += 1
        elif not self.read:
            self.read = json.loads(body)["id"]

    async def connect(self):
        loop = asyncio.get_running_loop()
        try:
            await loop.create_connection(lambda: Measured(self), "127.0.0.1", self.port)
        except OSError as error:
            self.failures[f"no connection: {error}"] += 1

    async def connect_new(self, due):
        """Opens a connection for one read."""
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            writer.write(self.request("read").replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
            line = await reader.readline()
            self.finish("new connection", int(line.split()[1]) if line else 0, line, due)
            writer.close()
        except OSError as error:
            self.finish("new connection", 0, str(error).encode(), due)

    async def start(self):
        for _ in range(64):
            await self.connect()
        self.idle.popleft().send("create", time.monotonic())
        end = time.monotonic() + WAIT_SECONDS
        while not self.read:
            if time.monotonic() > end:
                sys.exit(f"the first create failed: {dict(self.failures)}")
            await asyncio.sleep(0.01)

    async def run(self, seconds, rate, new_per_second):
        started, sent, opened = time.monotonic(), 0, 0
        new, spare = set(), set()
        while (now := time.monotonic()) < started + seconds:
            while self.idle and started + sent / rate <= now:
                kind = "create" if sent % 2 else "read"
                self.idle.popleft().send(kind, started + sent / rate)
                sent += 1
            while started + opened / new_per_second <= now:
                new.add(asyncio.create_task(self.connect_new(started + opened / new_per_second)))
                opened += 1
            # For connections that the service has closed.
            if len(self.idle) + len(spare) < 16:
                spare.add(task := asyncio.create_task(self.connect()))
                task.add_done_callback(spare.discard)
            await asyncio.sleep(0.001)
        _, open_ones = await asyncio.wait(new, timeout=WAIT_SECONDS)
        self.failures["new connections without an answer"] += len(open_ones)
        self.failures["requests that were not sent in time"] += max(0, int(rate * seconds) - sent - 1)
        end = time.monotonic() + WAIT_SECONDS
        while self.answered() < sent and time.monotonic() < end:
            await asyncio.sleep(0.01)
        closed = self.failures["connection closed"]
        self.failures["requests without an answer"] += max(0, sent - self.answered() - closed)
        return sent / seconds

    def answered(self):
        return len(self.latencies["create"]) + len(self.latencies["read"])


def create_database(part):
    """Creates a database for a part; returns its address, or None without PostgreSQL."""
    server = os.environ.get("GALLEY_TEST_POSTGRES")
    if server:
        subprocess.run(["psql", "-q", "-c", f'CREATE DATABASE "{part}"', server], check=True)
        return server.replace("/postgres?", f"/{part}?")
    return None


def command(galley, store, *arguments, text=""):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GALLEY_")}
    done = subprocess.run(
        [galley, *arguments, "--store", store], input=text, env=environment | SETTINGS,
        capture_output=True, text=True, check=False,
    )
    if done.returncode != 0:
        sys.exit(f"{arguments} failed: {done.stderr}")
    return done.stdout


def create_accounts(galley, store, provider):
    """Creates the accounts of the others; returns their ids."""
    ids = {}
    for name, *options in (
        ("feed",),
        ("shop", "--rulebook", "whatsapp"),
        ("market", "--rulebook", "whatsapp"),
        ("sandbox", "--rulebook", "whatsapp", "--emulator"),
    ):
        created = command(
            galley, store, "account", "create", name, "--key", name, "--token", name, "--json", *options
        )
        ids[name] = json.loads(created)["account_id"]
    for name in ("shop", "market"):
        command(
            galley, store, "upstream", "connect", name, "--base-url", provider.url, "--waba", "1",
            "--token-file", "-", text="token-of-the-provider",
        )
        command(galley, store, "upstream", "import", name)
    return ids


def check(part, load, problems):
    """Compares the figures with their limits."""
    for kind, values in load.latencies.items():
        print(f"  {kind:<15} {len(values):>6}: {figures(values, 'ms', 1)}")
        if part.startswith("waits"):
            value, limit, what = percentile(values, 0.99), MAX_P99, "p99"
        else:
            limit = MAX_SLOWEST_BESIDE_TRANSFERS if part in ("bodies", "readers") else MAX_SLOWEST
            value, what = max(values, default=float("inf")), "slowest"
        if part != "none" and not value <= limit:
            problems.append(f"{part}: {kind}: {what} {value:.1f} ms is over {limit} ms")
    failures = +load.failures
    if failures:
        print(f"  failures: {dict(failures)}")
        problems.append(f"{part}: {failures.total()} failures")


def measure(part, service, accounts, arguments, problems):
    async def run():
        load = Load(service.port)
        await load.start()
        other = None
        if part != "none":
            other = multiprocessing.Process(
                target=disturb, args=(part, service.port, accounts), daemon=True
            )
            other.start()
        await asyncio.sleep(WARM_UP_SECONDS)
        load.latencies = {kind: [] for kind in load.latencies}
        before = cpu_seconds(service.process.pid)
        started = time.monotonic()
        rate = await load.run(arguments.seconds, arguments.rate, arguments.connections)
        used = (cpu_seconds(service.process.pid) - before) / (time.monotonic() - started)
        if other:
            other.terminate()
            other.join()
        print(f"{part}: {rate:.0f} requests a second, server {used:.2f} cores")
        check(part, load, problems)

    asyncio.run(run())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rate", type=float, default=500, help="requests of the account per second")
    parser.add_argument("--connections", type=float, default=20, help="new connections per second")
    parser.add_argument("--seconds", type=float, default=15, help="how long each part is measured")
    parser.add_argument("part", nargs="*", help=f"one of {', '.join(PARTS)}; without one: all")
    arguments = parser.parse_args()
    if unknown := set(arguments.part) - set(PARTS):
        parser.error(f"unknown part: {', '.join(unknown)}")
    root = Path(__file__).resolve().parents[2]
    galley = str(Path(os.environ.get("GALLEY_BIN", root / "target" / "release" / "galley")).resolve())
    if not Path(galley).exists():
        sys.exit(f"{galley} does not exist: build it with cargo build --release -p galley, or set GALLEY_BIN")
    os.environ["GALLEY_BIN"] = galley
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    problems = []
    for part in arguments.part or PARTS:
        with tempfile.TemporaryDirectory() as work:
            store = create_database(part) or f"sqlite:{work}/galley.db"
            provider = Provider()
            service = Service(work, 0, SETTINGS | {"GALLEY_STORE": store})
            try:
                accounts = create_accounts(galley, store, provider)
                provider.hangs = True
                measure(part, service, accounts, arguments, problems)
            finally:
                service.process.kill()
                service.process.wait(timeout=30)
    for problem in problems:
        print(f"failed: {problem}", file=sys.stderr)
    print("failed" if problems else "passed")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
