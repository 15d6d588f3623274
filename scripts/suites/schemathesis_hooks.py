"""What schemathesis cannot know about the service: which refusals a good request may meet, how to
keep requests from getting into each other's way, and which templates and endpoints there are to work
on."""

import atexit
import collections
import itertools
import os
import re
import zlib

import requests
import schemathesis
from schemathesis.core.parameters import ParameterLocation

# Rules that JSON Schema cannot express. A document that meets the schema may break these and no
# others.
BEYOND_THE_SCHEMA = {
    # Placeholders count from {{1}} without gaps: a pattern would have to list every set of them.
    "placeholder-gap",
    # One sample for each different placeholder: a schema cannot count inside a string.
    "samples-count",
    # Which IPv6 addresses and which letters beyond ASCII make a host: patterns that say so exist,
    # but not in a form that every usual engine reads.
    "url-host",
}

# What is wrong with values depends on the template: which it takes, in which order, how long they
# may be, and where they end an address.
UP_TO_THE_TEMPLATE = {
    "value-missing",
    "value-superfluous",
    "wrong-type",
    "too-long",
    "media-kind-unknown",
    "url-scheme",
    "url-host",
    "url-user-info",
    "url-white-space",
}

# Where events may be sent is for the guard to say: a schema cannot tell all spellings of a host, and
# fragments and backslashes, which other addresses may have, are nothing to send to.
UP_TO_THE_GUARD = {"webhook-address", "webhook-format", "webhook-handshake", "url-host"}

# About one of so many requests is sent as it was generated.
UNTOUCHED = 8

TAGS = re.compile(r'\*|[, \t]*(?:W/)?"[!#-~\x80-\xff]*"(?:[, \t]*,[, \t]*(?:W/)?"[!#-~\x80-\xff]*")*[, \t]*')
OUR_TAG = re.compile(r'"[0-9]+"')
PLACEHOLDER = re.compile(r"\{\{([1-9][0-9]{0,2})\}\}")

# The decisions that lead to a status, and those that are possible there.
WAY_TO = {"PENDING": [], "APPROVED": ["approve"], "REJECTED": ["reject"], "PAUSED": ["approve", "pause"], "DISABLED": ["disable"]}
POSSIBLE = {"PENDING": ["approve", "approve", "reject"], "APPROVED": ["pause"], "PAUSED": ["resume"]}
STATUS_FOR = {"approve": "PENDING", "reject": "PENDING", "pause": "APPROVED", "resume": "PAUSED"}

FILES = ["photo.jpg", "film.mp4", "bill.pdf", "LIST.XLSX", "notes.txt?day=1#top"]

# An account has 20 endpoints at most: the suite takes old ones away before it makes others.
MOST_ENDPOINTS = 18

numbers = itertools.count(1)
# By kind: ids of templates and endpoints that are there, oldest first, and of those that were deleted.
living, gone = {"template": {}, "webhook": {}}, {"template": set(), "webhook": set()}
# Those that were there before scenarios began, and those that faulty requests are aimed at.
earlier, targets = {"template": set(), "webhook": set()}, {"template": set(), "webhook": set()}
# How often each operation was answered with each status.
answers = collections.Counter()


# --- what may be answered to a good request ---------------------------------------------------


def rules_within(allowed):
    return lambda case, problem: {it["rule"] for it in problem["violations"]} <= allowed


def nothing_there(case, problem):
    return case.path_parameters["id"] not in living[kind_of(case)]


def words_beyond_ascii(case, problem):
    return "`q`" in problem["detail"] and not case.query["q"].isascii()


def another_revision(case, problem):
    return case.headers.get("If-Match", "*") != "*"


def another_move(case, problem):
    wanted = case.body["decision"].lower() if "decision" in case.body else "edit"
    return wanted not in problem["possible"] and "delete" in problem["possible"]


def no_live_version(case, problem):
    return "live_version" not in own("GET", f"/message_templates/{case.path_parameters['id']}").json()


def ahead_of_the_newest(case, problem):
    return "ahead of the newest event" in problem["detail"] and int(case.query["after"]) > 0


def not_forced(case, problem):
    return not (isinstance(case.body, dict) and case.body.get("force"))


def anyhow(case, problem):
    return True


