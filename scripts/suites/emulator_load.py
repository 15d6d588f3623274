#!/usr/bin/env python3
"""Measures sends of an emulator: so many per second on a schedule, for some time. Checks that every
message is sent, delivered and read, in this order, each status at most 10 s after its time on the clock, and
that at most 10,000 messages are kept. Prints the figures.

    GALLEY_BIN=target/release/galley scripts/suites/emulator_load.py [--rate 1000] [--seconds 60]

It is run by hand: scripts/test does not contain it. It needs only the standard library."""

import argparse
import asyncio
import base64
import hashlib
import hmac
import json
import os
import sys
import time
from collections import Counter, deque
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

sys.path.insert(0, str(Path(__file__).parent / "clients"))

from emulator import SIGNATURE, VERIFY_TOKEN, Emulator  # noqa: E402

# When each status is due after its message, in seconds.
OFFSETS = {"sent": 0, "delivered": 1, "read": 3}

# How late a status may arrive, and how long the script waits for another one.
MAX_LATE_SECONDS = 10
PATIENCE_SECONDS = 15

MAX_KEPT = 10_000
MAX_STATUSES_PER_REQUEST = 100

TEMPLATE = {
    "name": "load",
    "language": "en_US",
    "category": "UTILITY",
    "components": [
        {
            "type": "BODY",
            "text": "Hello {{1}}, your order {{2}} has been shipped and is on its way.",
            "example": {"body_text": [["Ada", "A-17"]]},
        }
    ],
}


class Http(asyncio.Protocol):
    """Splits what arrives on a connection into heads and bodies."""

    def __init__(self):
        self.buffer = b""

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.buffer += data
        while True:
            head, found, rest = self.buffer.partition(b"\r\n\r\n")
            if not found:
                return
            line, *lines = head.decode("latin-1").split("\r\n")
            headers = dict(it.lower().split(": ", 1) for it in lines)
            length = int(headers.get("content-length", 0))
            if len(rest) < length:
                return
            self.buffer = rest[length:]
            self.complete(line, headers, rest[:length])


class Receiver:
    """The callback of the app. It keeps the requests for later, to take little from the server's cores."""

    def __init__(self):
        self.requests = []
        self.secret = None

    async def start(self):
        receiver = self

        class Connection(Http):
            def complete(self, line, headers, body):
                answer = b""
                if line.startswith("GET"):
                    query = parse_qs(urlsplit(line.split()[1]).query)
                    answer = query["hub.challenge"][0].encode()
                    assert query["hub.verify_token"] == [VERIFY_TOKEN], query
                else:
                    signature = headers.get(SIGNATURE.lower(), "")
                    receiver.requests.append((time.time(), signature, body))
                self.transport.write(
                    b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(answer), answer)
                )

        server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/meta"

    def set_secret(self, secret):
        self.secret = secret

    def is_genuine(self, signature, body):
        digest = hmac.new(self.secret.encode(), body, hashlib.sha256).hexdigest()
        return signature == f"sha256={digest}"


class Sender(Http):
    """A connection with at most one send in flight."""

    def __init__(self, load):
        super().__init__()
        self.load = load
        self.sent = None

    def connection_made(self, transport):
        super().connection_made(transport)
        self.load.idle.append(self)

    def send(self, number, due):
        self.sent = (due, time.time())
        self.transport.write(self.load.request(number))

    def complete(self, line, headers, body):
        self.load.finish(int(line.split()[1]), body, *self.sent)
        self.sent = None
        self.load.idle.append(self)

    def connection_lost(self, error):
        if self.sent:
            self.load.failures[f"connection: {error}"] += 1


