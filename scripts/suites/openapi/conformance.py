"""Sends real calls for every operation, and validates each response against the documents:
conformance.py V1_DOCUMENT GRAPH_DOCUMENT

SUITE_ADDRESS is the service. SUITE_PHONE, SUITE_KEY and SUITE_TOKEN are credentials of an account with manual
review; SUITE_WA_ACCOUNT, SUITE_WA_PHONE, SUITE_WA_KEY and SUITE_WA_TOKEN those of an account with the rulebook
`whatsapp`; SUITE_EM_PHONE, SUITE_EM_KEY and SUITE_EM_TOKEN those of an emulator account. SUITE_UP_PHONE, SUITE_UP_KEY
and SUITE_UP_TOKEN are those of an account with the rulebook `whatsapp` that the suite connects to the faithful emulator
account of SUITE_PROVIDER_ACCOUNT, SUITE_PROVIDER_PHONE, SUITE_PROVIDER_KEY and SUITE_PROVIDER_TOKEN, with the commands of
SUITE_GALLEY on SUITE_STORE. SUITE_HOOK_TOKEN and SUITE_APP_SECRET are those of the webhooks of another connected
account. The service must allow private addresses of webhooks and providers."""

import collections
import hashlib
import hmac
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import time

import httpx
from document import Document

ADDRESS = os.environ["SUITE_ADDRESS"]
RUN = f"{time.time_ns() // 1_000_000:x}"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))

v1, graph = (Document(pathlib.Path(it).read_text()) for it in sys.argv[1:3])
statuses = collections.defaultdict(collections.Counter)
failures = []


class Account:
    def __init__(self, prefix):
        self.phone, self.key, self.token = (os.environ[f"{prefix}_{it}"] for it in ("PHONE", "KEY", "TOKEN"))

    def call(self, document, operation_id, expected, *, path=None, query=None, headers=None, body=None, content=None, token=None):
        method, route, _ = document.operations[operation_id]
        values = {"phone_number_id": self.phone, "key": self.key, "version": "v23.0", **(path or {})}
        for name, value in values.items():
            route = route.replace(f"{{{name}}}", str(value))
        sent = {"authorization": f"Bearer {self.token if token is None else token}", **(headers or {})}
        arguments = {"json": body} if body is not None else {"content": content} if content is not None else {}
        # The service may close a connection whose body it did not read, so each call has its own.
        answer = httpx.request(method.upper(), ADDRESS + route, params=query, headers=sent, timeout=40, trust_env=False, **arguments)
        statuses[operation_id][answer.status_code] += 1
        problems = [] if answer.status_code == expected else [f"expected {expected}"]
        problems += document.check_response(operation_id, answer.status_code, answer.headers, answer.content)
        for problem in problems:
            failures.append(f"{operation_id} {answer.status_code}: {problem}")
            print(f"  failed: {failures[-1]}\n    {answer.text[:400]}", file=sys.stderr)
        return answer

    def v1(self, operation_id, expected, id=None, **rest):
        path = {"id": id} if id else {}
        return self.call(v1, operation_id, expected, path={**path, **rest.pop("path", {})}, **rest)

    def graph(self, operation_id, expected, **rest):
        return self.call(graph, operation_id, expected, **rest)


def documents(document, operation_id):
    """The request examples of an operation, by name."""
    examples = document.operations[operation_id][2]["requestBody"]["content"]["application/json"]["examples"]
    return {name: document.resolve(it)["value"] for name, it in examples.items()}


