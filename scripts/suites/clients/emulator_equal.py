"""Runs one story twice, each time with a new emulator, and compares the two: every response, every event,
every webhook and every message. Ids and real timestamps differ between the runs, so the script replaces
them; times of the virtual clock have to be equal."""

import difflib
import json
import re
import time

import requests
from checks import check, check_equal, finish
from emulator import WEBHOOK_SECONDS, Emulator, Receiver

# The virtual time at which the story begins. Every time before it is real.
START = "2030-01-01T09:00:00Z"
START_SECONDS = 1_893_488_400

CUSTOMER = "16505551234"

ID = re.compile(r"wamid\.sandbox\.[\w-]+|(?<![\w.-])[0-9]{12,}(?![\w.-])")
TIME = re.compile(r"20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z")

# Members whose values differ between any two requests.
RANDOM = {"fbtrace_id", "request_id", "trace_id"}

# Recipients and codes are no ids.
KNOWN = {CUSTOMER, "1555010131026", "1555010131049", "1555010131056", "1555010130429"}


class Story:
    """A run: what was sent to an emulator, and all that came back."""

    def __init__(self):
        self.receiver = Receiver()
        self.emulator = Emulator(receiver=self.receiver)
        self.lines = []
        self.seen = 0
        self.names = {}
        self.ids = {}
        account = self.emulator.account
        for name in (
            "account_id",
            "waba_id",
            "phone_number_id",
            "app_id",
            "key",
            "token",
            "app_secret",
            "url",
        ):
            self.names.setdefault(account[name], name.upper())
        self.names[self.receiver.url] = "CALLBACK"

    def record(self, kind, document):
        text = json.dumps(self.normal(document), sort_keys=True)
        self.lines.append(f"{kind} {text}")

    def normal(self, value):
        """Replaces ids and real times."""
        if isinstance(value, dict):
            return {
                self.normal(key): "RANDOM" if key in RANDOM else self.normal(it)
                for key, it in value.items()
            }
        if isinstance(value, list):
            return [self.normal(it) for it in value]
        if isinstance(value, str):
            for secret, name in self.names.items():
                value = value.replace(secret, name)
            value = TIME.sub(lambda it: "REAL" if it.group() < START[:-1] else it.group(), value)
            if value.isdecimal() and self.is_real_time(int(value)):
                return "REAL"
            return ID.sub(lambda it: self.id(it.group()), value)
        if isinstance(value, int) and not isinstance(value, bool):
            if self.is_real_time(value):
                return "REAL"
            return self.normal(str(value)) if value >= 10**12 else value
        return value

    def is_real_time(self, seconds):
        return 1_700_000_000 < seconds < START_SECONDS

    def id(self, text):
        return text if text in KNOWN else self.ids.setdefault(text, f"ID{len(self.ids) + 1}")

    def call(self, method, path, body=None, webhooks=0, **headers):
        """Makes a call on a connection of its own; records its response and the webhooks that follow it."""
        url = f"{self.emulator.url}{path}"
        headers["Authorization"] = f"Bearer {self.emulator.token}"
        try:
            response = requests.request(method, url, json=body, headers=headers, timeout=30)
            document = response.json() if response.content else None
            self.record(f"{method} {self.normal(path)} {response.status_code}", document)
        except (requests.ConnectionError, requests.exceptions.ChunkedEncodingError) as error:
            document = None
            self.lines.append(f"{method} {self.normal(path)}: {type(error).__name__}")
        self.record_webhooks(webhooks)
        return document

    def record_webhooks(self, count):
        """Waits for so many changes and records them. Webhooks about different templates are sent
        concurrently, so only the order of each template's counts; the events have the order of all."""
        self.receiver.wait(lambda: len(self.receiver.changes()) >= self.seen + count)
        found = self.receiver.changes()[self.seen :]
        self.seen += len(found)

        def subject(change):
            field, value = change
            statuses = value.get("statuses")
            return (
                ("message", 0)
                if statuses
                else (value.get("message_template_name", ""), field == "messages")
            )

        for field, value in sorted(found, key=subject):
            self.record(f"webhook {field}", value)

    def graph(self, method, path, body=None, webhooks=0, **headers):
        return self.call(method, f"/v24.0/{path}", body, webhooks, **headers)

    def own(self, method, path, body=None, webhooks=0):
        return self.call(method, f"{self.emulator.base}/emulator/{path}", body, webhooks)

    def create(self, name, webhooks=0, category="UTILITY", **headers):
        body = {
            "type": "BODY",
            "text": "Hello {{1}}, your order {{2}} has left us today.",
            "example": {"body_text": [["Ada", "A-17"]]},
        }
        template = {"name": name, "language": "en_US", "category": category, "components": [body]}
        path = f"{self.emulator.waba_id}/message_templates"
        return (self.graph("POST", path, template, webhooks, **headers) or {}).get("id")

    def send(self, name, *values, to=CUSTOMER, webhooks=0):
        parameters = [{"type": "text", "text": it} for it in values]
        message = {
            "messaging_product": "whatsapp",
            "to": to,
            "type": "template",
            "template": {
                "name": name,
                "language": {"code": "en_US"},
                "components": [{"type": "body", "parameters": parameters}],
            },
        }
        self.graph("POST", f"{self.emulator.phone_number_id}/messages", message, webhooks)

    def wait_for_faults(self, kind):
        """Waits until the faults of a kind have struck: of a webhook that is not sent, nothing arrives."""
        deadline = time.monotonic() + WEBHOOK_SECONDS
        while time.monotonic() < deadline:
            faults = self.emulator.ok("GET", "emulator/faults")["data"]
            if all(it["spent"] for it in faults if it["kind"] == kind):
                return

    def advance(self, duration, webhooks=0):
        self.own("POST", "clock", {"advance": duration}, webhooks)