class Load:
    """Sends on a schedule, whatever the server does. A latency begins when the send was due."""

    def __init__(self, emulator):
        self.emulator = emulator
        self.idle = deque()
        self.failures = Counter()
        self.latencies = []
        # When each message was sent and accepted, by id.
        self.messages = {}
        components = [
            {
                "type": "body",
                "parameters": [{"type": "text", "text": it} for it in ("Ada", "~number~")],
            }
        ]
        message = {
            "messaging_product": "whatsapp",
            "to": "~to~",
            "type": "template",
            "template": {"name": "load", "language": {"code": "en_US"}, "components": components},
        }
        self.body = json.dumps(message)
        self.head = "\r\n".join(
            [
                f"POST /v24.0/{emulator.phone_number_id}/messages HTTP/1.1",
                f"Host: {urlsplit(emulator.url).netloc}",
                f"Authorization: Bearer {emulator.token}",
                "Content-Type: application/json",
                "Content-Length: ",
            ]
        )

    def request(self, number):
        body = self.body.replace("~to~", f"1650{number:08}").replace("~number~", f"A-{number}")
        return f"{self.head}{len(body)}\r\n\r\n{body}".encode()

    def finish(self, status, body, due, sent):
        now = time.time()
        self.latencies.append(now - due)
        if status == 200:
            self.messages[json.loads(body)["messages"][0]["id"]] = (sent, now)
        else:
            self.failures[f"{status} {body[:200]}"] += 1

    async def run(self, rate, seconds, connections):
        address = urlsplit(self.emulator.url)
        loop = asyncio.get_running_loop()
        for _ in range(connections):
            await loop.create_connection(lambda: Sender(self), address.hostname, address.port)
        total = int(rate * seconds)
        started = time.time()
        number = 0
        while number < total:
            now = time.time()
            while number < total and self.idle and started + number / rate <= now:
                self.idle.popleft().send(number, started + number / rate)
                number += 1
            await asyncio.sleep(0.001)
            if sum(self.failures.values()) >= 100 or now > started + seconds + 60:
                break
        while len(self.idle) < connections and time.time() < started + seconds + 60:
            await asyncio.sleep(0.01)
        return time.time() - started


def statuses_of(request):
    """Returns the statuses in a request."""
    _, _, body = request
    changes = [it for entry in json.loads(body)["entry"] for it in entry["changes"]]
    return [
        it
        for change in changes
        if change["field"] == "messages"
        for it in change["value"]["statuses"]
    ]


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))] if values else float("nan")


def figures(values, unit, digits):
    """Returns the smallest, the median, the 99th percentile and the largest value as a text."""
    names = {"min": 0, "p50": 0.5, "p99": 0.99, "max": 1}
    return ", ".join(
        f"{it} {percentile(values, share):.{digits}f} {unit}" for it, share in names.items()
    )


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_kib(pid):
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(it.split()[1]) for it in lines if it.startswith("VmHWM:"))


def number_of(message_id):
    """Returns the number of a message in its account."""
    letters = message_id.removeprefix("wamid.sandbox.")
    return int.from_bytes(base64.urlsafe_b64decode(letters + "==")[8:], "big")


class Report:
    """The figures, and what is not as it should be."""

    def __init__(self):
        self.problems = []

    def expect(self, passed, problem):
        if not passed:
            self.problems.append(problem)

    def statuses(self, load, receiver):
        """Checks order, times and signatures of the statuses."""
        found = {it: [] for it in load.messages}
        late = {it: [] for it in OFFSETS}
        sizes = Counter()
        forged = unknown = off = 0
        previous = dict.fromkeys(OFFSETS, 0)
        in_order = True
        for request in receiver.requests:
            at, signature, body = request
            forged += not receiver.is_genuine(signature, body)
            statuses = statuses_of(request)
            sizes[len(statuses)] += 1
            for it in statuses:
                if it["id"] not in found:
                    unknown += 1
                    continue
                sent, accepted = load.messages[it["id"]]
                offset = OFFSETS.get(it["status"], 0)
                found[it["id"]].append(it["status"])
                late.setdefault(it["status"], []).append(at - sent - offset)
                off += not int(sent) + offset <= int(it["timestamp"]) <= accepted + offset
                number = number_of(it["id"])
                in_order &= number > previous.get(it["status"], 0)
                previous[it["status"]] = number
        wrong = {message: it for message, it in found.items() if it != list(OFFSETS)}
        example = next(iter(wrong.items()), None)
        self.expect(
            not wrong,
            f"{len(wrong)} messages without sent, delivered, read in this order, such as {example}",
        )
        self.expect(not forged, f"{forged} requests with a wrong signature")
        self.expect(not unknown, f"{unknown} statuses of unknown messages")
        self.expect(not off, f"{off} statuses with another timestamp than that of the clock")
        self.expect(in_order, "the messages of a status do not come in the order of their numbers")
        largest = max(sizes, default=0)
        self.expect(largest <= MAX_STATUSES_PER_REQUEST, f"a request with {largest} statuses")
        count = sum(map(len, found.values()))
        print(f"webhooks: {sizes.total()} requests, {count} statuses, at most {largest} in one")
        for status, values in late.items():
            print(f"{status:<10} after its time: {figures(values, 's', 3)}")
            in_time = values and max(values) <= MAX_LATE_SECONDS
            self.expect(in_time, f"{status}: none, or one later than {MAX_LATE_SECONDS} s")
            self.expect(not values or min(values) >= -0.01, f"{status}: before its time")

    def sends(self, load, elapsed, rate):
        """Checks that every send was accepted, on schedule."""
        accepted = len(load.messages)
        print(f"sends: {accepted} accepted in {elapsed:.1f} s, {accepted / elapsed:.0f} per second")
        milliseconds = [1000 * it for it in load.latencies]
        print(f"latency from the time that a send was due: {figures(milliseconds, 'ms', 1)}")
        self.expect(not load.failures, f"failed sends: {load.failures.most_common(3)}")
        self.expect(accepted / elapsed >= 0.98 * rate, "the rate was not reached")

    def kept(self, load, kept):
        """Checks that the newest messages are kept, and no others."""
        newest = sorted(load.messages, key=number_of)[-MAX_KEPT:]
        print(f"kept: {len(kept)} messages")
        self.expect(len(kept) <= MAX_KEPT, f"{len(kept)} messages are kept")
        is_newest = {it["id"] for it in kept} == set(newest)
        self.expect(is_newest, "the messages that are kept are not the newest ones")
        self.expect({it["status"] for it in kept} == {"read"}, "a message that is kept is not read")


