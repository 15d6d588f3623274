"""Provokes every kind of fault and every failure of docs/emulator-reference.md, as pywa, facebook_business
and plain HTTP clients see them."""

import logging
import re
import time
from pathlib import Path

import httpx
import requests
from checks import check, check_equal, expect_error, finish
from emulator import WEBHOOK_SECONDS, Emulator, Receiver
from facebook_business.adobjects.whatsappbusinessaccount import WhatsAppBusinessAccount
from facebook_business.api import FacebookAdsApi
from facebook_business.exceptions import FacebookRequestError
from facebook_business.session import FacebookSession
from pywa.errors import WhatsAppError
from pywa.types.templates import BodyText, Template, TemplateCategory, TemplateLanguage
from pywa_session import connect

REFERENCE = Path(__file__).parents[3] / "docs" / "emulator-reference.md"

# The calls that fit some failures of templates; a list fits the others.
FITTING_CALLS = {
    "read": {33, 803},
    "edit": {2388039, 2388124},
    "create": {10, 100, 2388185, 192, 368, 131009, 131031, 139000, 200002},
    "delete": {200, 299},
    "upload": {3, 10},
}

CUSTOMER = "16505551234"

# pywa explains timeouts at length.
logging.getLogger("pywa").setLevel(logging.CRITICAL)
receiver = Receiver()
emulator = Emulator(receiver=receiver)
waba = emulator.waba_id
templates = f"{waba}/message_templates"


def failures():
    """Yields the rows of the tables of failures: whether it is one of a send, number, code, subcode, status,
    and whether it is transient."""
    section = REFERENCE.read_text().split("\n## Failures\n")[1]
    calls, sends = section.split("\n### Sends\n")
    row = re.compile(
        r"^\| ([0-9–]+) \| ([0-9–]+) \| ([0-9–]+) \| ([0-9]+) \| (yes|no) \|", re.MULTILINE
    )
    for is_send, table in ((False, calls), (True, sends)):
        for number, code, subcode, status, transient in row.findall(table):
            # A range is one row: its ends and one between them.
            numbers = ["200", "234", "299"] if number == "200–299" else [number]
            for it in numbers:
                code_of_it = it if len(numbers) > 1 else code
                expected_subcode = None if subcode == "–" else int(subcode)
                expected = int(code_of_it), expected_subcode, int(status), transient == "yes"
                yield is_send, int(it), *expected


def document(name, text="Good morning, all of you"):
    body = {"type": "BODY", "text": text}
    return {"name": name, "language": "en_US", "category": "UTILITY", "components": [body]}


def message(name):
    template = {"name": name, "language": {"code": "en_US"}}
    return {
        "messaging_product": "whatsapp",
        "to": CUSTOMER,
        "type": "template",
        "template": template,
    }


def add_fault(call, kind, **more):
    """Adds a fault that strikes once, unless it says how often."""
    if "share" not in more:
        more.setdefault("times", 1)
    return emulator.ok("POST", "emulator/faults", {"call": call, "kind": kind, **more})


def clear_faults():
    emulator.ok("DELETE", "emulator/faults")


def http(method, path, body=None, **headers):
    """Makes a call of the Graph API with requests, on a connection of its own."""
    headers = {"Authorization": f"Bearer {emulator.token}", **headers}
    return requests.request(
        method, f"{emulator.url}/v24.0/{path}", json=body, headers=headers, timeout=60
    )


def exists(name):
    found = http("GET", f"{templates}?name={name}&fields=name").json()["data"]
    return len([it for it in found if it["name"] == name])


known = http("POST", templates, document("known")).json()["id"]

CALLS = {
    "create": lambda **headers: http("POST", templates, document("never_created"), **headers),
    "list": lambda **headers: http("GET", templates, **headers),
    "read": lambda **headers: http("GET", known, **headers),
    "edit": lambda **headers: http(
        "POST", known, {"components": document("known", "Another text")["components"]}, **headers
    ),
    "delete": lambda **headers: http("DELETE", f"{templates}?name=known", **headers),
    "upload": lambda **headers: http(
        "POST",
        f"{emulator.app_id}/uploads?file_name=a.png&file_length=17&file_type=image/png",
        **headers,
    ),
    "send": lambda **headers: http(
        "POST", f"{emulator.phone_number_id}/messages", message("known"), **headers
    ),
}


