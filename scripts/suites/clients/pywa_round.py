"""A round with pywa: creates and reads back every kind of template that it supports, then tests lists,
edits, deletions, uploads, errors, and the calls that only pywa has."""

import json
import time
from itertools import pairwise

import httpx
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
from pywa import WhatsApp
from pywa.errors import WhatsAppError
from pywa.types.flows import FlowActionType
from pywa.types.others import Pagination
from pywa.types.templates import (
    AppDeepLink,
    AuthenticationBody,
    AuthenticationFooter,
    BodyText,
    Buttons,
    CallPermissionRequestButton,
    Carousel,
    CarouselCard,
    CatalogButton,
    ContactInfoRequestButton,
    CopyCodeButton,
    CopyCodeOTPButton,
    CreativeFeaturesSpec,
    DegreesOfFreedomSpec,
    FlowButton,
    FlowButtonIcon,
    FooterText,
    HeaderDocument,
    HeaderGIF,
    HeaderImage,
    HeaderLocation,
    HeaderProduct,
    HeaderText,
    HeaderVideo,
    LibraryTemplate,
    LimitedTimeOffer,
    MPMButton,
    OneTapOTPButton,
    OTPSupportedApp,
    ParamFormat,
    PhoneNumberButton,
    QualityScoreType,
    QuickReplyButton,
    SPMButton,
    Template,
    TemplateCategory,
    TemplateLanguage,
    TemplateRejectionReason,
    TemplateStatus,
    URLButton,
    VoiceCallButton,
    ZeroTapOTPButton,
)

MARKETING, UTILITY = TemplateCategory.MARKETING, TemplateCategory.UTILITY
AUTHENTICATION = TemplateCategory.AUTHENTICATION
ENGLISH = TemplateLanguage.ENGLISH_US


class RedirectTransport(httpx.BaseTransport):
    """Redirects requests for Meta to the service and records the last response."""

    def __init__(self):
        self.inner = httpx.HTTPTransport()
        self.response = None

    def handle_request(self, request):
        if request.url.host.endswith("facebook.com"):
            url = httpx.URL(ADDRESS)
            request.url = request.url.copy_with(scheme="http", host=url.host, port=url.port)
            request.headers["host"] = f"{url.host}:{url.port}"
        response = self.inner.handle_request(request)
        response.read()
        self.response = response
        return response


transport = RedirectTransport()


def client(token=TOKEN):
    session = httpx.Client(transport=transport)
    return WhatsApp(phone_id="1555", token=token, waba_id=ACCOUNT, app_id=123, session=session)


def template(name, components, category=MARKETING, language=ENGLISH, **more):
    return Template(name=name, language=language, category=category, components=components, **more)


def buttons(*items):
    return Buttons(buttons=list(items))


def card(header, *card_buttons):
    return CarouselCard(components=[header, BodyText("One of them"), buttons(*card_buttons)])