REFUSALS = {
    "listTemplates": {"bad-request": words_beyond_ascii},
    "createTemplate": {
        "invalid-template": rules_within(BEYOND_THE_SCHEMA),
        # Neither which names are free nor which keys were used can be described.
        "name-taken": anyhow,
        "idempotency-key-reused": anyhow,
    },
    "validateTemplate": {"template-unknown": lambda case, problem: case.query["template"] not in living["template"]},
    "showTemplate": {
        "template-unknown": nothing_there,
        "version-unknown": lambda case, problem: case.query["version"] != 1,
    },
    "editTemplate": {
        "template-unknown": nothing_there,
        "version-unknown": lambda case, problem: case.body["restore_version"] != 1,
        "invalid-template": rules_within(BEYOND_THE_SCHEMA),
        "revision-outdated": another_revision,
        "category-locked": lambda case, problem: case.body.keys() & {"category", "restore_version"},
        "move-not-possible": another_move,
    },
    "deleteTemplate": {"template-unknown": nothing_there, "revision-outdated": another_revision},
    "listVersions": {"template-unknown": nothing_there},
    "reviewTemplate": {
        "template-unknown": nothing_there,
        "revision-outdated": another_revision,
        "move-not-possible": another_move,
    },
    "renderTemplate": {
        "template-unknown": nothing_there,
        "not-live": no_live_version,
        "invalid-values": rules_within(UP_TO_THE_TEMPLATE),
    },
    "listEvents": {"bad-request": ahead_of_the_newest},
    "createWebhook": {"invalid-webhook": rules_within(UP_TO_THE_GUARD)},
    "showWebhook": {"webhook-unknown": nothing_there},
    "editWebhook": {"webhook-unknown": nothing_there, "invalid-webhook": rules_within(UP_TO_THE_GUARD)},
    "deleteWebhook": {"webhook-unknown": nothing_there},
    "rotateSecret": {"webhook-unknown": nothing_there, "rotation-open": not_forced},
    "listDeliveries": {"webhook-unknown": nothing_there},
    "replayEvents": {
        "webhook-unknown": nothing_there,
        "event-unknown": lambda case, problem: case.body["event"] > newest_event(),
        # How many days a month has, and when the last year ends, is not in the pattern.
        "invalid-webhook": rules_within({"moment-form"}),
    },
    "docsFile": {"not-found": anyhow},
}


@schemathesis.check
def only_the_inexpressible_is_refused(ctx, response, case):
    """A request that meets the description is refused only for what it cannot express."""
    if response.status_code < 400 or not is_good(case):
        return
    problem = response.json()
    kind = problem["type"].rpartition("/")[2]
    may_be = REFUSALS.get(operation_of(case), {}).get(kind)
    assert may_be is not None, f"the description allows what is refused as {kind}: {problem['detail']}"
    assert may_be(case, problem), f"there is no reason for {kind}: {problem}"


# --- what is sent -----------------------------------------------------------------------------


@schemathesis.hook
def before_call(context, case, kwargs):
    """Gives most good requests a name, an Idempotency-Key and a template of their own.

    Generated names are short and repeat: without this nearly every creation after the first few
    would be answered 409 or 422, and the rules behind the name would never be reached. Likewise,
    generated ids, tags and version numbers are hardly ever those of something. Some requests are
    left alone, so that these answers are seen as well.
    """
    drop_odd_tags(case)
    drop_empty_lists(case)
    wait_for_nothing(case)
    if operation_of(case) == "createWebhook":
        make_room()
    if not is_good(case):
        aim_at_one(case)
        return
    number, choice, phase = next(numbers), choice_for(case), case.meta.phase.name
    if phase == "stateful":
        continue_life(case, number, choice)
    elif phase != "fuzzing" or choice % UNTOUCHED:
        make_fresh(case, number, choice)
        if "id" in case.path_parameters:
            aim(case, MAKE[operation_of(case)](case, choice), choice)


@schemathesis.hook
def after_call(context, case, response):
    """Keeps count, and remembers which templates and endpoints there are."""
    operation, status = operation_of(case), response.status_code
    if case.method.upper() == case.operation.method.upper():
        answers[operation, status] += 1
    if (operation, status) in (("createTemplate", 201), ("createWebhook", 201)):
        living[kind_of(case)][response.json()["id"]] = True
    if (operation, status) in (("deleteTemplate", 204), ("deleteWebhook", 204)):
        bury(kind_of(case), case.path_parameters["id"])


@atexit.register
def write_answers():
    with open(os.environ["SUITE_ANSWERS"], "w") as file:
        for (operation, status), count in sorted(answers.items()):
            print(operation, status, count, file=file)


def drop_odd_tags(case):
    """The coverage phase cannot write what the pattern of these optional headers asks for, and
    sends something else in its place, also with requests that it takes for good ones and with
    those that are meant to break something else."""
    if breaks(case, ParameterLocation.HEADER):
        return
    for header in ("If-Match", "If-None-Match"):
        if header in case.headers and not TAGS.fullmatch(case.headers[header]):
            del case.headers[header]


