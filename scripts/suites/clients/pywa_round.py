"""A full round with pywa: every kind of template that it can express is created and read back, then
lists, edits, deletions, uploads, refusals, and the calls that only pywa has."""

import json
import time
from itertools import pairwise

import httpx
from checks import ACCOUNT, ADDRESS, PNG, TOKEN, check, equal, finish, missing, refused
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


class Here(httpx.BaseTransport):
    """Leads what is meant for Meta to the service, and remembers the last answer."""

    def __init__(self):
        self.inner = httpx.HTTPTransport()
        self.answer = None

    def handle_request(self, request):
        if request.url.host.endswith("facebook.com"):
            here = httpx.URL(ADDRESS)
            request.url = request.url.copy_with(scheme="http", host=here.host, port=here.port)
            request.headers["host"] = f"{here.host}:{here.port}"
        response = self.inner.handle_request(request)
        response.read()
        self.answer = response
        return response


here = Here()


def client(token=TOKEN):
    session = httpx.Client(transport=here)
    return WhatsApp(phone_id="1555", token=token, waba_id=ACCOUNT, app_id=123, session=session)


def template(name, components, category=MARKETING, language=ENGLISH, **more):
    return Template(name=name, language=language, category=category, components=components, **more)


def buttons(*all_of_them):
    return Buttons(buttons=list(all_of_them))


def card(header, *card_buttons):
    return CarouselCard(components=[header, BodyText("One of them"), buttons(*card_buttons)])


def kinds():
    """Name by name: components, and what else the template says."""
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
    """The classes that pywa has made of components, nested as they are."""
    return [
        (
            type(it).__name__,
            classes(getattr(it, "buttons", [])),
            [classes(card.components) for card in getattr(it, "cards", [])],
        )
        for it in components
    ]


def creates(wa):
    """Creates every kind and reads it back; gives the ids by name."""
    made = {}
    for name, components, more in kinds():
        new = template(name, components, **more)
        try:
            created = wa.create_template(new)
            details = wa.get_template(created.id)
        except Exception as error:  # tell which, and go on
            check(f"create {name}", False, error)
            continue
        made[name] = created.id
        raw = here.answer.json()
        sent = json.loads(new.to_json())
        freedom = sent.pop("degrees_of_freedom_spec", None)
        equal(f"{name}: what was sent is read back", missing(sent, raw), [])
        equal(f"{name}: classes", classes(details.components), classes(new.components))
        equal(
            f"{name}: answer",
            (created.status, created.category),
            (TemplateStatus.APPROVED, new.category),
        )
        equal(
            f"{name}: identity",
            (details.id, details.name, details.language),
            (created.id, name, ENGLISH),
        )
        wanted = new.parameter_format or ParamFormat.POSITIONAL
        equal(f"{name}: format", details.parameter_format, wanted)
        equal(f"{name}: reason", details.rejected_reason, TemplateRejectionReason.NONE)
        equal(f"{name}: quality", details.quality_score.score, QualityScoreType.UNKNOWN)
        if freedom:
            equal(f"{name}: features", details.degrees_of_freedom_spec.to_dict(), freedom)
    return made


def samples(wa, made):
    """What was uploaded is served where the template says, bit for bit."""
    picture = wa.get_template(made["image"]).components[0].example
    equal("the sample of an image is served", httpx.get(picture).content, PNG)
    copy = wa.get_template(made["image"]).duplicate(name="image_again", language=ENGLISH)
    again = wa.get_template(copy.id).components[0].example
    check("a copy has a sample of its own", again != picture, again)
    equal("and it is served, too", httpx.get(again).content, PNG)


def languages(wa, made):
    """The same name in other languages, each with its own id."""
    german = template("plain", [BodyText("Guten Morgen")], language=TemplateLanguage.GERMAN)
    spanish = template("plain", [BodyText("Buenos dias")], language=TemplateLanguage.SPANISH)
    made["plain_de"], made["plain_es"] = (wa.create_template(it).id for it in (german, spanish))
    found = {it.language: it.id for it in wa.get_templates(name="plain")}
    wanted = {"en_US": made["plain"], "de": made["plain_de"], "es": made["plain_es"]}
    equal("three languages of one name", found, wanted)
    taken = refused("a language that is there", WhatsAppError, lambda: wa.create_template(german))
    if taken:
        equal("its code", (taken.code, taken.subcode), (100, 2388024))


