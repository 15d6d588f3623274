"""The exact schemas of requests, for schemathesis.

The OpenAPI document describes requests so that people and generators understand them: `null`, other
letter cases and rules of single values are left out. Here they are, so that every generated request is
certainly valid or certainly invalid. Templates come from the JSON Schema that the service publishes; the
rest is added to the schemas of the document.
"""

MAX_INTEGER = 2**53 - 1
SPACE = r" \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
CONTROL = r"\u0000-\u001f\u007f-\u009f"
NULL = {"type": "null"}
ANYTHING_BUT_NULL = [{"type": it} for it in ("object", "array", "string", "number", "boolean")]


def make_exact(document, template):
    """Replaces the schemas of requests in an OpenAPI document. `template` is the JSON Schema of a
    template."""
    schemas = document["components"]["schemas"]
    template = {key: value for key, value in template.items() if not key.startswith("$")}
    schemas |= {f"Exact{name}": schema for name, schema in bodies(schemas, template).items()}
    for item in document["paths"].values():
        for operation in item.values():
            if isinstance(operation, dict) and operation.get("operationId") in BODY_OF:
                name = f"Exact{BODY_OF[operation['operationId']]}"
                media = operation["requestBody"]["content"]["application/json"]
                media["schema"] = {"$ref": f"#/components/schemas/{name}"}
    for name, schema in parameters(schemas).items():
        document["components"]["parameters"][name]["schema"] = schema


BODY_OF = {
    "createTemplate": "Template",
    "validateTemplate": "Anything",
    "proofDocument": "ProofRequest",
    "editTemplate": "Edit",
    "reviewTemplate": "Decision",
    "renderTemplate": "Values",
    "createToken": "Token",
    "createWebhook": "Webhook",
    "editWebhook": "WebhookEdit",
    "rotateSecret": "Rotation",
    "replayEvents": "Replay",
}


def bodies(schemas, template):
    fields = template["properties"]
    media = next(it for it in fields["components"]["items"]["anyOf"] if "media_url" in str(it["properties"].get("example")))
    url = media["properties"]["example"]["properties"]["media_url"]
    number = {"type": "integer", "minimum": 1, "maximum": MAX_INTEGER}
    decision, webhook = schemas["ReviewDecision"]["properties"], schemas["NewWebhook"]["properties"]
    types = schemas["EventType"]["enum"]
    events = {"type": "array", "maxItems": len(types), "items": any_case(types)}
    token = text(schemas["VerifyToken"]["maxLength"])
    content = {"category": fields["category"], "components": fields["components"]}
    return {
        "Template": template,
        # Any JSON value gets a result.
        "Anything": {"anyOf": [{"$ref": "#/components/schemas/ExactTemplate"}, {}]},
        # Any document but `null` is shown, with any values.
        "ProofRequest": record({"document": {"anyOf": [{"$ref": "#/components/schemas/ExactTemplate"}, *ANYTHING_BUT_NULL]}}, {"values": {}}),
        "Edit": {
            "anyOf": [
                *some_of(content, restore_version=NULL),
                {"type": "object", "properties": {"restore_version": number, **dict.fromkeys(content, NULL)}, "required": ["restore_version"]},
            ]
        },
        # Unlike other documents, a decision has no other members, not even with `null`.
        "Decision": {
            "type": "object",
            "properties": {
                "decision": any_case(schemas["Decision"]["enum"]),
                "reason": or_null(text(decision["reason"]["maxLength"], multiline=True)),
                "version": number,
            },
            "required": ["decision"],
            "additionalProperties": False,
        },
        "Values": {"$ref": "#/components/schemas/ExactTemplateValues"},
        "TemplateValues": template_values(),
        "CardValues": closed(values()),
        # At most one of the two describes the expiry.
        "Token": {
            "anyOf": [
                record(new_token(schemas), {"expires_in": number, "expires_at": NULL}),
                record(new_token(schemas), {"expires_in": NULL, "expires_at": timestamp()}),
            ]
        },
        "Webhook": record(
            {"url": url},
            {
                "events": events,
                "format": any_case(schemas["WebhookFormat"]["enum"]),
                "secret": {"type": "string", "pattern": "^[!-~]{16,}$", "maxLength": webhook["secret"]["maxLength"]},
                "verify_token": token,
            },
        ),
        "WebhookEdit": {
            "anyOf": some_of({"url": url, "verify_token": token, "events": events, "disabled": {"type": "boolean"}})
        },
        "Rotation": record({}, {"force": {"type": "boolean"}}),
        "Replay": {
            "anyOf": [
                {"type": "object", "properties": {"event": number, "since": NULL}, "required": ["event"]},
                {"type": "object", "properties": {"event": NULL, "since": timestamp()}, "required": ["since"]},
            ]
        },
    }