def drop_empty_lists(case):
    """A list without items leaves nothing in a query: a request whose only fault it would be arrives
    as a good one, and is judged as such once the list is gone."""
    for name in [name for name, value in case.query.items() if value == []]:
        del case.query[name]


def wait_for_nothing(case):
    """Nothing happens while a request of the suite waits: a wait that makes sense is cut short."""
    if str(case.query.get("wait")) in map(str, range(26)):
        case.query["wait"] = 0


def make_room(most=MOST_ENDPOINTS - 1):
    """Takes the oldest endpoints away until there are no more than these."""
    while len(living["webhook"]) > most:
        oldest = next(iter(living["webhook"]))
        own("DELETE", f"/webhooks/{oldest}")
        bury("webhook", oldest)


def bury(kind, id):
    living[kind].pop(id, None)
    gone[kind].add(id)


def breaks(case, location):
    """Whether a request is meant to break something there."""
    if is_good(case):
        return False
    data = case.meta.phase.data if case.meta is not None else None
    broken = getattr(data, "parameter_location", None)
    return broken is None or broken == location


def aim_at_one(case):
    """A request that is at fault elsewhere is told so only if there is something with its id."""
    if "id" in case.path_parameters and not breaks(case, ParameterLocation.PATH):
        # Lists show it, so that anything may have become of it.
        kind = kind_of(case)
        if not targets[kind] & living[kind].keys():
            made = make("APPROVED") if kind == "template" else make_endpoint(case, 0)
            targets[kind].add(made.json()["id"])
        case.path_parameters["id"] = min(targets[kind] & living[kind].keys())


def make_fresh(case, number, choice):
    """Gives a creation a name and a key that nobody has used, and makes numbers those of something."""
    operation = operation_of(case)
    if isinstance(case.body, dict) and isinstance(case.body.get("name"), str):
        case.body["name"] = fresh(case.body["name"], number)
    if operation == "validateTemplate" and "template" in case.query and choice % 3:
        case.query["template"] = make("APPROVED").json()["id"]
    if operation == "listEvents" and str(case.query.get("after", "latest")) != "latest":
        case.query["after"] = int(case.query["after"]) % (newest_event() + 1)
    if operation in ("createWebhook", "editWebhook") and choice % 3 and case.body.get("url") is not None:
        case.body["url"] = f"https://hooks.example/{number}"
    if operation == "replayEvents" and case.body.get("event") is not None:
        case.body["event"] = 1 + int(case.body["event"]) % newest_event()
    if operation == "replayEvents" and case.body.get("since") is not None and choice % 2:
        case.body["since"] = f"2026-11-15T09:30:00.{choice % 1000}+01:00"
    if "Idempotency-Key" in case.headers:
        case.headers["Idempotency-Key"] = fresh(case.headers["Idempotency-Key"], number)


def aim(case, template, choice):
    """Points a request at a template, and in most cases at the revision that it has; or at an
    endpoint."""
    case.path_parameters["id"] = template.json()["id"]
    if kind_of(case) == "webhook":
        return
    tag = template.headers["ETag"]
    for header in ("If-Match", "If-None-Match"):
        left_alone = case.meta.phase.name == "fuzzing" and choice % 4 == 0
        if header in case.headers and not left_alone:
            case.headers[header] = [tag, "*", tag, f'"x", {tag}'][choice % 4]
    # Few deletions are sent with a tag: some of them are to have one that is not the template's, but
    # not an example, of which there may be no other.
    is_one_of_many = case.meta.phase.name in ("fuzzing", "stateful")
    if operation_of(case) == "deleteTemplate" and "If-Match" in case.headers and is_one_of_many and choice % 6 == 0:
        case.headers["If-Match"] = '"0"'


def continue_life(case, number, choice):
    """Makes a step of a scenario sensible where it leads. A scenario that is played again has to
    go the same way again, whatever others have done in the meantime: it works on templates of its
    own, and only links lead from one step to the next."""
    operation, kind, id = operation_of(case), kind_of(case), case.path_parameters.get("id")
    if not any(earlier.values()):
        for each in earlier:
            earlier[each].update(living[each], gone[each], ["none"])
    make_fresh(case, number, choice)
    if operation == "listTemplates":
        case.query = {"name": make("PENDING").json()["name"]}
    elif operation == "listWebhooks":
        # Links lead to the first: it is always a new one.
        make_room(0)
        make_endpoint(case, choice)
    elif id in living[kind].keys() - earlier[kind]:
        thing = own("GET", f"/{COLLECTION[kind]}/{id}")
        SUIT.get(operation, lambda *_: None)(case, thing.json(), choice)
        if choice % 4 and not OUR_TAG.fullmatch(case.headers.get("If-Match", '"1"')):
            case.headers["If-Match"] = thing.headers["ETag"]
    elif id is not None and id not in gone[kind] - earlier[kind]:
        aim(case, MAKE[operation](case, choice), choice)