def lists(wa, made):
    """Filters and pages."""
    count = len(made) + 1  # and the copy of the image
    everything = wa.get_templates(pagination=Pagination(limit=250))
    equal("all of them", (len(everything), everything.total_count), (count, count))
    equal("no other page", (everything.has_next, everything.has_previous), (False, False))
    check("a limit is told", everything.message_template_limit > count)
    ids = [it.id for it in everything]

    # `TemplatesResult.next` of this pywa fails by itself, whatever the answer is: cursors it is.
    pages = [wa.get_templates(pagination=Pagination(limit=4))]
    while pages[-1].has_next:
        pages.append(wa.get_templates(pagination=Pagination(limit=4, after=pages[-1].after)))
    equal("page by page", [it.id for page in pages for it in page], ids)
    equal("sizes of pages", [len(it) for it in pages[:-1]], [4] * (len(pages) - 1))
    equal("the first", (pages[0].has_previous, pages[1].has_previous), (False, True))
    for earlier, later in pairwise(pages):
        back = wa.get_templates(pagination=Pagination(limit=4, before=later.before))
        equal("and back", [it.id for it in back], [it.id for it in earlier])

    def names(**filters):
        found = wa.get_templates(pagination=Pagination(limit=250), **filters)
        equal(f"total of {filters}", found.total_count, len(found))
        return sorted(it.name for it in found)

    codes = ["copy_code", "one_tap", "zero_tap"]
    equal("one category", names(categories=[AUTHENTICATION]), codes)
    utilities = ["contact", "document", "location", "named", "positional"]
    equal("two categories", names(categories=[UTILITY, AUTHENTICATION]), sorted(codes + utilities))
    german = [TemplateLanguage.GERMAN, TemplateLanguage.SPANISH]
    equal("two languages", names(languages=german), ["plain", "plain"])
    approved = [TemplateStatus.APPROVED, TemplateStatus.REJECTED]
    equal("statuses and more", names(statuses=approved, categories=[UTILITY]), utilities)
    equal("a status that none has", names(statuses=[TemplateStatus.REJECTED]), [])
    equal("quality", len(names(quality_scores=[QualityScoreType.UNKNOWN])), count)
    equal("another quality", names(quality_scores=[QualityScoreType.RED]), [])
    equal("a name that none has", names(name="nothing"), [])
    # What is searched follows a moment behind what is kept.
    until = time.monotonic() + 10
    while time.monotonic() < until and not wa.get_templates(content="guten morgen"):
        pass
    equal("a content", names(content="guten morgen"), ["plain"])
    shown = ["product", "product_carousel", "products"]
    equal("a name or content", names(name_or_content="product"), shown)
    stale = refused(
        "a bad cursor", WhatsAppError, lambda: wa.get_templates(pagination=Pagination(after="%%"))
    )
    if stale:
        equal("its code", stale.code, 131059)


def edits(wa, made):
    new = [BodyText("Hello {{1}}, your order {{2}} has left us today.", "Bob", "B-1")]
    edited = wa.update_template(made["positional"], new_components=new)
    equal(
        "an edit",
        (edited.id, edited.name, edited.category),
        (made["positional"], "positional", UTILITY),
    )
    details = edited.get()
    equal("its components", classes(details.components), classes(new))
    equal("its text", details.components[0].text, new[0].text)
    edited = wa.update_template(made["copy_code"], new_message_send_ttl_seconds=120)
    equal("another lifetime", edited.get().message_send_ttl_seconds, 120)
    kept = classes(wa.get_template(made["copy_code"]).components)
    equal(
        "leaves the rest",
        [it[0] for it in kept],
        ["AuthenticationBody", "AuthenticationFooter", "Buttons"],
    )
    header = [HeaderImage(PNG + b"2", mime_type="image/png"), BodyText("Good evening")]
    wa.update_template(made["image"], new_components=header)
    address = wa.get_template(made["image"]).components[0].example
    equal("another sample", httpx.get(address).content, PNG + b"2")
    unknown = refused(
        "an edit of nothing", WhatsAppError, lambda: wa.update_template("17", new_components=new)
    )
    if unknown:
        equal("its code", (unknown.code, unknown.subcode), (100, 33))