def kinds():
    """Yields name, components and other members of each kind of template."""
    hello = BodyText("Good morning, all of you")
    apps = [OTPSupportedApp(package_name="com.example.shop", signature_hash="K8a/AINcGX7")]
    link = URLButton(text="Shop", url="https://shop.example/")
    picture = PNG, {"mime_type": "image/png"}
    film = b"\0\0\0\x18ftypmp42" + PNG, {"mime_type": "video/mp4"}
    paper = b"%PDF-1.7\n" + PNG, {"mime_type": "application/pdf"}

    def sample(header, file):
        return header(file[0], **file[1])

    yield "plain", [hello], {}
    yield (
        "positional",
        [
            HeaderText("Order {{1}}", "A-17"),
            BodyText("Hello {{1}}, your order {{2}} has come and waits for you.", "Ada", "A-17"),
            FooterText(text="The shop"),
        ],
        {"parameter_format": ParamFormat.POSITIONAL, "category": UTILITY},
    )
    yield (
        "named",
        [
            HeaderText("Hello {{who}}!", who="Ada"),
            BodyText("Order {{order}} comes on {{day}}, as we said.", order="A-17", day="Monday"),
            FooterText(text="The shop"),
            buttons(QuickReplyButton(text="Fine"), QuickReplyButton(text="Another day")),
        ],
        {"parameter_format": ParamFormat.NAMED, "category": UTILITY},
    )
    yield "image", [sample(HeaderImage, picture), hello], {}
    yield "video", [sample(HeaderVideo, film), hello], {}
    yield "gif", [sample(HeaderGIF, film), hello], {}
    yield "document", [sample(HeaderDocument, paper), hello], {"category": UTILITY}
    yield "location", [HeaderLocation(), hello], {"category": UTILITY}
    yield (
        "every_button",
        [
            hello,
            buttons(
                QuickReplyButton(text="Yes"),
                QuickReplyButton(text="No"),
                URLButton(text="Track", url="https://shop.example/{{1}}", example="A-17"),
                link,
                PhoneNumberButton(text="Call", phone_number="+15550001111"),
                CopyCodeButton(example="SAVE25"),
            ),
        ],
        {},
    )
    yield (
        "deep_link",
        [
            hello,
            buttons(
                URLButton(
                    text="Shop",
                    url="https://shop.example/",
                    app_deep_link=AppDeepLink(
                        meta_app_id=17,
                        android_deep_link="shop://deals",
                        android_fallback_playstore_url="https://shop.example/app",
                    ),
                )
            ),
        ],
        {},
    )
    yield "voice_call", [hello, buttons(VoiceCallButton(text="Call us"))], {}
    yield "call_permission", [hello, CallPermissionRequestButton()], {}
    yield "contact", [hello, buttons(ContactInfoRequestButton())], {"category": UTILITY}
    yield "catalog", [hello, buttons(CatalogButton(text="View catalog"))], {}
    yield "products", [HeaderText("Our best"), hello, buttons(MPMButton(text="View items"))], {}
    yield "product", [HeaderProduct(), hello, buttons(SPMButton(text="View"))], {}
    yield (
        "flow",
        [
            hello,
            buttons(
                FlowButton(
                    text="Sign up",
                    flow_id="123",
                    flow_action=FlowActionType.NAVIGATE,
                    navigate_screen="START",
                    icon=FlowButtonIcon.PROMOTION,
                )
            ),
        ],
        {},
    )
    yield "flow_by_name", [hello, buttons(FlowButton(text="Sign up", flow_name="sign_up"))], {}
    yield (
        "offer",
        [
            sample(HeaderImage, picture),
            LimitedTimeOffer(text="Ends soon!", has_expiration=True),
            hello,
            buttons(CopyCodeButton(example="SAVE25"), link),
        ],
        {},
    )
    yield (
        "carousel",
        [
            BodyText("Look, {{1}}, what has come in for you.", "Ada"),
            Carousel(
                cards=[
                    card(sample(HeaderImage, picture), QuickReplyButton(text="More"), link)
                    for _ in range(3)
                ]
            ),
        ],
        {},
    )
    yield (
        "product_carousel",
        [
            hello,
            Carousel(
                cards=[
                    CarouselCard(components=[HeaderProduct(), buttons(SPMButton(text="View"))])
                    for _ in range(2)
                ]
            ),
        ],
        {},
    )
    yield (
        "copy_code",
        [
            AuthenticationBody(add_security_recommendation=True),
            AuthenticationFooter(code_expiration_minutes=5),
            buttons(CopyCodeOTPButton(text="Copy")),
        ],
        {"category": AUTHENTICATION, "message_send_ttl_seconds": 60},
    )
    yield (
        "one_tap",
        [
            AuthenticationBody(add_security_recommendation=False),
            buttons(OneTapOTPButton(text="Copy", autofill_text="Fill", supported_apps=apps)),
        ],
        {"category": AUTHENTICATION},
    )
    yield (
        "zero_tap",
        [
            AuthenticationBody(add_security_recommendation=True),
            AuthenticationFooter(code_expiration_minutes=90),
            buttons(ZeroTapOTPButton(zero_tap_terms_accepted=True, supported_apps=apps)),
        ],
        {"category": AUTHENTICATION},
    )
    features = CreativeFeaturesSpec.all_enabled()
    freedom = DegreesOfFreedomSpec(creative_features_spec=features)
    yield "freedom", [hello], {"degrees_of_freedom_spec": freedom}


def classes(components):
    """Returns the nested class names of components as parsed by pywa."""
    return [
        (
            type(it).__name__,
            classes(getattr(it, "buttons", [])),
            [classes(card.components) for card in getattr(it, "cards", [])],
        )
        for it in components
    ]