def templates(account):
    examples = documents(v1, "createTemplate")
    values = documents(v1, "renderTemplate")
    ids = {}
    for name, document in examples.items():
        document = {**document, "name": f"{document['name']}_{RUN}"}
        ids[name] = account.v1("createTemplate", 201, body=document, headers={"idempotency-key": f"{name}-{RUN}"}).json()["id"]
        account.v1("createTemplate", 201, body=document, headers={"idempotency-key": f"{name}-{RUN}"})
        account.v1("createTemplate", 409, body=document)
        if name in values:
            account.v1("renderTemplate", 409, ids[name], body=values[name])
        account.v1("reviewTemplate", 200, ids[name], body={"decision": "approve"})
        if name in values:
            account.v1("renderTemplate", 200, ids[name], body=values[name])
    account.v1("createTemplate", 422, body={}, headers={"idempotency-key": f"orderShipped-{RUN}"})
    account.v1("createTemplate", 422, body={"name": " ", "components": [{"type": "BODY", "text": "{{2}}"}, {"type": "X"}]})
    account.v1("createTemplate", 400, content=b"{", headers={"content-type": "application/json"})
    account.v1("createTemplate", 415, content=b"a=b", headers={"content-type": "application/x-www-form-urlencoded"})
    account.v1("createTemplate", 413, content=b" " * 300_000, headers={"content-type": "application/json"})
    account.v1("createTemplate", 401, body={}, token="unknown")
    account.v1("createTemplate", 401, body={}, path={"key": "unknown"})
    account.v1("createTemplate", 404, body={}, path={"phone_number_id": "no-such-phone"})
    for document in documents(v1, "validateTemplate").values():
        account.v1("validateTemplate", 200, body=document)
        account.v1("validateTemplate", 200, body=document, query={"template": ids["orderShipped"]})
    account.v1("validateTemplate", 200, body=[])
    account.v1("validateTemplate", 404, body={}, query={"template": "1"})
    for request in documents(v1, "proofDocument").values():
        account.v1("proofDocument", 200, body=request)
    for document in examples.values():
        account.v1("proofDocument", 200, body={"document": document})
    account.v1("proofDocument", 422, body={})

    id = ids["orderShipped"]
    for name in ids:
        account.v1("showProof", 200, ids[name])
    account.v1("showProof", 404, id, query={"version": 99})
    read = account.v1("showTemplate", 200, id)
    tag = read.headers["etag"]
    account.v1("showTemplate", 304, id, headers={"if-none-match": tag})
    account.v1("showTemplate", 404, "1")
    account.v1("showTemplate", 404, id, query={"version": 99})
    account.v1("showTemplate", 400, id, query={"colour": "red"})
    account.v1("editTemplate", 412, id, body={"category": "UTILITY"}, headers={"if-match": '"99"'})
    for document in documents(v1, "editTemplate").values():
        tag = account.v1("editTemplate", 200, id, body=document, headers={"if-match": tag}).headers["etag"]
    account.v1("editTemplate", 200, id, body=read.json(), headers={"if-match": tag})
    account.v1("editTemplate", 200, id, body={"category": "MARKETING"})
    account.v1("editTemplate", 422, id, body={"components": []})
    account.v1("editTemplate", 404, id, body={"restore_version": 99})
    account.v1("editTemplate", 409, ids["openingHours"], body={"category": "MARKETING"})
    for decision in ({"decision": "reject", "reason": "Say until when."}, {"decision": "pause"}, {"decision": "resume"}):
        account.v1("reviewTemplate", 200, id, body=decision)
    account.v1("reviewTemplate", 409, id, body={"decision": "approve"})
    account.v1("reviewTemplate", 422, id, body={"decision": "maybe"})
    account.v1("reviewTemplate", 412, id, body={"decision": "pause"}, headers={"if-match": '"99"'})
    account.v1("renderTemplate", 422, id, body={"body": ["Ada"], "buttons": {"0": "x"}, "colour": ["red"]})
    for query in ({}, {"limit": 1}, {"limit": 2, "status": "APPROVED", "category": "UTILITY"}, {"q": "order ship"}, {"name": "none"}, {"order": "oldest", "awaiting_review": "true", "limit": 1}, {"language": ["pt_BR", "de_DE"]}, {"phone_number_id": account.phone, "updated_after": "2026-01-01T00:00:00Z"}):
        page = account.v1("listTemplates", 200, query=query).json()
        if after := page["paging"]["cursors"].get("after"):
            account.v1("listTemplates", 200, query={**query, "after": after})
    account.v1("listTemplates", 400, query={"status": "GOOD"})
    page = account.v1("listVersions", 200, id, query={"limit": 2}).json()
    account.v1("listVersions", 200, id, query={"limit": 2, "after": page["paging"]["cursors"]["after"]})
    account.v1("deleteTemplate", 412, id, headers={"if-match": '"99"'})
    account.v1("deleteTemplate", 204, id)
    account.v1("deleteTemplate", 404, id)
    account.v1("reviewTemplate", 200, ids["visitReminder"], body={"decision": "disable"})
    account.v1("editTemplate", 409, ids["visitReminder"], body={"category": "UTILITY"})


