"""Schemathesis hooks: which errors a valid request may get, how to keep requests from interfering with
each other, and which templates and endpoints exist."""

import atexit
import collections
import itertools
import os
import re
import zlib

import requests
import schemathesis
from exact_requests import make_exact
from schemathesis.core.parameters import ParameterLocation

# Rules that JSON Schema cannot express. A document that matches the schema may violate these rules
# only.
RULES_BEYOND_SCHEMA = {
    # Placeholders are numbered from {{1}} without gaps: a pattern would have to list every set of them.
    "placeholder-gap",
    # One sample per distinct placeholder: a schema cannot count inside a string.
    "samples-count",
    # Valid IPv6 addresses and non-ASCII characters in a host: such patterns exist, but not in a form
    # that all common regex engines support.
    "url-host",
}

# Rules for values that depend on the template: which values it takes, in which order, how long they
# may be, and whether they end a URL.
RULES_OF_TEMPLATE = {
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

# An edit may repeat members that never change, but only with the values of its template.
RULES_OF_EDITS = RULES_BEYOND_SCHEMA | {"unchangeable"}

# Rules of the SSRF protection: a schema cannot express all spellings of a host, and webhook URLs must
# not contain fragments and backslashes, which other URLs may have.
RULES_OF_SSRF_PROTECTION = {"webhook-address", "webhook-format", "webhook-handshake", "url-host"}

# About one in this number of requests is sent as generated.
UNMODIFIED_INTERVAL = 8

TAGS = re.compile(r'\*|[, \t]*(?:W/)?"[!#-~\x80-\xff]*"(?:[, \t]*,[, \t]*(?:W/)?"[!#-~\x80-\xff]*")*[, \t]*')
GALLEY_TAG = re.compile(r'"[0-9]+"')
PLACEHOLDER = re.compile(r"\{\{([1-9][0-9]{0,2})\}\}")

# The decisions that lead to a status, and the decisions possible in it.
DECISIONS_TO = {"PENDING": [], "APPROVED": ["approve"], "REJECTED": ["reject"], "PAUSED": ["approve", "pause"], "DISABLED": ["disable"]}
POSSIBLE = {"PENDING": ["approve", "approve", "reject"], "APPROVED": ["pause"], "PAUSED": ["resume"]}
STATUS_FOR = {"approve": "PENDING", "reject": "PENDING", "pause": "APPROVED", "resume": "PAUSED"}

# Changes that `If-Match` can tie to a revision.
CONDITIONAL_CHANGES = {"editTemplate", "deleteTemplate", "reviewTemplate"}

FILES = ["photo.jpg", "film.mp4", "bill.pdf", "LIST.XLSX", "notes.txt?day=1#top"]

# An account has at most 20 endpoints: the suite deletes old ones before it creates more.
MAX_ENDPOINTS = 18

numbers = itertools.count(1)
# Ids of existing templates and endpoints by kind, oldest first, and of deleted ones.
existing, deleted = {"template": {}, "webhook": {}}, {"template": set(), "webhook": set()}
# Ids that existed before the scenarios started, and ids that invalid requests are sent to.
earlier, targets = {"template": set(), "webhook": set()}, {"template": set(), "webhook": set()}
# Number of responses by operation and status.
responses = collections.Counter()


# --- errors that a valid request may get -------------------------------------------------------


def rules_within(allowed):
    return lambda case, problem: {it["rule"] for it in problem["violations"]} <= allowed


def id_is_unknown(case, problem):
    return case.path_parameters["id"] not in existing[kind_of(case)]


def is_beyond_schema_of_list(case, problem):
    """Whether the query names a phone number of another account, a date that does not exist, a cursor of
    the other order, or words in letters that no portable pattern describes."""
    parameter = problem["detail"].split("`")[1]
    if parameter == "q":
        return not case.query["q"].isascii()
    if parameter == "after":
        return case.query["after"].startswith("oldest-") != (case.query.get("order") == "oldest")
    return parameter in ("phone_number_id", "updated_after", "updated_before")


def names_a_revision(case, problem):
    return case.headers.get("If-Match", "*") != "*"


def transition_is_invalid(case, problem):
    requested = case.body["decision"].lower() if "decision" in case.body else "edit"
    return requested not in problem["possible"] and "delete" in problem["possible"]


def has_no_live_version(case, problem):
    return "live_version" not in send("GET", f"/message_templates/{case.path_parameters['id']}").json()


def is_ahead_of_newest_event(case, problem):
    return "ahead of the newest event" in problem["detail"] and int(case.query["after"]) > 0


def is_not_forced(case, problem):
    return not (isinstance(case.body, dict) and case.body.get("force"))


def always(case, problem):
    return True


ALLOWED_PROBLEMS = {
    "listTemplates": {"bad-request": is_beyond_schema_of_list},
    "createTemplate": {
        "invalid-template": rules_within(RULES_BEYOND_SCHEMA),
        # A schema cannot describe which names are free and which keys were used.
        "name-taken": always,
        "idempotency-key-reused": always,
    },
    "validateTemplate": {"template-unknown": lambda case, problem: case.query["template"] not in existing["template"]},
    "showTemplate": {
        "template-unknown": id_is_unknown,
        "version-unknown": lambda case, problem: case.query["version"] != 1,
    },
    "editTemplate": {
        "template-unknown": id_is_unknown,
        "version-unknown": lambda case, problem: case.body["restore_version"] != 1,
        "invalid-template": rules_within(RULES_OF_EDITS),
        "revision-outdated": names_a_revision,
        "category-locked": lambda case, problem: case.body.keys() & {"category", "restore_version"},
        "move-not-possible": transition_is_invalid,
    },
    "deleteTemplate": {"template-unknown": id_is_unknown, "revision-outdated": names_a_revision},
    "listVersions": {"template-unknown": id_is_unknown},
    "showProof": {
        "template-unknown": id_is_unknown,
        "version-unknown": lambda case, problem: case.query["version"] != 1,
    },
    "reviewTemplate": {
        "template-unknown": id_is_unknown,
        "revision-outdated": lambda case, problem: names_a_revision(case, problem) or "version" in case.body,
        "move-not-possible": transition_is_invalid,
    },
    "renderTemplate": {
        "template-unknown": id_is_unknown,
        "not-live": has_no_live_version,
        "invalid-values": rules_within(RULES_OF_TEMPLATE),
    },
    "listEvents": {"bad-request": is_ahead_of_newest_event},
    # A time in the past or too far ahead, and a day that does not exist. The suite creates as many tokens as an account may have.
    "createToken": {"invalid-token-document": rules_within({"token-expiry", "moment-form"}), "too-many-tokens": always},
    "createWebhook": {"invalid-webhook": rules_within(RULES_OF_SSRF_PROTECTION)},
    "showWebhook": {"webhook-unknown": id_is_unknown},
    "editWebhook": {"webhook-unknown": id_is_unknown, "invalid-webhook": rules_within(RULES_OF_SSRF_PROTECTION)},
    "deleteWebhook": {"webhook-unknown": id_is_unknown},
    "rotateSecret": {"webhook-unknown": id_is_unknown, "rotation-open": is_not_forced},
    "listDeliveries": {"webhook-unknown": id_is_unknown},
    "replayEvents": {
        "webhook-unknown": id_is_unknown,
        "event-unknown": lambda case, problem: case.body["event"] > newest_event(),
        # The pattern does not know the length of months and the last valid year.
        "invalid-webhook": rules_within({"moment-form"}),
    },
    "showDocs": {"revision-outdated": names_a_revision},
    "showDocsFile": {"not-found": always, "revision-outdated": names_a_revision},
    "showOpenApiDocument": {"revision-outdated": names_a_revision},
    "showGraphDocument": {"revision-outdated": names_a_revision},
    "showTemplateSchema": {"revision-outdated": names_a_revision},
}


@schemathesis.check
def valid_requests_get_only_allowed_problems(ctx, response, case):
    """A request that matches the description fails only for reasons that it cannot express."""
    if response.status_code < 400 or not is_valid(case):
        return
    problem = response.json()
    kind = problem["type"].rpartition("/")[2]
    is_allowed = ALLOWED_PROBLEMS.get(operation_of(case), {}).get(kind)
    assert is_allowed is not None, f"the description allows a request that fails with {kind}: {problem['detail']}"
    assert is_allowed(case, problem), f"unexpected {kind}: {problem}"


# --- requests ----------------------------------------------------------------------------------


@schemathesis.hook
def before_load_schema(context, raw_schema):
    """Makes the schemas of requests exact. Responses are checked against the document as it is."""
    template = session.get(os.environ["SUITE_ADDRESS"] + "/schemas/v1/template.json", timeout=10)
    make_exact(raw_schema, template.json())


@schemathesis.hook
def before_call(context, case, kwargs):
    """Gives most valid requests a unique name and Idempotency-Key, and an existing template.

    Generated names are short and repeat. Without this hook nearly every create after the first few
    would fail with 409 or 422, and the rules after the name would never be reached. Likewise,
    generated ids, tags and version numbers hardly ever exist. Some requests are left unmodified, so
    that these errors occur as well.
    """
    drop_invalid_tags(case)
    drop_empty_lists(case)
    disable_waiting(case)
    if operation_of(case) == "createWebhook":
        limit_endpoints()
    if not is_valid(case):
        use_existing_id(case)
        return
    number, choice, phase = next(numbers), choice_for(case), case.meta.phase.name
    if phase == "stateful":
        continue_scenario(case, number, choice)
    elif phase != "fuzzing" or choice % UNMODIFIED_INTERVAL:
        make_unique(case, number, choice)
        if "id" in case.path_parameters:
            target(case, CREATE[operation_of(case)](case, choice), choice)


@schemathesis.hook
def after_call(context, case, response):
    """Counts responses and records which templates and endpoints exist."""
    operation, status = operation_of(case), response.status_code
    if case.method.upper() == case.operation.method.upper():
        responses[operation, status] += 1
    if (operation, status) in (("createTemplate", 201), ("createWebhook", 201)):
        existing[kind_of(case)][response.json()["id"]] = True
    if (operation, status) in (("deleteTemplate", 204), ("deleteWebhook", 204)):
        record_deleted(kind_of(case), case.path_parameters["id"])


@atexit.register
def write_responses():
    with open(os.environ["SUITE_RESPONSES"], "w") as file:
        for (operation, status), count in sorted(responses.items()):
            print(operation, status, count, file=file)


def drop_invalid_tags(case):
    """Removes headers that do not match their pattern. The coverage phase cannot generate values for
    the pattern of these optional headers and sends other values, even in requests that it considers
    valid or that violate something else."""
    if violates(case, ParameterLocation.HEADER):
        return
    for header in ("If-Match", "If-None-Match"):
        if header in case.headers and not TAGS.fullmatch(case.headers[header]):
            del case.headers[header]


def drop_empty_lists(case):
    """Removes empty lists from the query. They leave no trace in a query, so a request whose only
    violation they are arrives as a valid one and must count as such."""
    for name in [name for name, value in case.query.items() if value == []]:
        del case.query[name]


def disable_waiting(case):
    """Sets a valid `wait` to 0: nothing happens while a request of the suite waits."""
    if str(case.query.get("wait")) in map(str, range(26)):
        case.query["wait"] = 0


def limit_endpoints(maximum=MAX_ENDPOINTS - 1):
    """Deletes the oldest endpoints until at most `maximum` are left."""
    while len(existing["webhook"]) > maximum:
        oldest = next(iter(existing["webhook"]))
        send("DELETE", f"/webhooks/{oldest}")
        record_deleted("webhook", oldest)


def record_deleted(kind, id):
    existing[kind].pop(id, None)
    deleted[kind].add(id)


def violates(case, location):
    """Whether a request is meant to violate the description at this location."""
    if is_valid(case):
        return False
    data = case.meta.phase.data if case.meta is not None else None
    violated = getattr(data, "parameter_location", None)
    return violated is None or violated == location


def use_existing_id(case):
    """Sets an existing id: a request with another violation would otherwise get 404."""
    if "id" in case.path_parameters and not violates(case, ParameterLocation.PATH):
        # Other requests find the id in lists and may have changed or deleted it.
        kind = kind_of(case)
        if not targets[kind] & existing[kind].keys():
            created = create_template("APPROVED") if kind == "template" else create_endpoint(case, 0)
            targets[kind].add(created.json()["id"])
        case.path_parameters["id"] = min(targets[kind] & existing[kind].keys())


def make_unique(case, number, choice):
    """Sets an unused name and Idempotency-Key, and replaces ids and event numbers by existing ones."""
    operation = operation_of(case)
    if operation == "listTemplates" and "phone_number_id" in case.query and choice % 4:
        case.query["phone_number_id"] = [os.environ["SUITE_PHONE"]]
    if operation == "listTemplates" and isinstance(case.query.get("after"), str):
        case.query["order"] = "oldest" if case.query["after"].startswith("oldest-") else "newest"
    if isinstance(case.body, dict) and isinstance(case.body.get("name"), str):
        case.body["name"] = append_number(case.body["name"], number)
    if operation == "validateTemplate" and "template" in case.query and choice % 3:
        case.query["template"] = create_template("APPROVED").json()["id"]
    if operation == "listEvents" and str(case.query.get("after", "latest")) != "latest":
        case.query["after"] = int(case.query["after"]) % (newest_event() + 1)
    if operation in ("createWebhook", "editWebhook") and choice % 3 and case.body.get("url") is not None:
        case.body["url"] = f"https://hooks.example/{number}"
    if operation == "replayEvents" and case.body.get("event") is not None:
        case.body["event"] = 1 + int(case.body["event"]) % newest_event()
    if operation == "replayEvents" and case.body.get("since") is not None and choice % 2:
        case.body["since"] = f"2026-11-15T09:30:00.{choice % 1000}+01:00"
    if "Idempotency-Key" in case.headers:
        case.headers["Idempotency-Key"] = append_number(case.headers["Idempotency-Key"], number)


def target(case, template, choice):
    """Sends a request to a template, in most cases with its current revision; or to an endpoint."""
    case.path_parameters["id"] = template.json()["id"]
    if kind_of(case) == "webhook":
        return
    tag = template.headers["ETag"]
    for header in ("If-Match", "If-None-Match"):
        unmodified = case.meta.phase.name == "fuzzing" and choice % 4 == 0
        if header in case.headers and not unmodified:
            case.headers[header] = [tag, "*", tag, f'"x", {tag}'][choice % 4]
    # Few changes have a tag. Some of those, and the first change of each kind without one, get a wrong
    # one; not in the example phase, which may send only one change.
    is_repeated = case.meta.phase.name in ("fuzzing", "stateful")
    if "If-Match" in case.headers and is_repeated and choice % 6 == 0:
        case.headers["If-Match"] = '"0"'
    operation = operation_of(case)
    if operation in CONDITIONAL_CHANGES and is_repeated and not responses[operation, 412]:
        case.headers["If-Match"] = '"0"'


def continue_scenario(case, number, choice):
    """Adapts a step of a scenario to the current state. A replayed scenario must take the same path
    again, regardless of other scenarios: it uses its own templates, and only links lead from one step
    to the next."""
    operation, kind, id = operation_of(case), kind_of(case), case.path_parameters.get("id")
    if not any(earlier.values()):
        for name in earlier:
            earlier[name].update(existing[name], deleted[name], ["none"])
    make_unique(case, number, choice)
    if operation == "listTemplates":
        case.query = {"name": create_template("PENDING").json()["name"]}
    elif operation == "listWebhooks":
        # Links lead to the first endpoint, so it must be a new one.
        limit_endpoints(0)
        create_endpoint(case, choice)
    elif id in existing[kind].keys() - earlier[kind]:
        resource = send("GET", f"/{COLLECTION[kind]}/{id}")
        ADAPT.get(operation, lambda *_: None)(case, resource.json(), choice)
        if choice % 4 and not GALLEY_TAG.fullmatch(case.headers.get("If-Match", '"1"')):
            case.headers["If-Match"] = resource.headers["ETag"]
    elif id is not None and id not in deleted[kind] - earlier[kind]:
        target(case, CREATE[operation](case, choice), choice)


def create_for_reading(case, choice):
    template = create_template("APPROVED")
    if "version" in case.query:
        case.query["version"] = 1 + choice % 3
    edit = {"category": "UTILITY"}
    return send("PATCH", f"/message_templates/{template.json()['id']}", edit)


def create_for_edit(case, choice):
    if case.body.get("restore_version"):
        case.body["restore_version"] = 1
    status = ["PENDING", "APPROVED", "REJECTED", "PAUSED", "DISABLED"][choice % 5]
    return create_template(status, allow_category_change=choice % 3 > 0)


def create_for_deletion(case, choice):
    return create_template(list(DECISIONS_TO)[choice % len(DECISIONS_TO)])


def create_for_review(case, choice):
    status = STATUS_FOR.get(case.body["decision"].lower(), "APPROVED")
    if "version" in case.body and choice % 4:
        case.body["version"] = 1
    return create_template(status if choice % 5 else "DISABLED")


def create_for_rendering(case, choice):
    """Creates a template that takes these values, as far as possible."""
    values = case.body
    if choice % UNMODIFIED_INTERVAL:
        keep_v1_values(values)
    components = []
    header, body = leading_values(values.get("header")), leading_values(values.get("body"))
    if header and choice % 3 == 0:
        values["header"] = [f"https://shop.example/{FILES[choice % len(FILES)]}"]
        components.append({"type": "HEADER", "format": "MEDIA", "example": {"media_url": "https://shop.example/"}})
    elif header:
        components.append({"type": "HEADER", "format": "TEXT", "text": placeholders(header)})
    samples = {"example": {"body_text": [["x"] * len(body)]}} if body else {}
    components.append({"type": "BODY", "text": placeholders(body) or "Hello", **samples})
    buttons = values.get("buttons")
    filled = [int(key) for key in buttons or [] if buttons[key] is not None] if isinstance(buttons, dict) else []
    if filled:
        code, link = {"type": "COPY_CODE", "example": "x"}, {"type": "URL", "text": "Go", "url": "https://shop.example/{{1}}"}
        rest = {"type": "QUICK_REPLY", "text": "Yes"}
        listed = [([code, link][choice % 2] if index in filled else rest) for index in range(max(filled) + 1)]
        components.append({"type": "BUTTONS", "buttons": listed})
    return create_template("APPROVED" if choice % 7 else "PENDING", components=components)


def keep_v1_values(values):
    """Removes values that only templates of the rulebook `whatsapp` take. The suite's account has the
    rulebook `v1`, and a few requests are enough to test the error."""
    values.pop("cards", None)
    values.pop("offer", None)
    for member in ("header", "body"):
        if not isinstance(values.get(member), list):
            values.pop(member, None)
    buttons = values.get("buttons")
    if isinstance(buttons, dict):
        for key in [key for key in buttons if not isinstance(buttons[key], str)]:
            del buttons[key]


def create_endpoint(case, choice):
    """Creates an endpoint; for rotations, sometimes one whose secret was rotated already."""
    limit_endpoints()
    created = send("POST", "/webhooks", {"url": f"https://hooks.example/{next(numbers)}"})
    id = created.json()["id"]
    existing["webhook"][id] = True
    if operation_of(case) == "rotateSecret" and choice % 3 == 0:
        send("POST", f"/webhooks/{id}/rotate")
    if operation_of(case) == "listDeliveries":
        create_delivery(case, id)
    return created


def create_delivery(case, id):
    """Creates a delivery. In a scenario it must be on the page, because an empty page has no links."""
    newest_event()
    send("POST", f"/webhooks/{id}/replay", {"event": 1})
    if is_valid(case) and case.meta.phase.name == "stateful":
        case.query.pop("after", None)
        if "status" in case.query:
            case.query["status"] = "Waiting"


CREATE = {
    "showWebhook": create_endpoint,
    "editWebhook": create_endpoint,
    "deleteWebhook": create_endpoint,
    "rotateSecret": create_endpoint,
    "listDeliveries": create_endpoint,
    "replayEvents": create_endpoint,
    "showTemplate": create_for_reading,
    "showProof": create_for_reading,
    "listVersions": create_for_reading,
    "editTemplate": create_for_edit,
    "deleteTemplate": create_for_deletion,
    "reviewTemplate": create_for_review,
    "renderTemplate": create_for_rendering,
}


def adapt_reading(case, template, choice):
    if case.query.get("version", 1) > template["version"]:
        case.query["version"] = 1 + choice % 3


def adapt_versions(case, template, choice):
    # The page after the first version is empty and has no links.
    if str(case.query.get("after")) == "1":
        del case.query["after"]


def adapt_edit(case, template, choice):
    if case.body.get("restore_version"):
        case.body["restore_version"] = 1


def adapt_review(case, template, choice):
    possible = POSSIBLE.get(template["status"])
    if possible:
        case.body["decision"] = possible[choice % len(possible)]
    if "version" in case.body and choice % 4:
        case.body["version"] = template["version"]


def adapt_rendering(case, template, choice):
    if "live_version" not in template:
        return
    live = send("GET", f"/message_templates/{template['id']}?version={template['live_version']}").json()
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


def adapt_deliveries(case, webhook, choice):
    create_delivery(case, webhook["id"])


def adapt_rotation(case, webhook, choice):
    if "former_secret_until" in webhook and choice % 3 and isinstance(case.body, dict):
        case.body["force"] = True


ADAPT = {
    "listDeliveries": adapt_deliveries,
    "rotateSecret": adapt_rotation,
    "showTemplate": adapt_reading,
    "showProof": adapt_reading,
    "listVersions": adapt_versions,
    "editTemplate": adapt_edit,
    "reviewTemplate": adapt_review,
    "renderTemplate": adapt_rendering,
}


# --- helpers ----------------------------------------------------------------------------------


def is_valid(case):
    return case.meta is not None and case.meta.generation.mode.is_positive


COLLECTION = {"template": "message_templates", "webhook": "webhooks"}


def kind_of(case):
    """Returns the kind of resource that a request addresses."""
    return "webhook" if "/webhooks" in case.operation.path else "template"


def newest_event():
    """Returns the number of the newest event; creates one if there is none."""
    cursor = send("GET", "/events?after=latest").json()["paging"]["cursors"]["after"]
    if cursor == "0":
        create_template("PENDING")
        return newest_event()
    return int(cursor)


def operation_of(case):
    return case.operation.definition.raw["operationId"]


def choice_for(case):
    """Returns a number that selects how to modify a request. It depends on the request only, because a
    replayed scenario must take the same path again."""
    sent = sorted(item for item in case.headers.items() if item[0] != "Authorization")
    return zlib.crc32(repr((case.body, sorted(case.query.items()), sent)).encode())


def append_number(text, number):
    """Appends a number to the text. A long text keeps its length, which may be a limit."""
    suffix = f"~{number}"
    return (text[: -len(suffix)] if len(text) > 100 else text) + suffix


def leading_values(values):
    """Returns the values before the first null."""
    values = values if isinstance(values, list) else []
    return list(itertools.takewhile(lambda value: value is not None, values))


def placeholders(values):
    return "".join(f"{{{{{number}}}}}" for number, _ in enumerate(values, 1))


def create_template(status, allow_category_change=True, components=None):
    """Creates a template with this status; returns the response to a read of it."""
    template = {
        "name": f"created by the suite {next(numbers)}",
        "language": "en_US",
        "category": "MARKETING",
        "allow_category_change": allow_category_change,
        "components": components or [{"type": "BODY", "text": "Hello"}],
    }
    id = send("POST", "/message_templates", template).json()["id"]
    existing["template"][id] = True
    for decision in DECISIONS_TO[status]:
        send("POST", f"/message_templates/{id}/review", {"decision": decision})
    return send("GET", f"/message_templates/{id}")


session = requests.Session()
session.trust_env = False
session.headers["Authorization"] = f"Bearer {os.environ['SUITE_TOKEN']}"


def send(method, path, body=None):
    """Sends a request of the suite itself, which must succeed."""
    base = "{SUITE_ADDRESS}/api/v1.0/{SUITE_PHONE}/{SUITE_KEY}".format(**os.environ)
    response = session.request(method, base + path, json=body, timeout=10)
    assert response.ok, f"{method} {path} {body}: {response.text}"
    return response