def creates(wa):
    """Creates every kind of template and reads it back; returns the ids by name."""
    ids_by_name = {}
    for name, components, more in kinds():
        new = template(name, components, **more)
        try:
            created = wa.create_template(new)
            details = wa.get_template(created.id)
        except Exception as error:  # report the kind and continue
            check(f"create {name}", False, error)
            continue
        ids_by_name[name] = created.id
        raw = transport.response.json()
        sent = json.loads(new.to_json())
        freedom = sent.pop("degrees_of_freedom_spec", None)
        check_equal(f"{name}: the template is read back as sent", differences(sent, raw), [])
        check_equal(f"{name}: classes", classes(details.components), classes(new.components))
        check_equal(
            f"{name}: response",
            (created.status, created.category),
            (TemplateStatus.APPROVED, new.category),
        )
        check_equal(
            f"{name}: identity",
            (details.id, details.name, details.language),
            (created.id, name, ENGLISH),
        )
        expected = new.parameter_format or ParamFormat.POSITIONAL
        check_equal(f"{name}: format", details.parameter_format, expected)
        check_equal(f"{name}: reason", details.rejected_reason, TemplateRejectionReason.NONE)
        check_equal(f"{name}: quality", details.quality_score.score, QualityScoreType.UNKNOWN)
        if freedom:
            check_equal(f"{name}: features", details.degrees_of_freedom_spec.to_dict(), freedom)
    return ids_by_name


def samples(wa, ids_by_name):
    """Checks that the URL in the template serves the uploaded bytes."""
    picture = wa.get_template(ids_by_name["image"]).components[0].example
    check_equal("the sample of an image is served", httpx.get(picture).content, PNG)
    copy = wa.get_template(ids_by_name["image"]).duplicate(name="image_again", language=ENGLISH)
    again = wa.get_template(copy.id).components[0].example
    check("a copy has its own sample", again != picture, again)
    check_equal("the sample of the copy is served", httpx.get(again).content, PNG)


def languages(wa, ids_by_name):
    """Creates the same name in other languages, each with its own id."""
    german = template("plain", [BodyText("Guten Morgen")], language=TemplateLanguage.GERMAN)
    spanish = template("plain", [BodyText("Buenos dias")], language=TemplateLanguage.SPANISH)
    ids_by_name["plain_de"], ids_by_name["plain_es"] = (
        wa.create_template(it).id for it in (german, spanish)
    )
    found = {it.language: it.id for it in wa.get_templates(name="plain")}
    expected = {
        "en_US": ids_by_name["plain"],
        "de": ids_by_name["plain_de"],
        "es": ids_by_name["plain_es"],
    }
    check_equal("three languages of one name", found, expected)
    error = expect_error(
        "an existing language is rejected", WhatsAppError, lambda: wa.create_template(german)
    )
    if error:
        check_equal("the error codes match", (error.code, error.subcode), (100, 2388024))