def webhooks(account):
    for webhook in account.v1("listWebhooks", 200).json()["data"]:
        account.v1("deleteWebhook", 204, webhook["id"])
    created = account.v1("createWebhook", 201, body={"url": "http://127.0.0.1:9/hooks"}).json()
    id = created["id"]
    account.v1("createWebhook", 201, body={"url": "http://127.0.0.1:9/decisions", "events": ["template.approved", "template.rejected"]})
    account.v1("createWebhook", 422, body={"url": "ftp://x", "events": ["template.aproved"]})
    account.v1("listWebhooks", 200)
    account.v1("showWebhook", 200, id)
    account.v1("showWebhook", 404, "9007199254740991")
    for document in ({"url": "http://127.0.0.1:9/v2"}, {"events": []}, {"disabled": True}, {"disabled": False}):
        account.v1("editWebhook", 200, id, body=document)
    account.v1("editWebhook", 422, id, body={"url": 1})
    account.v1("rotateSecret", 200, id)
    account.v1("rotateSecret", 409, id)
    account.v1("rotateSecret", 200, id, body={"force": True})
    account.v1("rotateSecret", 422, id, body={"force": "yes"})
    first = account.v1("listEvents", 200, query={"limit": 1}).json()["data"][0]["seq"]
    account.v1("replayEvents", 202, id, body={"event": first})
    account.v1("replayEvents", 202, id, body={"since": "2026-01-01T00:00:00Z"})
    account.v1("replayEvents", 404, id, body={"event": 999999})
    account.v1("replayEvents", 422, id, body={})
    deadline = time.monotonic() + 5  # deliveries are queued asynchronously
    while not (page := account.v1("listDeliveries", 200, id, query={"limit": 2}).json())["data"] and time.monotonic() < deadline:
        time.sleep(0.2)
    if after := page["paging"]["cursors"].get("after"):
        account.v1("listDeliveries", 200, id, query={"limit": 2, "after": after, "status": "waiting"})
    account.v1("listDeliveries", 400, id, query={"status": "lost"})
    for _ in range(18):
        account.v1("createWebhook", 201, body={"url": "http://127.0.0.1:9/hooks"})
    account.v1("createWebhook", 409, body={"url": "http://127.0.0.1:9/hooks"})
    account.v1("deleteWebhook", 204, id)
    account.v1("deleteWebhook", 404, id)
    for webhook in account.v1("listWebhooks", 200).json()["data"]:
        account.v1("deleteWebhook", 204, webhook["id"])


def events(account):
    after, count = "0", 0
    while True:
        page = account.v1("listEvents", 200, query={"after": after, "limit": 100}).json()
        after, count = page["paging"]["cursors"]["after"], count + len(page["data"])
        if "next" not in page["paging"]:
            break
    if int(after) != count:
        failures.append(f"listEvents: {count} events, but the last is {after}")
    account.v1("listEvents", 200, query={"after": "latest"})
    account.v1("listEvents", 200, query={"after": after, "wait": 1})
    account.v1("listEvents", 400, query={"after": "999999999"})