def upserts(wa):
    both = [ENGLISH, TemplateLanguage.SPANISH]
    made = wa.upsert_authentication_template(
        name="upserted", languages=both, otp_button=CopyCodeOTPButton(), code_expiration_minutes=5
    )
    equal("an upsert makes both", len({it.id for it in made}), 2)
    again = wa.upsert_authentication_template(
        name="upserted",
        languages=both,
        otp_button=CopyCodeOTPButton(),
        add_security_recommendation=True,
    )
    equal("and then edits them", [it.id for it in again], [it.id for it in made])
    body = wa.get_template(made[0].id).components[0]
    equal("as it was told", body.add_security_recommendation, True)


def refusals(wa):
    bad = template("Bad Name", [BodyText("Hello {{1}} and goodbye to you", "Ada")])
    error = refused("a bad name", WhatsAppError, lambda: wa.create_template(bad))
    if error:
        equal("its codes", (error.code, error.subcode), (100, 2388046))
        check("its words", bool(error.user_title and error.user_msg and error.message), error)
        check("its trace", bool(error.fbtrace_id), error)
        equal("it will not pass", error.is_transient, False)
    first = template("first", [BodyText("{{1}} is here for you today, as always", "Ada")])
    error = refused("a variable at the start", WhatsAppError, lambda: wa.create_template(first))
    if error:
        equal("its subcode", error.subcode, 2388299)
    error = refused("an unknown id", WhatsAppError, lambda: wa.get_template("17"))
    if error:
        equal("its subcode", error.subcode, 33)
    stranger = client("not-a-token")
    error = refused("a wrong token", WhatsAppError, stranger.get_templates)
    if error:
        equal("its code and status", (error.code, error.raw_response.status_code), (190, 401))


def deletions(wa, made):
    equal("one language", wa.delete_template("plain", template_id=made["plain_de"]).success, True)
    left = sorted(it.language for it in wa.get_templates(name="plain"))
    equal("leaves the others", left, ["en_US", "es"])
    equal("all languages", wa.delete_template("plain").success, True)
    equal("leave nothing", len(wa.get_templates(name="plain")), 0)
    equal("by itself", wa.get_template(made["named"]).delete().success, True)
    refused("what is gone", WhatsAppError, lambda: wa.get_template(made["named"]))
    refused("once more", WhatsAppError, lambda: wa.delete_template("named"))


def extras(wa, made):
    account = wa.get_business_account()
    equal("the account", (account.id, account.name), (ACCOUNT, "suite"))
    flow = wa.get_template(made["flow"]).components[1].buttons[0]
    equal("the action of a flow", flow.flow_action, FlowActionType.NAVIGATE)
    error = refused("a pause that is not", WhatsAppError, lambda: wa.unpause_template(made["flow"]))
    if error:
        equal("its codes", (error.code, error.subcode), (100, 2388039))
    # What is not to be had here is refused in a form that pywa can read.
    one, two = made["flow"], made["offer"]
    library = LibraryTemplate(
        name="library",
        library_template_name="delivery_update_1",
        category=UTILITY,
        language=ENGLISH,
    )
    refused("a comparison", WhatsAppError, lambda: wa.compare_templates(one, two, start=1, end=2))
    refused("a migration", WhatsAppError, lambda: wa.migrate_templates("17"))
    refused("an archive", WhatsAppError, lambda: wa.archive_templates([one]))
    refused("a library", WhatsAppError, lambda: wa.create_template(library))


wa = client()
made = creates(wa)
samples(wa, made)
languages(wa, made)
lists(wa, made)
edits(wa, made)
upserts(wa)
refusals(wa)
extras(wa, made)
deletions(wa, made)
finish("pywa")