def make_for_reading(case, choice):
    template = make("APPROVED")
    if "version" in case.query:
        case.query["version"] = 1 + choice % 2
    edit = {"category": "UTILITY"}
    return own("PATCH", f"/message_templates/{template.json()['id']}", edit)


def make_for_edit(case, choice):
    if case.body.get("restore_version"):
        case.body["restore_version"] = 1
    status = ["PENDING", "APPROVED", "REJECTED", "PAUSED", "DISABLED"][choice % 5]
    return make(status, allow_category_change=choice % 3 > 0)


def make_for_deletion(case, choice):
    return make(list(WAY_TO)[choice % len(WAY_TO)])


def make_for_review(case, choice):
    status = STATUS_FOR.get(case.body["decision"].lower(), "APPROVED")
    return make(status if choice % 5 else "DISABLED")


def make_for_rendering(case, choice):
    """A template that takes these very values, as far as there can be one."""
    values = case.body
    if choice % UNTOUCHED:
        keep_what_v1_takes(values)
    components = []
    header, body = strings(values.get("header")), strings(values.get("body"))
    if header and choice % 3 == 0:
        values["header"] = [f"https://shop.example/{FILES[choice % len(FILES)]}"]
        components.append({"type": "HEADER", "format": "MEDIA", "example": {"media_url": "https://shop.example/"}})
    elif header:
        components.append({"type": "HEADER", "format": "TEXT", "text": places(header)})
    samples = {"example": {"body_text": [["x"] * len(body)]}} if body else {}
    components.append({"type": "BODY", "text": places(body) or "Hello", **samples})
    buttons = values.get("buttons")
    taken = [int(key) for key in buttons or [] if buttons[key] is not None] if isinstance(buttons, dict) else []
    if taken:
        code, link = {"type": "COPY_CODE", "example": "x"}, {"type": "URL", "text": "Go", "url": "https://shop.example/{{1}}"}
        rest = {"type": "QUICK_REPLY", "text": "Yes"}
        shown = [([code, link][choice % 2] if index in taken else rest) for index in range(max(taken) + 1)]
        components.append({"type": "BUTTONS", "buttons": shown})
    return make("APPROVED" if choice % 7 else "PENDING", components=components)


def keep_what_v1_takes(values):
    """The account of the suite has the rulebook `v1`: what only templates of the other one take is
    refused, which a few requests are enough to see."""
    values.pop("cards", None)
    values.pop("offer", None)
    for member in ("header", "body"):
        if not isinstance(values.get(member), list):
            values.pop(member, None)
    buttons = values.get("buttons")
    if isinstance(buttons, dict):
        for key in [key for key in buttons if not isinstance(buttons[key], str)]:
            del buttons[key]


def make_endpoint(case, choice):
    """An endpoint; one whose secret was rotated, now and then."""
    make_room()
    made = own("POST", "/webhooks", {"url": f"https://hooks.example/{next(numbers)}"})
    id = made.json()["id"]
    living["webhook"][id] = True
    if operation_of(case) == "rotateSecret" and choice % 3 == 0:
        own("POST", f"/webhooks/{id}/rotate")
    if operation_of(case) == "listDeliveries":
        make_delivery(case, id)
    return made


def make_delivery(case, id):
    """Something for the list to show. In a scenario it has to be shown: from an empty page no link
    leads on."""
    newest_event()
    own("POST", f"/webhooks/{id}/replay", {"event": 1})
    if is_good(case) and case.meta.phase.name == "stateful":
        case.query.pop("after", None)
        if "status" in case.query:
            case.query["status"] = "Waiting"


MAKE = {
    "showWebhook": make_endpoint,
    "editWebhook": make_endpoint,
    "deleteWebhook": make_endpoint,
    "rotateSecret": make_endpoint,
    "listDeliveries": make_endpoint,
    "replayEvents": make_endpoint,
    "showTemplate": make_for_reading,
    "listVersions": make_for_reading,
    "editTemplate": make_for_edit,
    "deleteTemplate": make_for_deletion,
    "reviewTemplate": make_for_review,
    "renderTemplate": make_for_rendering,
}