def tokens(account):
    created = [account.v1("createToken", 201, body=body).json() for body in documents(v1, "createToken").values()]
    # The new token has only the scope `credentials`.
    account.v1("createToken", 403, body={"name": "more", "scopes": ["write"]}, token=created[0]["token"])
    account.v1("createToken", 422, body={"name": " ", "scopes": [], "expires_in": 0})
    account.v1("listTokens", 200)
    account.v1("listTokens", 403, token=account.v1("createToken", 201, body={"name": "reader", "scopes": ["read"]}).json()["token"])
    for token in created:
        account.v1("revokeToken", 204, token["id"])
        account.v1("revokeToken", 204, token["id"])
    account.v1("revokeToken", 404, "999999999")
    page = account.v1("listAuditEntries", 200, query={"limit": 2}).json()
    account.v1("listAuditEntries", 200, query={"limit": 2, "after": page["paging"]["cursors"]["after"]})
    account.v1("listAuditEntries", 400, query={"after": "x"})


def pages(account):
    account.v1("showHealth", 200)
    account.v1("showReadiness", 200)
    account.v1("showMetrics", 200)
    for operation_id, path in (
        ("showOpenApiDocument", {}),
        ("showGraphDocument", {}),
        ("showTemplateSchema", {"rulebook": "v1"}),
        ("showTemplateSchema", {"rulebook": "whatsapp"}),
    ):
        tag = account.v1(operation_id, 200, path=path).headers["etag"]
        account.v1(operation_id, 304, path=path, headers={"if-none-match": tag})
    account.v1("showTemplateSchema", 404, path={"rulebook": "none"})
    for accept in ("text/html", "application/json"):
        account.v1("showIndex", 200, headers={"accept": accept})
        account.v1("listProblems", 200, headers={"accept": accept})
        account.v1("showProblem", 200, path={"slug": "invalid-template"}, headers={"accept": accept})
    page = account.v1("showDocs", 200).text
    for file in sorted(set(re.findall(r"/docs/([\w.-]+)", page))):
        account.v1("showDocsFile", 200, path={"file": file})
    account.v1("showDocsFile", 404, path={"file": "none.css"})
    slugs = v1.root["components"]["parameters"]["Slug"]["schema"]["enum"]
    for slug in slugs:
        account.v1("showProblem", 200, path={"slug": slug})
    account.v1("showProblem", 404, path={"slug": "none"})


CARD = [
    {"type": "HEADER", "format": "IMAGE", "example": {"header_handle": ["4::aW1hZ2U="]}},
    {"type": "BODY", "text": "Have a look at our {{1}} today.", "example": {"body_text": [["lamp"]]}},
    {"type": "BUTTONS", "buttons": [{"type": "URL", "text": "Buy", "url": "https://shop.example/{{1}}", "example": ["lamp"]}]},
]
BODY = {"type": "BODY", "text": "New in the shop this week"}


def buttons(*kinds):
    return {"type": "BUTTONS", "buttons": list(kinds)}