async def wait_for_statuses(receiver, expected):
    """Waits for so many statuses, as long as some arrive."""
    last, count, seen = time.time(), 0, 0
    while count < expected and time.time() < last + PATIENCE_SECONDS:
        count += sum(len(statuses_of(it)) for it in receiver.requests[seen:])
        if len(receiver.requests) > seen:
            seen, last = len(receiver.requests), time.time()
        await asyncio.sleep(0.1)


async def measure(arguments):
    report = Report()
    receiver = Receiver()
    await receiver.start()
    emulator = await asyncio.to_thread(Emulator, *arguments.option, receiver=receiver)
    status, created = await asyncio.to_thread(
        emulator.graph, "POST", f"{emulator.waba_id}/message_templates", TEMPLATE
    )
    assert created.get("status") == "APPROVED", (status, created)
    while not receiver.requests:  # the approval
        await asyncio.sleep(0.01)
    receiver.requests.clear()

    load = Load(emulator)
    before = cpu_seconds(emulator.pid), cpu_seconds("self")
    elapsed = await load.run(arguments.rate, arguments.seconds, arguments.connections)
    server, own = (cpu_seconds(it) for it in (emulator.pid, "self"))
    report.sends(load, elapsed, arguments.rate)
    await wait_for_statuses(receiver, len(load.messages) * len(OFFSETS))
    report.statuses(load, receiver)
    report.kept(load, await asyncio.to_thread(emulator.messages))
    per_send = 1e6 * (server - before[0]) / max(len(load.messages), 1)
    print(
        f"server: {(server - before[0]) / elapsed:.2f} cores, {per_send:.0f} us of CPU time per send, "
        f"at most {resident_kib(emulator.pid) / 1024:.0f} MiB resident"
    )
    print(f"load and receiver: {(own - before[1]) / elapsed:.2f} cores")
    report.problems += await asyncio.to_thread(emulator.stop)
    for problem in report.problems:
        print(f"failed: {problem}", file=sys.stderr)
    print("failed" if report.problems else "passed")
    return bool(report.problems)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rate", type=float, default=1000, help="sends per second")
    parser.add_argument("--seconds", type=float, default=60, help="how long")
    parser.add_argument("--connections", type=int, default=64, help="each with one send in flight")
    parser.add_argument("option", nargs="*", help="options of galley emulator, after --")
    root = Path(__file__).resolve().parents[2]
    galley = Path(os.environ.pop("GALLEY_BIN", root / "target" / "release" / "galley")).resolve()
    if not galley.exists():
        hint = "build it with cargo build --release -p galley, or set GALLEY_BIN"
        sys.exit(f"{galley} does not exist: {hint}")
    os.environ["SUITE_GALLEY"] = str(galley)
    sys.exit(asyncio.run(measure(parser.parse_args())))


if __name__ == "__main__":
    main()