def error_of(response):
    error = response.json().get("error", {})
    return (
        error.get("code"),
        error.get("error_subcode"),
        response.status_code,
        error.get("is_transient", False),
    )


def fitting_call(is_send, number):
    if is_send:
        return "send"
    fitting = (call for call, numbers in FITTING_CALLS.items() if number in numbers)
    return next(fitting, "create" if 2388000 <= number < 2389000 else "list")


def every_failure():
    """Provokes each failure once."""
    count = 0
    for is_send, number, *expected in failures():
        call = fitting_call(is_send, number)
        add_fault(call, "error", code=number)
        response = CALLS[call]()
        check_equal(f"{call} fails with {number}", list(error_of(response)), expected)
        error = response.json().get("error", {})
        texts = [error.get(it) for it in ("message", "type", "fbtrace_id")]
        check(f"{call} with {number} has texts", all(texts), error)
        if number in (4, 80007, 80008, 80012):
            headers = {it.lower() for it in response.headers}
            check(
                f"{number} has a usage header",
                headers & {"x-business-use-case-usage", "x-app-usage"},
                headers,
            )
        clear_faults()  # one that has struck is kept, and their number is limited
        count += 1
    check("all failures are in the reference", count > 70, count)
    check_equal("a fault that strikes once does so once", CALLS["list"]().status_code, 200)
    check_equal("nothing was created", exists("never_created"), 0)
    check_equal("nothing was deleted", exists("known"), 1)
    for call, run in CALLS.items():
        add_fault(call, "error")
        check_equal(f"{call} fails with 2 by default", error_of(run()), (2, None, 503, True))


def shares_and_names():
    add_fault("list", "error", share=0.5)
    statuses = [CALLS["list"]().status_code for _ in range(6)]
    check_equal("half of the calls fail, always the same ones", statuses, [200, 503] * 3)
    clear_faults()
    add_fault("create", "error", name="poor_*", times=2, code=2388019)
    statuses = [
        http("POST", templates, document(it)).status_code
        for it in ("rich_one", "poor_one", "poor_two", "poor_two")
    ]
    check_equal("a fault strikes names that match", statuses, [200, 400, 400, 200])
    faults = emulator.ok("GET", "emulator/faults")
    check("faults are listed", "poor_*" in str(faults), faults)
    clear_faults()
    check("faults are deleted", "poor_*" not in str(emulator.ok("GET", "emulator/faults")))
    status, refused = emulator.call(
        "POST", "emulator/faults", {"call": "webhook", "kind": "truncate", "times": 1}
    )
    check_equal(
        "a kind that does not fit the call is refused",
        (status, bool(refused.get("violations"))),
        (422, True),
    )


def broken_connections():
    """close_before, close_after_commit and truncate, as requests sees them."""
    broken = (requests.ConnectionError, requests.exceptions.ChunkedEncodingError)
    for kind, count in (("close_before", 0), ("close_after_commit", 1), ("truncate", 1)):
        name = f"struck_{kind}"
        add_fault("create", kind)
        error = expect_error(
            f"create: {kind}", broken, lambda name=name: http("POST", templates, document(name))
        )
        is_partial = "IncompleteRead" in repr(error)
        check_equal(f"create: {kind}: part of a response arrives", is_partial, kind == "truncate")
        check_equal(f"create: {kind}: the template exists", exists(name), count)
        for call in ("list", "read", "upload", "send"):
            add_fault(call, kind)
            expect_error(f"{call}: {kind}", broken, CALLS[call])
    sent = [it for it in emulator.messages() if it["to"] == CUSTOMER]
    check_equal("two of three broken sends were made", len(sent), 2)


def delays():
    for call in ("list", "create"):
        add_fault(call, "delay", delay="1s")
        started = time.monotonic()
        response = (
            http("GET", templates) if call == "list" else http("POST", templates, document("late"))
        )
        seconds = time.monotonic() - started
        check(
            f"{call} is late",
            response.status_code == 200 and 1 <= seconds < 10,
            response.status_code,
            seconds,
        )