# Templates with each kind of component and button: category, components, values for rendering.
WHATSAPP = {
    "location": ("UTILITY", [{"type": "HEADER", "format": "LOCATION"}, BODY], {"header": {"latitude": 52.52, "longitude": 13.4, "name": "The shop", "address": "5 High Street"}}),
    "cards": ("MARKETING", [BODY, {"type": "CAROUSEL", "cards": [{"components": CARD}, {"components": CARD}]}], {"cards": [{"header": {"id": "1"}, "body": ["9 €"], "buttons": {"0": "lamp"}}] * 2}),
    "offer": (
        "MARKETING",
        [CARD[0], {"type": "LIMITED_TIME_OFFER", "limited_time_offer": {"text": "Weekend deal", "has_expiration": True}}, BODY, buttons({"type": "COPY_CODE", "example": "WEEKEND"}, {"type": "URL", "text": "Shop", "url": "https://shop.example/"})],
        {"header": {"link": "https://shop.example/a.jpg"}, "offer": "2027-11-15T22:59:59Z", "buttons": {"0": "WEEKEND"}},
    ),
    "call": ("UTILITY", [BODY, buttons({"type": "VOICE_CALL", "text": "Call"})], {"buttons": {"0": 60}}),
    "call2": ("UTILITY", [BODY, buttons({"type": "VOICE_CALL", "text": "Call"})], {"buttons": {"0": {"ttl_minutes": 60, "payload": "4711"}}}),
    "permission": ("UTILITY", [BODY, {"type": "CALL_PERMISSION_REQUEST"}], {}),
    "flow": ("UTILITY", [BODY, buttons({"type": "FLOW", "text": "Begin", "flow_id": "4711", "flow_action": "navigate", "navigate_screen": "START"})], {"buttons": {"0": {"flow_token": "t", "flow_action_data": {"a": 1}}}}),
    "catalog": ("MARKETING", [BODY, buttons({"type": "CATALOG", "text": "View catalog"})], {"buttons": {"0": {"thumbnail_product_retailer_id": "lamp"}}}),
    "mpm": ("MARKETING", [{"type": "HEADER", "format": "TEXT", "text": "New"}, BODY, buttons({"type": "MPM", "text": "View items"})], {"buttons": {"0": {"thumbnail_product_retailer_id": "lamp", "sections": [{"title": "New", "product_items": [{"product_retailer_id": "lamp"}]}]}}}),
    "spm": ("MARKETING", [{"type": "HEADER", "format": "PRODUCT"}, BODY, buttons({"type": "SPM", "text": "View"})], {"header": {"product_retailer_id": "lamp", "catalog_id": "4711"}}),
    "contact": ("UTILITY", [BODY, buttons({"type": "REQUEST_CONTACT_INFO", "text": "Share Contact Info"})], {}),
    "order": ("UTILITY", [BODY, buttons({"type": "ORDER_DETAILS", "text": "Review and pay"})], {"buttons": {"0": {"reference_id": "4711"}}}),
    "onetap": ("AUTHENTICATION", [{"type": "BODY", "add_security_recommendation": True}, {"type": "FOOTER", "code_expiration_minutes": 5}, buttons({"type": "OTP", "otp_type": "ONE_TAP", "supported_apps": [{"package_name": "com.example.shop", "signature_hash": "K8a/AINcGX7"}]})], {"body": ["123456"]}),
}