def lists(wa, ids_by_name):
    """Tests filters and pages."""
    count = len(ids_by_name) + 1  # including the copy of the image
    all_templates = wa.get_templates(pagination=Pagination(limit=250))
    check_equal(
        "all templates are listed", (len(all_templates), all_templates.total_count), (count, count)
    )
    check_equal(
        "there is no other page",
        (all_templates.has_next, all_templates.has_previous),
        (False, False),
    )
    check("the template limit is returned", all_templates.message_template_limit > count)
    ids = [it.id for it in all_templates]

    # `TemplatesResult.next` of this pywa version fails for any response, so this uses cursors.
    pages = [wa.get_templates(pagination=Pagination(limit=4))]
    while pages[-1].has_next:
        pages.append(wa.get_templates(pagination=Pagination(limit=4, after=pages[-1].after)))
    check_equal("cursors lead through all pages", [it.id for page in pages for it in page], ids)
    check_equal(
        "all pages but the last are full", [len(it) for it in pages[:-1]], [4] * (len(pages) - 1)
    )
    check_equal(
        "the first page has no previous page",
        (pages[0].has_previous, pages[1].has_previous),
        (False, True),
    )
    for earlier, later in pairwise(pages):
        back = wa.get_templates(pagination=Pagination(limit=4, before=later.before))
        check_equal("a cursor leads back", [it.id for it in back], [it.id for it in earlier])

    def names(**filters):
        found = wa.get_templates(pagination=Pagination(limit=250), **filters)
        check_equal(f"total of {filters}", found.total_count, len(found))
        return sorted(it.name for it in found)

    codes = ["copy_code", "one_tap", "zero_tap"]
    check_equal("a category filter works", names(categories=[AUTHENTICATION]), codes)
    utilities = ["contact", "document", "location", "named", "positional"]
    check_equal(
        "two categories", names(categories=[UTILITY, AUTHENTICATION]), sorted(codes + utilities)
    )
    german = [TemplateLanguage.GERMAN, TemplateLanguage.SPANISH]
    check_equal("two languages", names(languages=german), ["plain", "plain"])
    approved = [TemplateStatus.APPROVED, TemplateStatus.REJECTED]
    check_equal("statuses and more", names(statuses=approved, categories=[UTILITY]), utilities)
    check_equal(
        "a status without templates gives an empty list",
        names(statuses=[TemplateStatus.REJECTED]),
        [],
    )
    check_equal(
        "a quality filter works", len(names(quality_scores=[QualityScoreType.UNKNOWN])), count
    )
    check_equal(
        "a quality without templates gives an empty list",
        names(quality_scores=[QualityScoreType.RED]),
        [],
    )
    check_equal("an unknown name gives an empty list", names(name="nothing"), [])
    # The search index lags behind the store.
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and not wa.get_templates(content="guten morgen"):
        pass
    check_equal("a content filter works", names(content="guten morgen"), ["plain"])
    expected = ["product", "product_carousel", "products"]
    check_equal("a name or content", names(name_or_content="product"), expected)
    error = expect_error(
        "an invalid cursor is rejected",
        WhatsAppError,
        lambda: wa.get_templates(pagination=Pagination(after="%%")),
    )
    if error:
        check_equal("the error codes match", error.code, 131059)


def edits(wa, ids_by_name):
    new = [BodyText("Hello {{1}}, your order {{2}} has left us today.", "Bob", "B-1")]
    edited = wa.update_template(ids_by_name["positional"], new_components=new)
    check_equal(
        "an edit returns the template",
        (edited.id, edited.name, edited.category),
        (ids_by_name["positional"], "positional", UTILITY),
    )
    details = edited.get()
    check_equal("the components are edited", classes(details.components), classes(new))
    check_equal("the text is edited", details.components[0].text, new[0].text)
    edited = wa.update_template(ids_by_name["copy_code"], new_message_send_ttl_seconds=120)
    check_equal("the lifetime is edited", edited.get().message_send_ttl_seconds, 120)
    unchanged = classes(wa.get_template(ids_by_name["copy_code"]).components)
    check_equal(
        "other components are unchanged",
        [it[0] for it in unchanged],
        ["AuthenticationBody", "AuthenticationFooter", "Buttons"],
    )
    header = [HeaderImage(PNG + b"2", mime_type="image/png"), BodyText("Good evening")]
    wa.update_template(ids_by_name["image"], new_components=header)
    address = wa.get_template(ids_by_name["image"]).components[0].example
    check_equal("the sample is replaced", httpx.get(address).content, PNG + b"2")
    error = expect_error(
        "an edit of an unknown template is rejected",
        WhatsAppError,
        lambda: wa.update_template("17", new_components=new),
    )
    if error:
        check_equal("the error codes match", (error.code, error.subcode), (100, 33))


def upserts(wa):
    both = [ENGLISH, TemplateLanguage.SPANISH]
    created = wa.upsert_authentication_template(
        name="upserted", languages=both, otp_button=CopyCodeOTPButton(), code_expiration_minutes=5
    )
    check_equal("an upsert creates both languages", len({it.id for it in created}), 2)
    again = wa.upsert_authentication_template(
        name="upserted",
        languages=both,
        otp_button=CopyCodeOTPButton(),
        add_security_recommendation=True,
    )
    check_equal("a second upsert edits them", [it.id for it in again], [it.id for it in created])
    body = wa.get_template(created[0].id).components[0]
    check_equal("the edit is applied", body.add_security_recommendation, True)


