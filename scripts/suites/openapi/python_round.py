"""Uses the client that openapi-python-client generated, without changes: python_round.py"""

import os
import sys
import time

from galley_client import AuthenticatedClient
from galley_client.api.events import list_events
from galley_client.api.templates import (
    create_template,
    delete_template,
    edit_template,
    list_templates,
    list_versions,
    render_template,
    review_template,
    show_template,
    validate_template,
)
from galley_client.api.webhooks import create_webhook, delete_webhook, list_webhooks
from galley_client.models import (
    BodyComponent,
    BodyExample,
    ButtonsComponent,
    ButtonValues,
    Category,
    CopyCodeButton,
    CreatedTemplate,
    Decision,
    EventPage,
    EventType,
    FooterComponent,
    InvalidTemplateProblem,
    InvalidValuesProblem,
    MediaExample,
    MediaHeader,
    NewTemplate,
    NewWebhook,
    PhoneNumberButton,
    Problem,
    ProblemType,
    QuickReplyButton,
    RenderedTemplate,
    ReviewDecision,
    RuleId,
    Template,
    TemplateEdit,
    TemplateEvent,
    TemplateEventType,
    TemplatePage,
    TemplateStatus,
    TemplateVersionPage,
    UrlButton,
    ValidationResult,
    Values,
    WebhookWithSecret,
)
from galley_client.types import UNSET

RUN = f"{time.time_ns() // 1_000_000:x}"
AT = (os.environ["SUITE_PHONE"], os.environ["SUITE_KEY"])
client = AuthenticatedClient(base_url=os.environ["SUITE_ADDRESS"], token=os.environ["SUITE_TOKEN"], raise_on_unexpected_status=True)

passed, failed = {}, 0


def check(description, condition, *details):
    global failed
    if condition:
        passed[description] = passed.get(description, 0) + 1
    else:
        failed += 1
        print(f"  failed: {description}", *(f"\n    {it!r}" for it in details), file=sys.stderr)


def order_shipped(name):
    return NewTemplate(
        name=name,
        language="en_US",
        category=Category.UTILITY,
        allow_category_change=True,
        components=[
            MediaHeader(type_="HEADER", format_="MEDIA", example=MediaExample(media_url="https://shop.example/parcel.jpg")),
            BodyComponent(type_="BODY", text="Hi {{1}}, your order {{2}} is on its way.", example=BodyExample(body_text=[["Ada", "A-1024"]])),
            FooterComponent(type_="FOOTER", text="Thank you for your order."),
            ButtonsComponent(
                type_="BUTTONS",
                buttons=[
                    QuickReplyButton(type_="QUICK_REPLY", text="Thank you"),
                    UrlButton(type_="URL", text="Track it", url="https://shop.example/track/{{1}}", example="A-1024"),
                    PhoneNumberButton(type_="PHONE_NUMBER", text="Call us", phone_number="+15550001111"),
                    CopyCodeButton(type_="COPY_CODE", example="THANKS5"),
                ],
            ),
        ],
    )


# Create
start = list_events.sync(*AT, client=client, after="latest")
check("position in the event feed", isinstance(start, EventPage), start)
names = [f"order_shipped_{RUN}_{it}" for it in range(5)]
ids = []
for name in names:
    created = create_template.sync(*AT, client=client, body=order_shipped(name), idempotency_key=name)
    check("create", isinstance(created, CreatedTemplate) and created.status == TemplateStatus.APPROVED, created)
    ids.append(created.id)
again = create_template.sync_detailed(*AT, client=client, body=order_shipped(names[0]), idempotency_key=names[0])
check("idempotent create", again.parsed.id == ids[0] and again.headers["idempotent-replayed"] == "true", again)
taken = create_template.sync(*AT, client=client, body=order_shipped(names[0]))
check("name conflict", isinstance(taken, Problem) and taken.type_ == ProblemType.NAME_TAKEN and taken.existing_id == ids[0], taken)

# Read
read = show_template.sync_detailed(*AT, ids[0], client=client)
template, tag = read.parsed, read.headers["etag"]
check("read", isinstance(template, Template) and template.name == names[0], template)
check("components", [type(it).__name__ for it in template.components] == ["MediaHeader", "BodyComponent", "FooterComponent", "ButtonsComponent"], template.components)
kinds = [type(it).__name__ for it in template.components[3].buttons]
check("buttons", kinds == ["QuickReplyButton", "UrlButton", "PhoneNumberButton", "CopyCodeButton"], kinds)
check("what was sent is read", [it.to_dict() for it in template.components] == [it.to_dict() for it in order_shipped("").components])
check("timestamps", template.created_at.tzinfo is not None, template.created_at)
unchanged = show_template.sync_detailed(*AT, ids[0], client=client, if_none_match=tag)
check("conditional read", unchanged.status_code == 304 and unchanged.parsed is None, unchanged)
missing = show_template.sync(*AT, "1", client=client)
check("unknown template", isinstance(missing, Problem) and missing.type_ == ProblemType.TEMPLATE_UNKNOWN, missing)

# List all pages
found, after, pages = [], UNSET, 0
while True:
    page = list_templates.sync(*AT, client=client, limit=2, status=[TemplateStatus.APPROVED], category=[Category.UTILITY, Category.MARKETING], after=after)
    check("page", isinstance(page, TemplatePage), page)
    found += [it.id for it in page.data]
    pages += 1
    if not page.paging.next_:
        break
    after = page.paging.cursors.after