def new_token(schemas):
    name = schemas["NewToken"]["properties"]["name"]
    edge = f"[^{CONTROL}{SPACE}]"
    pattern = f"^{edge}(?:[^{CONTROL}]*{edge})?$"
    return {
        "name": {"type": "string", "minLength": 1, "maxLength": name["maxLength"], "pattern": pattern},
        "scopes": {"type": "array", "minItems": 1, "maxItems": len(schemas["Scope"]["enum"]), "items": any_case(schemas["Scope"]["enum"])},
    }


def parameters(schemas):
    id = {"type": "string", "pattern": f"^(?:{numbers_up_to(MAX_INTEGER)})$"}
    number = {"type": "integer", "minimum": 1, "maximum": MAX_INTEGER}
    letter, other = "[A-Za-z0-9]", r"[\u0000-/:-@\[-`{-\u007f]"
    words = f"^{other}*{letter}+(?:{other}+{letter}+){{0,39}}{other}*$"
    return {
        "StatusFilter": some(any_case(schemas["TemplateStatus"]["enum"])),
        "CategoryFilter": some(any_case(schemas["Category"]["enum"])),
        # A comma separates values.
        "LanguageFilter": some({"type": "string", "pattern": "^[^,]*$"}),
        "PhoneFilter": some({"type": "string", "pattern": "^[^,]*$"}),
        "UpdatedAfter": timestamp(),
        "UpdatedBefore": timestamp(),
        "DeliveryStatusFilter": any_case(schemas["DeliveryStatus"]["enum"]),
        # Which non-ASCII characters are letters: no pattern says it that all common engines read.
        "Query": {"type": "string", "anyOf": [{"pattern": words}, {"pattern": r"[^\u0000-\u007f]"}]},
        "AfterTemplate": id,
        "EditedTemplate": id,
        "AfterVersion": number,
        "AfterDelivery": number,
        "AfterAuditEntry": {"type": "string", "pattern": f"^(?:0|{numbers_up_to(MAX_INTEGER)})$"},
        "AfterEvent": {"anyOf": [{**number, "minimum": 0}, {"type": "string", "const": "latest"}]},
    }


# --- values of a render call: what holds for every template ------------------------------------


def template_values():
    cards = {"type": "array", "items": or_null({"$ref": "#/components/schemas/ExactCardValues"})}
    milliseconds = {"type": "integer", "minimum": 100_000_000_000, "maximum": 253_402_300_799_999}
    return closed(
        {
            **values(),
            "cards": or_null(cards, no_members()),
            "offer": or_null({**timestamp(), **FEW_SPACES}, milliseconds, no_items(), no_members()),
        }
    )


def values():
    header, body = value(2_000), value(32_768)
    degrees = lambda limit: {"anyOf": [{"type": "number", "minimum": -limit, "maximum": limit}, header]}
    location = {"latitude": degrees(90), "longitude": degrees(180), "name": header, "address": header}
    product = {"product_retailer_id": header, "catalog_id": header}
    attachment = closed(dict.fromkeys(["link", "id", "filename"], or_null(header)))
    by_position = lambda it: {"type": "array", "items": or_null(it)}
    by_name = lambda it: {**closed({}), "patternProperties": {"^[a-z_][a-z0-9_]*$": or_null(it)}}
    by_number = {**closed({}), "patternProperties": {"^(?:[0-9]|1[0-9])$": or_null(*button_values())}}
    return {
        "header": or_null(by_position(header), by_name(header), header, attachment, complete(location), complete(product)),
        "body": or_null(by_position(body), by_name(body), body),
        "buttons": or_null(by_number, no_items()),
    }