def play(story):
    """The story."""
    waba = story.emulator.waba_id
    story.own("POST", "clock", {"set": START})
    story.own("POST", "clock", {"set": "2029-12-31T00:00:00Z"})  # refused: it never moves back

    # Suffixes.
    story.create("order_approve", 1)
    pending = story.create("order_pending_10m")
    story.create("order_pending")
    story.create("order_reject_promotional", 1)
    story.create("order_reject_scam_2h")
    story.create("order_pause_1h", 1)
    story.create("order_to_marketing_30m", 1)
    story.create("order_quality_red", 2)
    story.create("order_flag", 2)
    story.create("order_disable", 2)

    # Rules.
    rules = [
        {"name": "news_*", "outcome": "reject", "reason": "TAG_CONTENT_MISMATCH"},
        {"category": "MARKETING", "after": "1h", "outcome": "approve"},
    ]
    story.own("PUT", "rules", {"rules": rules})
    story.own("PUT", "rules", {"rules": [{"outcome": "perhaps"}]})
    story.own("GET", "rules")
    story.create("news_of_the_day", 1)
    story.create("spring_sale", category="MARKETING")

    # 10 minutes: one approval. 2 hours: a rejection, a pause, an announcement and an approval.
    story.advance("10m", 1)
    story.advance("2h", 4)
    story.graph(
        "GET", f"{waba}/message_templates?limit=100&fields=name,status,category,quality_score"
    )

    # Sends.
    story.send("order_approve", "Ada", "A-17", webhooks=1)
    story.send("order_approve", "Ada")
    story.send("order_approve", "Ada\nBob", "A-17")
    story.send("order_pause_1h", "Ada", "A-17")
    story.send("order_disable", "Ada", "A-17")
    story.send("no_such_template", "Ada", "A-17")
    story.send("order_approve", "Ada", "A-17", to="1555010131026", webhooks=1)
    story.send("order_approve", "Ada", "A-17", to="1555010131056")
    story.advance("1s", 2)
    story.advance("3s", 1)

    # An edit and a deletion.
    body = {
        "type": "BODY",
        "text": "Good morning {{1}}, your order {{2}} has left us.",
        "example": {"body_text": [["Ada", "A-17"]]},
    }
    story.graph("POST", pending, {"components": [body]}, 1)
    story.send("order_pending_10m", "Ada", "A-17", webhooks=1)
    story.advance("10m", 3)
    story.send("order_pending_10m", "Ada", "A-17", webhooks=1)
    story.graph("DELETE", f"{waba}/message_templates?name=order_flag", webhooks=1)
    story.graph("DELETE", f"{waba}/message_templates?name=order_flag")

    # Faults.
    for fault in [
        {"call": "create", "name": "lost_*", "times": 1, "kind": "close_after_commit"},
        {"call": "list", "share": 0.5, "kind": "error", "code": 80008},
        {"call": "read", "times": 1, "kind": "truncate"},
        {"call": "webhook", "name": "twice_*", "times": 1, "kind": "duplicate"},
        {"call": "webhook", "name": "never_*", "times": 1, "kind": "drop"},
        {"call": "send", "times": 1, "kind": "explode"},
    ]:
        story.own("POST", "faults", fault)
    story.create("lost_answer", 1)
    for _ in range(4):
        story.graph("GET", f"{waba}/message_templates?limit=2&fields=name")
    story.graph("GET", f"{pending}?fields=name,status")
    story.graph("GET", f"{pending}?fields=name,status")
    story.create("twice_told", 2)
    story.create("never_told")
    story.wait_for_faults("drop")
    story.create("header_fault", **{"Galley-Fault": "error=2388019"})
    story.own("GET", "faults")
    story.own("DELETE", "faults")
    story.own("GET", "faults")

    # A day later: the pause ends, and the category changes.
    story.advance("24h", 4)
    story.own("GET", "clock")


def run():
    story = Story()
    started = time.monotonic()
    play(story)
    # No other webhook follows.
    story.receiver.wait(lambda: len(story.receiver.changes()) > story.seen, 1)
    story.record_webhooks(0)
    for message in story.emulator.messages():
        story.record("message", message)
    after = ""
    while True:
        page = story.emulator.ok("GET", f"events?limit=100{after}")
        for event in page["data"]:
            story.record("event", event)
        after = f"&after={page['paging']['cursors']['after']}"
        if "next" not in page["paging"]:
            break
    check_equal("every signature is genuine", story.receiver.refused, [])
    check_equal("the emulator stops cleanly", story.emulator.stop(), [])
    return story.lines, time.monotonic() - started


first, seconds = run()
second, _ = run()
# Of a run in which nothing happens, the second one would be equal, too.
for expected in (
    'webhook message_template_status_update {"event": "APPROVED"',
    '"reason": "PROMOTIONAL"',
    "webhook template_category_update",
    "webhook message_template_quality_update",
    "webhook message_template_components_update",
    '"code": 132000',
    '"code": 131026',
    '"status": "read"',
    "ConnectionError",
    "2030-01-0",
):
    check(f"the story contains {expected}", any(expected in line for line in first), first)
difference = list(difflib.unified_diff(first, second, "first run", "second run", lineterm="", n=0))
check("the two runs are equal", not difference, *difference[:40])
finish(None, f"two runs of {len(first)} recorded lines, {seconds:.0f} s each")
