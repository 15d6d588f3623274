"""A full round with facebook_business, Meta's own SDK for Python. It sends forms, with the token in
the query, and follows cursors by itself."""

from checks import ACCOUNT, ADDRESS, PNG, TOKEN, check, equal, finish, missing, refused
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
    """A sample in one piece, by the session that the SDK has."""
    params = {"file_name": "a b.png", "file_length": len(PNG), "file_type": "image/png"}
    begun = call("POST", "17", "uploads", **params)["id"]
    place = f"{ADDRESS}/{api.API_VERSION}/{begun}"
    session = api._session.requests
    sent = session.post(
        place, data=PNG, headers={"file_offset": "0"}, params={"access_token": TOKEN}
    )
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
    # A name of digits stays a text in a form.
    yield "2026", {"components": [BODY], "cta_url_link_tracking_opted_out": True}


def create(name, language="en_US", **more):
    params = {"name": name, "language": language, "category": "MARKETING", **more}
    return params, account.create_message_template(params=params)


def names(**params):
    found = account.get_message_templates(fields=["name", "status"], params=params)
    return sorted(it["name"] for it in found)


made = {}
for name, more in kinds():
    params, created = create(name, **more)
    made[name] = created["id"]
    equal(
        f"{name}: answer",
        (created["status"], created["category"]),
        ("APPROVED", params["category"]),
    )
    fields = ",".join(params)
    read = call("GET", created["id"], fields=fields)
    params.pop("allow_category_change", None)
    equal(f"{name}: what was sent is read back", missing(params, read), [])
made["german"] = create("plain", "de", components=[BODY])[1]["id"]

equal("the account", account.api_get(fields=["id", "name"])["name"], "suite")
everything = sorted([*made, "plain"])
everything.remove("german")
equal("all of them, three by three", names(limit=3), everything)
equal(
    "filters as lists",
    names(limit=1, category=["UTILITY", "AUTHENTICATION"]),
    ["code", "positional"],
)
equal("statuses", names(status=["APPROVED", "PAUSED"], language=["de"]), ["plain"])
equal("a status that none has", names(status=["REJECTED"]), [])
equal("a name", names(name="plain"), ["plain", "plain"])
cursor = account.get_message_templates(fields=["name"], params={"limit": 2, "summary": True})
equal("a total", cursor.total(), len(everything))
equal("a page by itself", len(cursor), 2)

text = {"type": "BODY", "text": "Another text + more"}
edited = call("POST", made["image"], components=[text])
equal("an edit", (edited["success"], edited["id"]), (True, made["image"]))
equal("is read back", call("GET", made["image"], fields="components")["components"], [text])

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
equal("an upsert", names(name="upserted"), ["upserted", "upserted"])

error = refused("a bad name", FacebookRequestError, lambda: create("Bad Name", components=[BODY]))
if error:
    codes = (error.http_status(), error.api_error_code(), error.api_error_subcode())
    equal("its codes", codes, (400, 100, 2388046))
    equal(
        "its kind", (error.api_error_type(), error.api_transient_error()), ("OAuthException", False)
    )
    user = error.body()["error"]
    check("its words", bool(user["error_user_title"] and user["error_user_msg"]), user)
error = refused("an unknown id", FacebookRequestError, lambda: call("GET", "17"))
if error:
    equal("its codes", (error.api_error_code(), error.api_error_subcode()), (100, 33))

account.delete_message_templates(params={"name": "plain", "hsm_id": made["german"]})
equal("one language is deleted", names(name="plain"), ["plain"])
account.delete_message_templates(params={"name": "plain"})
equal("then the others", names(name="plain"), [])
account.delete_message_templates(params={"hsm_ids": [made["named"], made["2026"]]})
left = [it for it in everything if it not in ("plain", "named", "2026")]
equal("several by their ids", names(), sorted([*left, "upserted", "upserted"]))
gone = {"name": "plain"}
refused("what is gone", FacebookRequestError, lambda: account.delete_message_templates(params=gone))

stranger = FacebookAdsApi.init(access_token="not-a-token", crash_log=False)
other = WhatsAppBusinessAccount(ACCOUNT, api=stranger)
error = refused("a wrong token", FacebookRequestError, lambda: list(other.get_message_templates()))
if error:
    equal("its code", (error.http_status(), error.api_error_code()), (401, 190))
finish("facebook_business")
