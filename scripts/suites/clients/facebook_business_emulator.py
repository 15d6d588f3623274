"""A story with facebook_business and an emulator: review on the virtual clock, sends and their statuses.
Meta's own SDK sends forms; it has no methods for messages and webhooks."""

from checks import check, check_equal, expect_error, finish
from emulator import Emulator, Receiver
from facebook_business.adobjects.whatsappbusinessaccount import WhatsAppBusinessAccount
from facebook_business.api import FacebookAdsApi
from facebook_business.exceptions import FacebookRequestError
from facebook_business.session import FacebookSession

CUSTOMER = "16505551234"

receiver = Receiver()
emulator = Emulator(receiver=receiver)
FacebookSession.GRAPH = emulator.url
# The SDK adds an `appsecret_proof` to every call if it knows the app secret.
api = FacebookAdsApi.init(
    app_id=emulator.app_id,
    app_secret=emulator.app_secret,
    access_token=emulator.token,
    crash_log=False,
)
account = WhatsAppBusinessAccount(emulator.waba_id)


def create(name):
    body = {
        "type": "BODY",
        "text": "Hello {{1}}, your order {{2}} has left us & comes soon.",
        "example": {"body_text": [["Ada", "A-17"]]},
    }
    buttons = [
        {
            "type": "URL",
            "text": "Track",
            "url": "https://shop.example/{{1}}",
            "example": ["https://shop.example/A-17"],
        }
    ]
    params = {
        "name": name,
        "language": "en_US",
        "category": "UTILITY",
        "components": [body, {"type": "BUTTONS", "buttons": buttons}],
    }
    return account.create_message_template(params=params)


def read(template_id, *fields):
    found = api.call("GET", (template_id,), params={"fields": ",".join(fields)}).json()
    return tuple(found.get(it) for it in fields)


def send(name, *values, to=CUSTOMER, suffix="B-42"):
    texts = [{"type": "text", "text": it} for it in values]
    components = [
        {"type": "body", "parameters": texts},
        {
            "type": "button",
            "sub_type": "url",
            "index": "0",
            "parameters": [{"type": "text", "text": suffix}],
        },
    ]
    params = {
        "messaging_product": "whatsapp",
        "recipient_type": "individual",
        "to": to,
        "type": "template",
        "template": {"name": name, "language": {"code": "en_US"}, "components": components},
    }
    sent = api.call("POST", (emulator.phone_number_id, "messages"), params=params).json()
    return sent["messages"][0]["id"]


def progress(message_id, *expected):
    """Waits for the statuses of a message, and checks their order."""
    found = receiver.wait_for_statuses(message_id, len(expected))
    check_equal("the statuses come in order", [it["status"] for it in found], list(expected))
    return found


def wait_for(description, field, template, **members):
    found = receiver.wait_for_change(field, message_template_id=int(template["id"]), **members)
    check(description, found, receiver.changes())
    return found or {}


def review(name):
    created = create(name)
    check_equal("a new template is pending", created["status"], "PENDING")
    check_equal("the clock applies the approval", emulator.advance("10m")["applied"], 1)
    wait_for("the approval arrives", "message_template_status_update", created, event="APPROVED")
    check_equal("the template is approved", read(created["id"], "status"), ("APPROVED",))


def sends(name):
    error = expect_error(
        "a missing parameter is refused", FacebookRequestError, lambda: send(name, "Ada")
    )
    if error:
        found = (error.http_status(), error.api_error_code(), error.api_transient_error())
        check_equal("the error code and status", found, (400, 132000, False))
        data = error.body()["error"]["error_data"]
        check("the error names the missing parameter", "{{2}}" in data["details"], data)
        check_equal("the error names the product", data["messaging_product"], "whatsapp")

    message_id = send(name, "Ada & Bob", "100 %")
    check("the id is one of the sandbox", message_id.startswith("wamid.sandbox."), message_id)
    emulator.advance("5s")
    found = progress(message_id, "sent", "delivered", "read")
    check_equal("the statuses name the recipient", {it["recipient_id"] for it in found}, {CUSTOMER})
    kept = emulator.message(message_id)
    check_equal("the message is kept", (kept["to"], kept["status"]), (CUSTOMER, "read"))
    check_equal(
        "the body is what the recipient reads",
        kept["texts"]["body"],
        "Hello Ada & Bob, your order 100 % has left us & comes soon.",
    )
    check(
        "the link is the recipient's",
        "https://shop.example/B-42" in str(kept["texts"]["buttons"]),
        kept,
    )

    failing = send(name, "Ada", "A-17", to="+1555010131026")
    emulator.advance("5s")
    errors = progress(failing, "sent", "failed")[-1].get("errors", [{}])
    check_equal("the failure has its code", errors[0].get("code"), 131026)


def rejection():
    created = create("order_reject_promotional")
    check_equal("the rejection comes at once", created["status"], "REJECTED")
    value = wait_for(
        "the rejection arrives", "message_template_status_update", created, event="REJECTED"
    )
    check_equal("the rejection has its reason", value.get("reason"), "PROMOTIONAL")
    check_equal(
        "status and reason are read",
        read(created["id"], "status", "rejected_reason"),
        ("REJECTED", "PROMOTIONAL"),
    )


def category():
    created = create("order_to_marketing")
    field = "template_category_update"
    value = wait_for("the announcement arrives", field, created, correct_category="MARKETING")
    check_equal("the category is still the same", value.get("new_category"), "UTILITY")
    check_equal("the category is not changed yet", read(created["id"], "category"), ("UTILITY",))
    emulator.advance("24h")
    value = wait_for("the change arrives", field, created, previous_category="UTILITY")
    check_equal("the category is the announced one", value.get("new_category"), "MARKETING")
    check_equal("the category is changed", read(created["id"], "category"), ("MARKETING",))


def previews():
    params = {
        "category": "AUTHENTICATION",
        "languages": ["en_US", "de"],
        "add_security_recommendation": True,
        "code_expiration_minutes": 5,
        "button_types": ["OTP"],
    }
    found = list(account.get_message_template_previews(params=params))
    check_equal(
        "there is a preview in each language", [it["language"] for it in found], ["en_US", "de"]
    )
    check("a preview has Meta's text", "verification code" in found[0]["body"], found)


review("order_shipped_pending_10m")
sends("order_shipped_pending_10m")
rejection()
category()
previews()
check_equal("every signature is genuine", receiver.refused, [])
check_equal("the emulator stops cleanly", emulator.stop(), [])
finish("facebook_business")