def header():
    """The header `Galley-Fault` strikes a single call."""
    broken = (requests.ConnectionError, requests.exceptions.ChunkedEncodingError)
    response = CALLS["list"](**{"Galley-Fault": "error"})
    check_equal("header: error", error_of(response), (2, None, 503, True))
    response = CALLS["send"](**{"Galley-Fault": "error=131026"})
    check_equal("header: error with a code", error_of(response), (131026, None, 400, False))
    started = time.monotonic()
    response = CALLS["list"](**{"Galley-Fault": "delay=1s"})
    check(
        "header: delay", response.status_code == 200 and time.monotonic() - started >= 1, response
    )
    for kind, count in (("close_before", 0), ("close_after_commit", 1), ("truncate", 1)):
        name = f"header_{kind}"
        create = {"method": "POST", "path": templates, "body": document(name), "Galley-Fault": kind}
        expect_error(f"header: {kind}", broken, lambda create=create: http(**create))
        check_equal(f"header: {kind}: the template exists", exists(name), count)
    response = CALLS["list"](**{"Galley-Fault": "explode"})
    check(
        "an unknown fault in the header is refused",
        response.status_code in (400, 422),
        response.text,
    )
    check_equal("the next call is not struck", CALLS["list"]().status_code, 200)


def pywa_sees_faults():
    wa = connect(emulator)

    def create(name):
        return wa.create_template(
            Template(
                name=name,
                language=TemplateLanguage.ENGLISH_US,
                category=TemplateCategory.UTILITY,
                components=[BodyText("Good morning, all of you")],
            )
        )

    add_fault("create", "error", code=80008)
    error = expect_error("pywa: error", WhatsAppError, lambda: create("pywa_error"))
    if error:
        check_equal(
            "pywa: code and status",
            (error.code, error.status_code, error.is_transient),
            (80008, 400, True),
        )
    for kind, count in (("close_before", 0), ("close_after_commit", 1), ("truncate", 1)):
        name = f"pywa_{kind}"
        add_fault("create", kind)
        expect_error(f"pywa: {kind}", httpx.RemoteProtocolError, lambda name=name: create(name))
        check_equal(f"pywa: {kind}: the template exists", len(wa.get_templates(name=name)), count)
    add_fault("create", "delay", delay="2s")
    wa = connect(emulator, timeout=1)
    expect_error("pywa: delay", httpx.ReadTimeout, lambda: create("pywa_delay"))


def facebook_business_sees_faults():
    FacebookSession.GRAPH = emulator.url
    FacebookAdsApi.init(access_token=emulator.token, crash_log=False)
    account = WhatsAppBusinessAccount(waba)

    def create(name):
        return account.create_message_template(params=document(name))

    add_fault("create", "error", code=2388024)
    error = expect_error(
        "facebook_business: error", FacebookRequestError, lambda: create("fb_error")
    )
    if error:
        codes = (error.api_error_code(), error.api_error_subcode())
        check_equal("facebook_business: codes", codes, (100, 2388024))
    broken = (requests.ConnectionError, requests.exceptions.ChunkedEncodingError)
    for kind, count in (("close_before", 0), ("close_after_commit", 1), ("truncate", 1)):
        name = f"fb_{kind}"
        add_fault("create", kind)
        expect_error(f"facebook_business: {kind}", broken, lambda name=name: create(name))
        check_equal(f"facebook_business: {kind}: the template exists", exists(name), count)


def wait_until_spent():
    """Waits until every fault has struck: of a webhook that is not sent, nothing arrives."""
    deadline = time.monotonic() + WEBHOOK_SECONDS
    while time.monotonic() < deadline:
        if all(it["spent"] for it in emulator.ok("GET", "emulator/faults")["data"]):
            return
    check("the faults strike", False, emulator.ok("GET", "emulator/faults"))