def whatsapp(account):
    me = {"account_id": os.environ["SUITE_WA_ACCOUNT"]}
    values = documents(v1, "renderTemplate")
    for name, document in documents(graph, "graphCreateTemplate").items():
        document = {**document, "name": f"{document['name']}_{RUN}"}
        id = account.graph("graphCreateTemplate", 200, path=me, body=document).json()["id"]
        account.graph("graphShowTemplate", 200, path={**me, "id": id})
        account.graph("graphShowNode", 200, path={"node": id})
        if name in values and name not in documents(v1, "createTemplate"):
            account.v1("renderTemplate", 200, id, body=values[name])
    for name, (category, components, render) in WHATSAPP.items():
        document = {"name": f"{name}_{RUN}", "language": "en_US", "category": category, "components": components}
        if name == "order":
            document["sub_category"] = "ORDER_DETAILS"
        if name == "offer":
            document |= {
                "message_send_ttl_seconds": 86400,
                "cta_url_link_tracking_opted_out": True,
                "degrees_of_freedom_spec": {"creative_features_spec": [{"key": "image_touchups", "value": {"enroll_status": "OPT_IN"}}]},
            }
        created = account.graph("graphCreateTemplate", 200, path=me, body=document).json()
        if id := created.get("id"):
            account.v1("showTemplate", 200, id)
            account.v1("renderTemplate", 200, id, body=render)
            account.v1("showProof", 200, id)
    account.graph("graphCreateTemplate", 400, path=me, body={"name": "Order shipped"})
    account.graph("graphCreateTemplate", 401, path=me, body={}, token="unknown")
    account.v1("createTemplate", 422, body={})
    account.v1("listTemplates", 200, query={"limit": 100})
    for query in ({"limit": 2}, {"summary": "total_count"}, {"status": "approved", "content": "shop"}, {"name": "none"}):
        page = account.graph("graphListTemplates", 200, path=me, query=query).json()
    page = account.graph("graphListTemplates", 200, path=me, query={"limit": 1}).json()
    after = page["paging"]["cursors"]["after"]
    account.graph("graphListTemplates", 200, path=me, query={"limit": 1, "after": after})
    fields = "name,rejected_reason,quality_score,cta_url_link_tracking_opted_out,degrees_of_freedom_spec,display_format,sub_category"
    account.graph("graphListTemplates", 200, path=me, query={"fields": fields, "limit": 50})
    account.graph("graphShowNode", 200, path={"node": me["account_id"]})
    account.graph("graphShowNode", 400, path={"node": "1"})
    order = account.graph("graphListTemplates", 200, path=me, query={"name": f"order_shipped_{RUN}"}).json()["data"][0]["id"]
    account.graph("graphEditTemplate", 200, path={"node": order}, body=documents(graph, "graphEditTemplate")["components"])
    account.v1("reviewTemplate", 200, order, body={"decision": "pause"})
    account.graph("graphUnpauseTemplate", 200, path={"template_id": order})
    account.graph("graphUnpauseTemplate", 400, path={"template_id": order})
    account.graph("graphArchiveTemplates", 200, path=me, body={"hsm_ids": [order, "1"]})
    account.graph("graphUnarchiveTemplates", 200, path=me, body={"hsm_ids": [order]})
    account.graph("graphArchiveTemplates", 400, path=me, body={})
    preview = {"category": "AUTHENTICATION", "languages": "en_US,es_ES", "add_security_recommendation": True}
    account.graph("graphPreviewTemplates", 200, path=me, query=preview)
    upsert = documents(graph, "graphUpsertTemplates")["code"]
    account.graph("graphUpsertTemplates", 200, path=me, body={**upsert, "name": f"upsert_{RUN}"})
    account.graph("graphDeleteTemplates", 200, path=me, query={"name": f"upsert_{RUN}"})

    begin = {"path": {"app_id": "1"}, "query": {"file_length": len(PNG), "file_type": "image/png", "file_name": "a.png"}}
    upload = account.graph("graphBeginUpload", 200, **begin).json()["id"].removeprefix("upload:")
    account.graph("graphShowUpload", 200, path={"upload": upload})
    octets = {"content-type": "application/octet-stream"}
    account.graph("graphSendUpload", 200, path={"upload": upload}, content=PNG[:100], headers={**octets, "file_offset": "0"})
    handle = account.graph("graphSendUpload", 200, path={"upload": upload}, content=PNG[100:], headers={**octets, "file_offset": "100"}).json()["h"]
    header = {"type": "HEADER", "format": "IMAGE", "example": {"header_handle": [handle]}}
    document = {"name": f"sample_{RUN}", "language": "en_US", "category": "UTILITY", "components": [header, BODY]}
    id = account.graph("graphCreateTemplate", 200, path=me, body=document).json()["id"]
    url = account.graph("graphShowNode", 200, path={"node": id}).json()["components"][0]["example"]["header_handle"][0]
    name = {"name": url.rsplit("/", 1)[1]}
    tag = account.graph("showMedia", 200, path=name).headers["etag"]
    account.graph("showMedia", 206, path=name, headers={"range": "bytes=0-9"})
    account.graph("showMedia", 304, path=name, headers={"if-none-match": tag})
    account.graph("showMedia", 412, path=name, headers={"if-match": '"x"'})
    account.graph("showMedia", 416, path=name, headers={"range": "bytes=9999-"})
    account.graph("showMedia", 404, path={"name": "A" * 32})
    upload = account.graph("graphBeginUpload", 200, **begin).json()["id"].removeprefix("upload:")
    account.graph("graphCancelUpload", 200, path={"upload": upload})
    account.graph("graphShowUpload", 400, path={"upload": upload})
    account.graph("graphListSubscriptions", 200, path=me)
    account.graph("graphSubscribe", 200, path=me)
    account.graph("graphSubscribe", 400, path=me, body={"override_callback_uri": "ftp://x"})
    account.graph("graphUnsubscribe", 200, path=me)