def suit_reading(case, template, choice):
    if case.query.get("version", 1) > template["version"]:
        case.query["version"] = 1 + choice % 2


def suit_versions(case, template, choice):
    # Behind the first version there is nothing, and no link leads on from there.
    if str(case.query.get("after")) == "1":
        del case.query["after"]


def suit_edit(case, template, choice):
    if case.body.get("restore_version"):
        case.body["restore_version"] = 1


def suit_review(case, template, choice):
    possible = POSSIBLE.get(template["status"])
    if possible:
        case.body["decision"] = possible[choice % len(possible)]


def suit_rendering(case, template, choice):
    if "live_version" not in template:
        return
    live = own("GET", f"/message_templates/{template['id']}?version={template['live_version']}").json()
    values = {"buttons": {}}
    for component in live["components"]:
        count = max((int(it) for it in PLACEHOLDER.findall(component.get("text", ""))), default=0)
        if component["type"] in ("HEADER", "BODY"):
            values[component["type"].lower()] = [f"v{index}" for index in range(count)]
        if component.get("format") == "MEDIA":
            values["header"] = [f"https://shop.example/{FILES[choice % len(FILES)]}"]
        for index, button in enumerate(component.get("buttons", [])):
            if button["type"] == "COPY_CODE" or button.get("url", "").endswith("{{1}}"):
                values["buttons"][str(index)] = "x"
    case.body.clear()
    case.body.update(values)


def suit_deliveries(case, webhook, choice):
    make_delivery(case, webhook["id"])


def suit_rotation(case, webhook, choice):
    if "former_secret_until" in webhook and choice % 3 and isinstance(case.body, dict):
        case.body["force"] = True


SUIT = {
    "listDeliveries": suit_deliveries,
    "rotateSecret": suit_rotation,
    "showTemplate": suit_reading,
    "listVersions": suit_versions,
    "editTemplate": suit_edit,
    "reviewTemplate": suit_review,
    "renderTemplate": suit_rendering,
}


# --- helpers ----------------------------------------------------------------------------------


def is_good(case):
    return case.meta is not None and case.meta.generation.mode.is_positive


COLLECTION = {"template": "message_templates", "webhook": "webhooks"}


def kind_of(case):
    """What a request is about."""
    return "webhook" if "/webhooks" in case.operation.path else "template"


def newest_event():
    """The number of the newest event; there is one at least."""
    cursor = own("GET", "/events?after=latest").json()["paging"]["cursors"]["after"]
    if cursor == "0":
        make("PENDING")
        return newest_event()
    return int(cursor)


def operation_of(case):
    return case.operation.definition.raw["operationId"]


def choice_for(case):
    """A number that says what to make of a request. It comes from the request alone: a scenario
    that is played again has to go the same way again."""
    sent = sorted(item for item in case.headers.items() if item[0] != "Authorization")
    return zlib.crc32(repr((case.body, sorted(case.query.items()), sent)).encode())


def fresh(text, number):
    """The text with a number at its end; a long text keeps its length, since it may be a limit."""
    tail = f"~{number}"
    return (text[: -len(tail)] if len(text) > 100 else text) + tail


def strings(values):
    """The values before the first that is left out."""
    values = values if isinstance(values, list) else []
    return list(itertools.takewhile(lambda value: value is not None, values))


def places(values):
    return "".join(f"{{{{{number}}}}}" for number, _ in enumerate(values, 1))


def make(status, allow_category_change=True, components=None):
    """A new template in that status, as the service shows it."""
    template = {
        "name": f"made by the suite {next(numbers)}",
        "language": "en_US",
        "category": "MARKETING",
        "allow_category_change": allow_category_change,
        "components": components or [{"type": "BODY", "text": "Hello"}],
    }
    made = own("POST", "/message_templates", template).json()["id"]
    living["template"][made] = True
    for decision in WAY_TO[status]:
        own("POST", f"/message_templates/{made}/review", {"decision": decision})
    return own("GET", f"/message_templates/{made}")


session = requests.Session()
session.trust_env = False
session.headers["Authorization"] = f"Bearer {os.environ['SUITE_TOKEN']}"


def own(method, path, body=None):
    """A request of the suite itself; it has to succeed."""
    base = "{SUITE_ADDRESS}/api/v1.0/{SUITE_PHONE}/{SUITE_KEY}".format(**os.environ)
    response = session.request(method, base + path, json=body, timeout=10)
    assert response.ok, f"{method} {path} {body}: {response.text}"
    return response