def button_values():
    it = value(2_000)
    minutes = {"type": "integer", "minimum": 1, "maximum": 43_200}
    items = {"type": "array", "items": complete({"product_retailer_id": it}), "minItems": 1, "maxItems": 30}
    section = complete({"title": it, "product_items": items})
    sections = {"type": "array", "items": section, "minItems": 1, "maxItems": 10}
    return [
        it,
        minutes,
        closed({"flow_token": or_null(it), "flow_action_data": or_null({"type": "object"})}),
        closed({"thumbnail_product_retailer_id": or_null(it)}),
        complete({"thumbnail_product_retailer_id": it, "sections": sections}),
        closed({"ttl_minutes": or_null(minutes), "payload": or_null(it)}),
        # An order, as WhatsApp takes it.
        {"type": "object", "minProperties": 1},
    ]


# --- schemas -----------------------------------------------------------------------------------

FEW_SPACES = {"not": {"pattern": " {5}"}}


def value(maximum):
    return {**text(maximum), **FEW_SPACES}


def text(maximum, multiline=False):
    """A string that is not blank and has no control characters, except for line breaks and tabs."""
    space, control = (rf"\t\n\r{SPACE}", r"\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f") if multiline else (SPACE, CONTROL)
    return {"type": "string", "minLength": 1, "maxLength": maximum, "pattern": f"^[{space}]*[^{CONTROL}{SPACE}][^{control}]*$"}


def timestamp():
    date, time = r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])", r"(?:[01][0-9]|2[0-3]):[0-5][0-9]"
    return {"type": "string", "format": "date-time", "pattern": rf"^{date}T{time}:[0-5][0-9](?:\.[0-9]{{1,9}})?(?:Z|[+-]{time})$"}


def any_case(values):
    """One of the values; letter case is ignored."""
    letter = lambda it: f"[{it.upper()}{it.lower()}]" if it.isalpha() else it.replace(".", r"\.")
    return {"type": "string", "pattern": f"^(?:{'|'.join(''.join(map(letter, it)) for it in values)})$", "examples": values}


def record(required, optional):
    properties = {**required, **{name: or_null(schema) for name, schema in optional.items()}}
    return {"type": "object", "properties": properties, "required": list(required)}


def some_of(properties, **others):
    """At least one of the properties is present: one alternative for each."""
    nullable = {name: or_null(schema) for name, schema in properties.items()}
    return [{"type": "object", "properties": {**nullable, **others, name: schema}, "required": [name]} for name, schema in properties.items()]


def closed(properties):
    return {"type": "object", "properties": properties, "additionalProperties": NULL}


def complete(properties):
    return {**closed(properties), "required": list(properties)}


def some(item):
    return {"type": "array", "items": item, "minItems": 1, "maxItems": 100}


def no_items():
    return {"type": "array", "items": NULL}


def no_members():
    return {"type": "object", "additionalProperties": NULL}


def or_null(*schemas):
    return {"anyOf": [*schemas, NULL]}


def numbers_up_to(maximum):
    """The integers from 1 to `maximum`, as the alternatives of a pattern."""
    digits = str(maximum)
    forms = [digits, f"[1-9][0-9]{{0,{len(digits) - 2}}}"]
    for index, digit in enumerate(digits):
        first = 1 if index == 0 else 0
        # The same beginning, a smaller digit, then any digits.
        if int(digit) > first:
            forms.append(f"{digits[:index]}[{first}-{int(digit) - 1}][0-9]{{{len(digits) - index - 1}}}")
    return "|".join(forms)