def emulator(account, other):
    other.v1("showClock", 404)
    account.v1("showReviewRules", 200)
    for document in documents(v1, "replaceReviewRules").values():
        account.v1("replaceReviewRules", 200, body=document)
    account.v1("replaceReviewRules", 422, body={"rules": [{"outcome": "maybe"}]})
    account.v1("showClock", 200)
    for document in documents(v1, "moveClock").values():
        account.v1("moveClock", 200, body=document)
    account.v1("moveClock", 409, body={"set": "2026-01-01T00:00:00Z"})
    account.v1("moveClock", 422, body={})
    for document in documents(v1, "createFault").values():
        account.v1("createFault", 201, body=document)
    account.v1("createFault", 422, body={"call": "list"})
    account.v1("listFaults", 200)
    account.v1("deleteFault", 204, path={"id": "1"})
    account.v1("deleteFault", 404, path={"id": "1"})
    account.v1("deleteFaults", 204)
    account.v1("replaceReviewRules", 200, body={"rules": []})
    body = {"type": "BODY", "text": "Hi {{1}}, your order is on its way.", "example": {"body_text": [["Ada"]]}}
    document = {"name": "order_shipped", "language": "en_US", "category": "UTILITY", "components": [body]}
    id = account.v1("createTemplate", 201, body=document).json()["id"]
    for message in documents(graph, "graphSendMessage").values():
        account.graph("graphSendMessage", 200, body=message)
    account.graph("graphSendMessage", 400, body={"messaging_product": "whatsapp", "to": "15550109999", "type": "text"})
    period = {"template_ids": id, "start": 1790000000, "end": 1790604800}
    account.graph("graphCompareTemplates", 200, path={"template_id": id}, query=period)
    account.v1("listMessages", 200, query={"limit": 2})
    account.v1("listMessages", 400, query={"after": "x"})


def galley_upstream(*arguments, **rest):
    command = [os.environ["SUITE_GALLEY"], "upstream", *arguments, "--store", os.environ["SUITE_STORE"]]
    done = subprocess.run(command, capture_output=True, text=True, check=False, **rest)
    if done.returncode:
        failures.append(f"galley upstream {arguments[0]}: {done.stderr.strip()}")
        print(f"  failed: {failures[-1]}", file=sys.stderr)


def until(account, id, state):
    """Reads a template until it has this state at the provider."""
    deadline = time.monotonic() + 30
    while (at := account.v1("showUpstreamTemplate", 200, id).json()["upstream"])["state"] != state:
        if time.monotonic() > deadline:
            failures.append(f"showUpstreamTemplate: {id} is {at}, not {state}")
            return
        time.sleep(0.2)


