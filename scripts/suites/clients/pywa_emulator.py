"""A story with pywa and an emulator: review on the virtual clock, sends and their statuses. pywa parses the
webhooks itself, and its handlers get them."""

from datetime import datetime, timedelta

from checks import check, check_equal, expect_error, finish
from emulator import VERIFY_TOKEN, Emulator, Receiver
from pywa import WhatsApp
from pywa.errors import (
    MessageUndeliverable,
    TemplateNotExists,
    TemplateParamCountMismatch,
    TooManyMessages,
)
from pywa.handlers import (
    MessageStatusHandler,
    TemplateCategoryUpdateHandler,
    TemplateStatusUpdateHandler,
)
from pywa.types import MessageStatusType
from pywa.types.sent_update import SentTemplateStatus
from pywa.types.templates import (
    BodyText,
    FooterText,
    HeaderText,
    ParamFormat,
    Template,
    TemplateCategory,
    TemplateLanguage,
    TemplateRejectionReason,
    TemplateStatus,
)
from pywa_session import connect

MARKETING, UTILITY = TemplateCategory.MARKETING, TemplateCategory.UTILITY
ENGLISH = TemplateLanguage.ENGLISH_US
CUSTOMER = "16505551234"


class PywaReceiver(Receiver):
    """Hands handshakes and requests to pywa, as a server of one's own does."""

    def __init__(self):
        super().__init__()
        self.client = WhatsApp(token="not-used", verify_token=VERIFY_TOKEN)
        self.updates = []

    def handshake(self, query):
        self.handshakes.append(query)
        challenge = query.get("hub.challenge")
        text, status = self.client.webhook_challenge_handler(
            query.get("hub.verify_token"), challenge
        )
        return status, text

    def is_genuine(self, body, signature):
        return self.client.webhook_update_validator(body, signature) is None

    def accept(self, body):
        check_equal(
            "pywa handles the update", self.client.webhook_update_handler(body), ("ok", 200)
        )

    def use(self, client):
        """Takes updates with this client from now on."""
        for handler in (
            MessageStatusHandler,
            TemplateStatusUpdateHandler,
            TemplateCategoryUpdateHandler,
        ):
            client.add_handlers(handler(lambda _, update: self.updates.append(update)))
        self.client = client

    def wait_for_update(self, description, **members):
        """Waits for an update with these members, and returns it."""

        def matches(update):
            return all(getattr(update, name, None) == value for name, value in members.items())

        found = self.wait(lambda: next(filter(matches, self.updates), None))
        check(description, found, members, self.updates)
        return found

    def wait_for_progress(self, description, message_id, expected):
        """Waits for the statuses of a message, in their order, and returns the updates."""

        def find():
            return [it for it in self.updates if it.id == message_id]

        self.wait(lambda: len(find()) >= len(expected))
        check_equal(description, [it.status for it in find()], expected)
        return find()


def shipped(name, category=UTILITY):
    components = [
        HeaderText("Order {{order}}", order="A-17"),
        BodyText(
            "Hello {{customer}}, your parcel comes on {{day}}, as we said.",
            customer="Ada",
            day="Monday",
        ),
        FooterText(text="The shop"),
    ]
    return Template(
        name=name,
        language=ENGLISH,
        category=category,
        parameter_format=ParamFormat.NAMED,
        components=components,
    )


def send(wa, name, to=CUSTOMER, **values):
    """Sends the template with these values of the body."""
    params = [HeaderText.params(order="B-42"), BodyText.params(**values)]
    return wa.send_template(to, name, ENGLISH, params, tracker="round 17")


def review(wa, emulator, receiver):
    """Creates a template that is reviewed ten minutes later."""
    name = "order_shipped_pending_10m"
    created = wa.create_template(shipped(name))
    check_equal("a new template is pending", created.status, TemplateStatus.PENDING)
    expect_error(
        "a pending template cannot be sent",
        TemplateNotExists,
        lambda: send(wa, name, customer="Ada", day="Monday"),
    )
    emulator.advance("9m")
    check_equal(
        "it is pending for ten minutes", wa.get_template(created.id).status, TemplateStatus.PENDING
    )
    applied = emulator.advance("1m")["applied"]
    check_equal("the clock applies the approval", applied, 1)
    update = receiver.wait_for_update(
        "pywa gets the approval", template_id=created.id, new_status=TemplateStatus.APPROVED
    )
    if update:
        check_equal(
            "the approval names the template",
            (update.template_name, update.id),
            (name, emulator.waba_id),
        )
    check_equal(
        "the template is approved", wa.get_template(created.id).status, TemplateStatus.APPROVED
    )
    return name