def errors(wa):
    bad = template("Bad Name", [BodyText("Hello {{1}} and goodbye to you", "Ada")])
    error = expect_error(
        "an invalid name is rejected", WhatsAppError, lambda: wa.create_template(bad)
    )
    if error:
        check_equal("the error codes match", (error.code, error.subcode), (100, 2388046))
        check(
            "the error has texts",
            bool(error.user_title and error.user_msg and error.message),
            error,
        )
        check("the error has a trace id", bool(error.fbtrace_id), error)
        check_equal("the error is not transient", error.is_transient, False)
    first = template("first", [BodyText("{{1}} is here for you today, as always", "Ada")])
    error = expect_error(
        "a variable at the start is rejected", WhatsAppError, lambda: wa.create_template(first)
    )
    if error:
        check_equal("the error subcode matches", error.subcode, 2388299)
    error = expect_error("an unknown id is rejected", WhatsAppError, lambda: wa.get_template("17"))
    if error:
        check_equal("the error subcode matches", error.subcode, 33)
    stranger = client("not-a-token")
    error = expect_error("an invalid token is rejected", WhatsAppError, stranger.get_templates)
    if error:
        check_equal(
            "the error code and status match",
            (error.code, error.raw_response.status_code),
            (190, 401),
        )


def deletions(wa, ids_by_name):
    check_equal(
        "one language is deleted",
        wa.delete_template("plain", template_id=ids_by_name["plain_de"]).success,
        True,
    )
    left = sorted(it.language for it in wa.get_templates(name="plain"))
    check_equal("other languages remain", left, ["en_US", "es"])
    check_equal("all languages are deleted", wa.delete_template("plain").success, True)
    check_equal("no language remains", len(wa.get_templates(name="plain")), 0)
    check_equal(
        "a template object deletes itself",
        wa.get_template(ids_by_name["named"]).delete().success,
        True,
    )
    expect_error(
        "a deleted template is unknown",
        WhatsAppError,
        lambda: wa.get_template(ids_by_name["named"]),
    )
    expect_error(
        "a deleted template cannot be deleted again",
        WhatsAppError,
        lambda: wa.delete_template("named"),
    )


def extras(wa, ids_by_name):
    account = wa.get_business_account()
    check_equal("the account is read", (account.id, account.name), (ACCOUNT, "suite"))
    flow = wa.get_template(ids_by_name["flow"]).components[1].buttons[0]
    check_equal("the flow action is read", flow.flow_action, FlowActionType.NAVIGATE)
    error = expect_error(
        "a template that is not paused cannot be unpaused",
        WhatsAppError,
        lambda: wa.unpause_template(ids_by_name["flow"]),
    )
    if error:
        check_equal("the error codes match", (error.code, error.subcode), (100, 2388039))
    one, two = ids_by_name["flow"], ids_by_name["offer"]
    archived = wa.archive_templates([one, "17"])
    check_equal(
        "a template is archived", (archived.archived, list(archived.failed)), ((one,), ["17"])
    )
    status = wa.get_template(one).status
    check_equal("it is read as archived", status, TemplateStatus.ARCHIVED)
    unarchived = wa.unarchive_templates([one])
    check_equal("it is taken back", (unarchived.unarchived, unarchived.failed), ((one,), {}))
    check_equal("it is approved as before", wa.get_template(one).status, TemplateStatus.APPROVED)
    # Unsupported operations fail with errors that pywa can parse.
    library = LibraryTemplate(
        name="library",
        library_template_name="delivery_update_1",
        category=UTILITY,
        language=ENGLISH,
    )
    expect_error(
        "comparisons are not supported",
        WhatsAppError,
        lambda: wa.compare_templates(one, two, start=1, end=2),
    )
    expect_error("migrations are not supported", WhatsAppError, lambda: wa.migrate_templates("17"))
    expect_error(
        "library templates are not supported", WhatsAppError, lambda: wa.create_template(library)
    )


wa = client()
ids_by_name = creates(wa)
samples(wa, ids_by_name)
languages(wa, ids_by_name)
lists(wa, ids_by_name)
edits(wa, ids_by_name)
upserts(wa)
errors(wa)
extras(wa, ids_by_name)
deletions(wa, ids_by_name)
finish("pywa")
