"""A round with facebook_business, Meta's own SDK for Python. It sends forms, with the token in the query,
and follows cursors itself."""

from checks import (
    ACCOUNT,
    ADDRESS,
    PNG,
    TOKEN,
    check,
    check_equal,
    differences,
    expect_error,
    finish,
)
from facebook_business.adobjects.whatsappbusinessaccount import WhatsAppBusinessAccount
from facebook_business.api import FacebookAdsApi
from facebook_business.exceptions import FacebookRequestError
from facebook_business.session import FacebookSession

FacebookSession.GRAPH = ADDRESS
api = FacebookAdsApi.init(access_token=TOKEN, crash_log=False)
account = WhatsAppBusinessAccount(ACCOUNT)

BODY = {"type": "BODY", "text": "Good & bad = 100 % of it, all + more"}
LINK = {"type": "URL", "text": "Shop", "url": "https://shop.example/?a=b&c=d"}


def call(method, *path, **params):
    return api.call(method, path, params=params).json()


def upload():
    """Uploads a sample in one request, with the session of the SDK."""
    params = {"file_name": "a b.png", "file_length": len(PNG), "file_type": "image/png"}
    upload_id = call("POST", "17", "uploads", **params)["id"]
    url = f"{ADDRESS}/{api.API_VERSION}/{upload_id}"
    session = api._session.requests
    sent = session.post(url, data=PNG, headers={"file_offset": "0"}, params={"access_token": TOKEN})
    return sent.json()["h"]


def kinds():
    header = {"type": "HEADER", "format": "IMAGE", "example": {"header_handle": [upload()]}}
    code = {"type": "BUTTONS", "buttons": [{"type": "OTP", "otp_type": "COPY_CODE"}]}
    card = {"components": [header, {"type": "BUTTONS", "buttons": [LINK]}]}
    named = [{"param_name": "name", "example": "Ada"}]
    yield "plain", {"components": [BODY], "allow_category_change": True}
    yield (
        "positional",
        {
            "components": [
                {
                    "type": "BODY",
                    "text": "Hello {{1}}, your order {{2}} has come and waits.",
                    "example": {"body_text": [["Ada & Bob", "100%"]]},
                }
            ],
            "category": "UTILITY",
            "parameter_format": "POSITIONAL",
        },
    )
    yield (
        "named",
        {
            "components": [
                {
                    "type": "BODY",
                    "text": "Hello {{name}}, we are glad that you are here.",
                    "example": {"body_text_named_params": named},
                }
            ],
            "parameter_format": "NAMED",
        },
    )
    yield "image", {"components": [header, BODY, {"type": "BUTTONS", "buttons": [LINK]}]}
    yield "carousel", {"components": [BODY, {"type": "CAROUSEL", "cards": [card, card]}]}
    yield (
        "code",
        {
            "components": [{"type": "BODY", "add_security_recommendation": True}, code],
            "category": "AUTHENTICATION",
            "message_send_ttl_seconds": 60,
        },
    )
    # A numeric name in a form is still a string.
    yield "2026", {"components": [BODY], "cta_url_link_tracking_opted_out": True}


def create(name, language="en_US", **more):
    params = {"name": name, "language": language, "category": "MARKETING", **more}
    return params, account.create_message_template(params=params)


def names(**params):
    found = account.get_message_templates(fields=["name", "status"], params=params)
    return sorted(it["name"] for it in found)


ids_by_name = {}
for name, more in kinds():
    params, created = create(name, **more)
    ids_by_name[name] = created["id"]
    check_equal(
        f"{name}: response",
        (created["status"], created["category"]),
        ("APPROVED", params["category"]),
    )
    fields = ",".join(params)
    read = call("GET", created["id"], fields=fields)
    params.pop("allow_category_change", None)
    check_equal(f"{name}: the template is read back as sent", differences(params, read), [])
ids_by_name["german"] = create("plain", "de", components=[BODY])[1]["id"]

check_equal("the account is read", account.api_get(fields=["id", "name"])["name"], "suite")
all_names = sorted([*ids_by_name, "plain"])
all_names.remove("german")
check_equal("all templates are listed, three per page", names(limit=3), all_names)
check_equal(
    "filters can be lists",
    names(limit=1, category=["UTILITY", "AUTHENTICATION"]),
    ["code", "positional"],
)
check_equal(
    "status and language filters work",
    names(status=["APPROVED", "PAUSED"], language=["de"]),
    ["plain"],
)
check_equal("a status without templates gives an empty list", names(status=["REJECTED"]), [])
check_equal("a name filter works", names(name="plain"), ["plain", "plain"])
cursor = account.get_message_templates(fields=["name"], params={"limit": 2, "summary": True})
check_equal("the summary contains the total", cursor.total(), len(all_names))
check_equal("the first page has two templates", len(cursor), 2)

text = {"type": "BODY", "text": "Another text + more"}
edited = call("POST", ids_by_name["image"], components=[text])
check_equal("an edit succeeds", (edited["success"], edited["id"]), (True, ids_by_name["image"]))
check_equal(
    "the edit is read back",
    call("GET", ids_by_name["image"], fields="components")["components"],
    [text],
)

codes = [
    {"type": "BODY", "add_security_recommendation": True},
    {"type": "BUTTONS", "buttons": [{"type": "OTP", "otp_type": "COPY_CODE"}]},
]
params = {
    "name": "upserted",
    "languages": ["en_US", "es"],
    "category": "AUTHENTICATION",
    "components": codes,
}
account.create_upsert_message_template(params=params)
check_equal("an upsert creates both languages", names(name="upserted"), ["upserted", "upserted"])

error = expect_error(
    "an invalid name is rejected",
    FacebookRequestError,
    lambda: create("Bad Name", components=[BODY]),
)
if error:
    codes = (error.http_status(), error.api_error_code(), error.api_error_subcode())
    check_equal("the error codes match", codes, (400, 100, 2388046))
    check_equal(
        "the error type matches",
        (error.api_error_type(), error.api_transient_error()),
        ("OAuthException", False),
    )
    user = error.body()["error"]
    check("its words", bool(user["error_user_title"] and user["error_user_msg"]), user)
error = expect_error("an unknown id is rejected", FacebookRequestError, lambda: call("GET", "17"))
if error:
    check_equal(
        "the error codes match", (error.api_error_code(), error.api_error_subcode()), (100, 33)
    )

account.delete_message_templates(params={"name": "plain", "hsm_id": ids_by_name["german"]})
check_equal("one language is deleted", names(name="plain"), ["plain"])
account.delete_message_templates(params={"name": "plain"})
check_equal("the other languages are deleted", names(name="plain"), [])
account.delete_message_templates(params={"hsm_ids": [ids_by_name["named"], ids_by_name["2026"]]})
left = [it for it in all_names if it not in ("plain", "named", "2026")]
check_equal("several templates are deleted by id", names(), sorted([*left, "upserted", "upserted"]))
plain = {"name": "plain"}
expect_error(
    "a deleted template cannot be deleted again",
    FacebookRequestError,
    lambda: account.delete_message_templates(params=plain),
)

stranger = FacebookAdsApi.init(access_token="not-a-token", crash_log=False)
other = WhatsAppBusinessAccount(ACCOUNT, api=stranger)
error = expect_error(
    "an invalid token is rejected",
    FacebookRequestError,
    lambda: list(other.get_message_templates()),
)
if error:
    check_equal("the error codes match", (error.http_status(), error.api_error_code()), (401, 190))
finish("facebook_business")