check("all pages", pages >= 3 and set(ids) <= set(found) and len(found) == len(set(found)), pages, found)

# Edit with the ETag
template.components[2].text = "Thank you!"
edit = TemplateEdit(components=template.components)
edited = edit_template.sync_detailed(*AT, ids[0], client=client, body=edit, if_match=tag)
check("edit", isinstance(edited.parsed, Template) and edited.parsed.version == 2 and edited.headers["etag"] != tag, edited)
outdated = edit_template.sync(*AT, ids[0], client=client, body=edit, if_match=tag)
check("outdated edit", isinstance(outdated, Problem) and outdated.type_ == ProblemType.REVISION_OUTDATED, outdated)
versions = list_versions.sync(*AT, ids[0], client=client)
check("versions", isinstance(versions, TemplateVersionPage) and [it.version for it in versions.data] == [2, 1], versions)

# Render
buttons = ButtonValues()
buttons["1"] = "A-1024"
buttons["3"] = "THANKS5"
values = Values(header=["https://shop.example/parcel.jpg"], body=["Ada", "A-1024"], buttons=buttons)
rendered = render_template.sync(*AT, ids[0], client=client, body=values)
check("render", isinstance(rendered, RenderedTemplate) and rendered.texts.body == "Hi Ada, your order A-1024 is on its way.", rendered)
check("rendered button", rendered.texts.buttons[1].url == "https://shop.example/track/A-1024", rendered)
parameters = [it.parameters[0] for it in rendered.payload.template.components]
check("payload", parameters[0].image.link == "https://shop.example/parcel.jpg" and parameters[1].text == "Ada", parameters)
wrong = render_template.sync(*AT, ids[0], client=client, body=Values(body=["Ada"]))
check("wrong values", isinstance(wrong, InvalidValuesProblem) and wrong.violations[0].rule == RuleId.VALUE_MISSING, wrong)

# A 422 as violations
invalid = order_shipped(f"invalid_{RUN}")
invalid.language = "english"
invalid.components[1].text = "Hi {{1}}, {{3}} is on its way."
problem = create_template.sync(*AT, client=client, body=invalid)
check("invalid template", isinstance(problem, InvalidTemplateProblem) and problem.type_ == ProblemType.INVALID_TEMPLATE, problem)
rules = {it.rule: it for it in problem.violations}
check("violations", {RuleId.LANGUAGE_FORM, RuleId.PLACEHOLDER_GAP} <= rules.keys(), rules)
gap = rules[RuleId.PLACEHOLDER_GAP]
check("span", invalid.components[1].text[gap.span.start : gap.span.end] == "{{3}}" and gap.pointer == "/components/1/text", gap)
reused = create_template.sync(*AT, client=client, body=invalid, idempotency_key=names[0])
check("reused key", isinstance(reused, Problem) and reused.type_ == ProblemType.IDEMPOTENCY_KEY_REUSED, reused)
result = validate_template.sync(*AT, client=client, body=invalid)
check("validate", isinstance(result, ValidationResult) and not result.valid and len(result.violations) >= 2, result)
result = validate_template.sync(*AT, client=client, body=edit, template=ids[0])
check("validate an edit", isinstance(result, ValidationResult) and result.valid, result)

# Review, webhooks, deletion
paused = review_template.sync(*AT, ids[1], client=client, body=ReviewDecision(decision=Decision.PAUSE, reason="Too many."))
check("review", isinstance(paused, Template) and paused.status == TemplateStatus.PAUSED, paused)
webhook = create_webhook.sync(*AT, client=client, body=NewWebhook(url="http://127.0.0.1:9/hooks", events=[EventType.TEMPLATE_APPROVED]))
check("webhook", isinstance(webhook, WebhookWithSecret) and webhook.secret.startswith("whsec_"), webhook)
check("webhooks", webhook.id in [it.id for it in list_webhooks.sync(*AT, client=client).data])
check("delete webhook", delete_webhook.sync_detailed(*AT, webhook.id, client=client).status_code == 204)
for id in ids:
    check("delete", delete_template.sync_detailed(*AT, id, client=client).status_code == 204)

# Events
after, events = start.paging.cursors.after, []
while True:
    page = list_events.sync(*AT, client=client, after=after, limit=3)
    events += page.data
    after = page.paging.cursors.after
    if not page.paging.next_:
        break
check("events are typed", all(isinstance(it, TemplateEvent) for it in events), events)
check("events without gaps", [it.seq for it in events] == list(range(events[0].seq, events[0].seq + len(events))), events)
types = [it.type_ for it in events if getattr(it, "template_id", None) == ids[1]]
check("events of a template", types == [TemplateEventType.TEMPLATE_CREATED, TemplateEventType.TEMPLATE_PAUSED, TemplateEventType.TEMPLATE_DELETED], types)

total = sum(passed.values()) + failed
print("  " + ", ".join(f"{it} ×{count}" if count > 1 else it for it, count in passed.items()))
print(f"openapi-python-client: {failed} of {total} checks failed" if failed else f"openapi-python-client: {total} checks passed")
sys.exit(bool(failed))