def connected(account, provider):
    """Connects an account to a provider, which is an emulator account, and decides about what differs."""

    def document(name, text):
        return {"name": f"{name}_{RUN}", "language": "en_US", "category": "UTILITY", "components": [{"type": "BODY", "text": text}]}

    local = account.v1("createTemplate", 201, body=document("local", "Your order is on its way to you.")).json()["id"]
    account.v1("showConnection", 404)
    account.v1("listProvidedTemplates", 404)
    account.v1("submitTemplate", 404, local)
    address = ["--base-url", f"{ADDRESS}/v23.0", "--waba", os.environ["SUITE_PROVIDER_ACCOUNT"]]
    galley_upstream("connect", "connected", *address, "--token-file", "-", input=provider.token)
    time.sleep(3)  # the service learns of it within two seconds
    account.v1("showConnection", 200)
    account.v1("showTemplate", 200, local)
    account.v1("submitTemplate", 412, local, headers={"if-match": '"99"'})
    account.v1("submitTemplate", 202, local)
    account.v1("submitTemplate", 409, local)
    account.v1("pushTemplate", 404, "1")
    until(account, local, "synced")

    there = {"path": {"account_id": os.environ["SUITE_PROVIDER_ACCOUNT"]}}
    remote = provider.graph("graphCreateTemplate", 200, body=document("drifted", "We have received your order."), **there).json()["id"]
    provider.v1("moveClock", 200, body={"advance": "1d"})
    galley_upstream("import", "connected", "--yes")
    drifted = account.v1("listTemplates", 200, query={"name": f"drifted_{RUN}"}).json()["data"][0]["id"]
    account.v1("acceptTemplate", 409, drifted)
    for number, action, status in ((1, "acceptTemplate", 200), (2, "pushTemplate", 202)):
        edit = {"components": [{"type": "BODY", "text": f"We have received your order number {number}."}]}
        provider.graph("graphEditTemplate", 200, path={"node": remote}, body=edit)
        provider.v1("moveClock", 200, body={"advance": "1d"})
        galley_upstream("import", "connected", "--yes")
        until(account, drifted, "drifted")
        account.v1("listTemplates", 200, query={"upstream": "drifted"})
        account.v1(action, status, drifted)
    account.v1("listTemplates", 400, query={"upstream": "lost"})
    provided = account.v1("listProvidedTemplates", 200, query={"limit": 1}).json()["data"]
    account.v1("listProvidedTemplates", 200, query={"after": provided[0]["id"], "source": "AUTO_GENERATED"})
    account.v1("listProvidedTemplates", 400, query={"limit": 0})

    provider.v1("createFault", 201, body={"call": "create", "times": 1, "kind": "error", "code": 100})
    refused = account.v1("createTemplate", 201, body=document("refused", "Thank you for your order.")).json()["id"]
    until(account, refused, "refused")
    account.v1("retryOperation", 202, refused)
    until(account, refused, "synced")
    account.v1("retryOperation", 409, refused)
    page = account.v1("listOperations", 200, query={"limit": 1}).json()
    account.v1("listOperations", 200, query={"before": page["data"][0]["id"]})
    account.v1("listOperations", 400, query={"before": "x"})


def hooks(account):
    token = os.environ["SUITE_HOOK_TOKEN"]
    path = {"hook_token": token}
    query = {"hub.mode": "subscribe", "hub.verify_token": token, "hub.challenge": "1158201444"}
    account.graph("confirmProviderHook", 200, path=path, query=query)
    account.graph("confirmProviderHook", 403, path=path, query={**query, "hub.verify_token": "x"})
    account.graph("confirmProviderHook", 404, path={"hook_token": "x"}, query=query)
    secret = os.environ["SUITE_APP_SECRET"].encode()
    for document in documents(graph, "receiveProviderHook").values():
        body = json.dumps(document).encode()
        signature = {"x-hub-signature-256": "sha256=" + hmac.new(secret, body, hashlib.sha256).hexdigest()}
        account.graph("receiveProviderHook", 200, path=path, content=body, headers=signature)
        account.graph("receiveProviderHook", 401, path=path, content=body)
        account.graph("receiveProviderHook", 404, path={"hook_token": "x"}, content=body, headers=signature)
    signature = {"x-hub-signature-256": "sha256=" + hmac.new(secret, b"{", hashlib.sha256).hexdigest()}
    account.graph("receiveProviderHook", 400, path=path, content=b"{", headers=signature)


def main():
    account = Account("SUITE")
    for step in (templates, webhooks, events, tokens, pages):
        step(account)
    if "SUITE_WA_ACCOUNT" in os.environ:
        whatsapp(Account("SUITE_WA"))
    if "SUITE_EM_KEY" in os.environ:
        emulator(Account("SUITE_EM"), account)
    if "SUITE_UP_KEY" in os.environ:
        connected(Account("SUITE_UP"), Account("SUITE_PROVIDER"))
    if "SUITE_HOOK_TOKEN" in os.environ:
        hooks(account)
    for operation_id in itertools.chain(v1.operations, graph.operations):
        if not any(200 <= it < 300 for it in statuses[operation_id]):
            failures.append(f"{operation_id}: no successful response")
            print(f"  failed: {failures[-1]}", file=sys.stderr)
    calls = sum(sum(it.values()) for it in statuses.values())
    for operation_id, counts in statuses.items():
        print(f"  {operation_id:22} {json.dumps({str(k): v for k, v in sorted(counts.items())})}")
    print(f"conformance: {calls} responses of {len(statuses)} operations, {len(failures)} failures")
    sys.exit(bool(failures))


main()