def sends(wa, emulator, receiver, name):
    error = expect_error(
        "a missing parameter is refused",
        TemplateParamCountMismatch,
        lambda: send(wa, name, customer="Ada"),
    )
    if error:
        check_equal("the error code and status", (error.code, error.status_code), (132000, 400))
        check("the error names the missing parameter", "{{day}}" in (error.details or ""), error)

    sent = send(wa, name, customer="Ada", day="Monday")
    check("the id is one of the sandbox", sent.id.startswith("wamid.sandbox."), sent.id)
    check_equal("the message is accepted", sent.status, SentTemplateStatus.ACCEPTED)
    emulator.advance("5s")
    updates = receiver.wait_for_progress(
        "pywa gets the statuses in order",
        sent.id,
        [MessageStatusType.SENT, MessageStatusType.DELIVERED, MessageStatusType.READ],
    )
    for update in updates:
        check_equal(
            "a status has recipient, sender and tracker",
            (update.from_user.wa_id, update.metadata.phone_number_id, update.tracker),
            (CUSTOMER, emulator.phone_number_id, "round 17"),
        )
    times = [it.timestamp for it in updates]
    check_equal(
        "statuses have their times on the clock",
        [(it - times[0]).total_seconds() for it in times],
        [0, 1, 3],
    )

    kept = emulator.message(sent.id)
    check_equal("the message is kept", (kept["to"], kept["status"]), (CUSTOMER, "read"))
    check_equal(
        "the texts are those that the recipient reads",
        kept["texts"],
        {
            "header": "Order B-42",
            "body": "Hello Ada, your parcel comes on Monday, as we said.",
            "footer": "The shop",
        },
    )


def magic_recipients(wa, emulator, receiver, name):
    failing = send(wa, name, to="1555010131026", customer="Ada", day="Monday")
    emulator.advance("5s")
    updates = receiver.wait_for_progress(
        "a message to the magic recipient fails",
        failing.id,
        [MessageStatusType.SENT, MessageStatusType.FAILED],
    )
    check(
        "the failure is pywa's error for 131026",
        isinstance(updates[-1].error, MessageUndeliverable),
        updates,
    )
    check_equal("the message is kept as failed", emulator.message(failing.id)["status"], "failed")
    expect_error(
        "another magic recipient refuses the send",
        TooManyMessages,
        lambda: send(wa, name, to="1555010131056", customer="Ada", day="Monday"),
    )


def rejection(wa, receiver):
    created = wa.create_template(shipped("order_reject_promotional"))
    check_equal("the rejection comes at once", created.status, TemplateStatus.REJECTED)
    update = receiver.wait_for_update(
        "pywa gets the rejection", template_id=created.id, new_status=TemplateStatus.REJECTED
    )
    if update:
        check_equal(
            "the rejection has its reason", update.reason, TemplateRejectionReason.PROMOTIONAL
        )
    read = wa.get_template(created.id)
    check_equal(
        "status and reason are read",
        (read.status, read.rejected_reason),
        (TemplateStatus.REJECTED, TemplateRejectionReason.PROMOTIONAL),
    )


def category(wa, emulator, receiver):
    created = wa.create_template(shipped("order_to_marketing"))
    check_equal("the template is approved", created.status, TemplateStatus.APPROVED)
    update = receiver.wait_for_update(
        "pywa gets the announcement", template_id=created.id, correct_category=MARKETING
    )
    if update:
        check_equal("the category is still the same", update.new_category, UTILITY)
    read = wa.get_template(created.id)
    check_equal(
        "both categories are read", (read.category, read.correct_category), (UTILITY, MARKETING)
    )
    emulator.advance("24h")
    update = receiver.wait_for_update(
        "pywa gets the change", template_id=created.id, previous_category=UTILITY
    )
    if update:
        check_equal("the category is the announced one", update.new_category, MARKETING)
    check_equal("the new category is read", wa.get_template(created.id).category, MARKETING)


def comparison(wa, emulator):
    """Compares the sends of two templates, on the clock of the account."""
    ids_by_name = {it.name: it.id for it in wa.get_templates()}
    sent, other = ids_by_name["order_shipped_pending_10m"], ids_by_name["order_to_marketing"]
    now = datetime.fromisoformat(emulator.ok("GET", "emulator/clock")["now"])
    compared = wa.compare_templates(sent, other, start=now - timedelta(days=7), end=now)
    check_equal("the sends are compared", compared.times_sent, {sent: 2, other: 0})


receiver = PywaReceiver()
emulator = Emulator(receiver=receiver)
wa = connect(emulator)
receiver.use(wa)
name = review(wa, emulator, receiver)
sends(wa, emulator, receiver, name)
magic_recipients(wa, emulator, receiver, name)
rejection(wa, receiver)
category(wa, emulator, receiver)
comparison(wa, emulator)
check_equal("there was one handshake", len(receiver.handshakes), 1)
check_equal("every signature is genuine", receiver.refused, [])
check_equal("the emulator stops cleanly", emulator.stop(), [])
finish("pywa")