def template_webhooks():
    """duplicate, drop, reorder and delay of webhooks about templates."""

    def create(name):
        http("POST", templates, document(name))
        wait_until_spent()

    def approvals(*names, count):
        """Waits for so many webhooks about these templates; returns their names and requests."""

        def find():
            changes = [(it, value) for it in receiver.requests for _, value in it.changes()]
            return [
                (value["message_template_name"], request)
                for request, value in changes
                if value.get("event") == "APPROVED" and value["message_template_name"] in names
            ]

        receiver.wait(lambda: len(find()) >= count)
        found = find()
        return [name for name, _ in found], [request for _, request in found]

    add_fault("webhook", "duplicate", name="twice")
    create("twice")
    names, requests_of_it = approvals("twice", count=2)
    check_equal("duplicate: the webhook comes twice", names, ["twice", "twice"])
    check_equal("duplicate: the bodies are equal", len({it.body for it in requests_of_it}), 1)

    add_fault("webhook", "drop", name="dropped")
    create("dropped")
    create("after_the_drop")
    names, _ = approvals("dropped", "after_the_drop", count=1)
    check_equal("drop: the webhook does not come", names, ["after_the_drop"])

    add_fault("webhook", "reorder", name="overtaken")
    create("overtaken")
    create("overtaking")
    names, _ = approvals("overtaken", "overtaking", count=2)
    check_equal("reorder: the next webhook comes first", names, ["overtaking", "overtaken"])

    add_fault("webhook", "delay", name="late_news", delay="1s")
    started = time.time()
    create("late_news")
    _, late = approvals("late_news", count=1)
    seconds = late[0].at - started if late else 0
    check("delay: the webhook is late", 1 <= seconds < 10, seconds)


def status_webhooks():
    """duplicate, drop and reorder of webhooks with statuses, one of which is in each request."""

    def statuses(sent):
        return [it["status"] for it in receiver.statuses(sent)]

    def send(kind, count):
        """Sends a message whose first status is struck; returns its statuses."""
        add_fault("webhook", kind)
        sent = CALLS["send"]().json()["messages"][0]["id"]
        wait_until_spent()
        emulator.advance("5s")
        receiver.wait(lambda: len(statuses(sent)) >= count)
        return statuses(sent)

    emulator.advance("5s")  # from now on the clock stands
    earlier = [it["id"] for it in emulator.messages()]
    receiver.wait(lambda: all("read" in statuses(it) for it in earlier))
    found = send("duplicate", 4)
    check_equal("duplicate: a status comes twice", found, ["sent", "sent", "delivered", "read"])
    found = send("drop", 2)
    check_equal("drop: a status does not come", found, ["delivered", "read"])
    found = send("reorder", 3)
    check_equal("reorder: every status comes", sorted(found), ["delivered", "read", "sent"])
    check("reorder: the first status comes after the next one", found[:1] == ["delivered"], found)


def late_receiver():
    """Webhooks wait for a receiver that is not there yet when the emulator starts."""

    class LateReceiver(Receiver):
        is_ready = False

        def handshake(self, query):
            answer = super().handshake(query)
            return answer if self.is_ready else (503, "")

    late = LateReceiver()
    early = Emulator(receiver=late)
    late.wait(lambda: late.handshakes)
    early.graph("POST", f"{early.waba_id}/message_templates", document("early"))
    early.graph("POST", f"{early.phone_number_id}/messages", message("early"))
    late.is_ready = True
    field = "message_template_status_update"
    found = late.wait_for_change(field, message_template_name="early")
    check("a webhook waits for the receiver", found, late.changes())
    early.advance("5s")
    late.wait(lambda: len(late.statuses()) >= 3)
    statuses = [it["status"] for it in late.statuses()]
    check_equal("statuses wait for the receiver", statuses, ["sent", "delivered", "read"])
    check_equal("the emulator with a late receiver stops cleanly", early.stop(), [])


every_failure()
shares_and_names()
broken_connections()
delays()
header()
pywa_sees_faults()
facebook_business_sees_faults()
clear_faults()
template_webhooks()
status_webhooks()
late_receiver()
check_equal("every signature is genuine", receiver.refused, [])
check_equal("the emulator stops cleanly", emulator.stop(), [])
finish(None, "faults of an emulator")
