"""From a new template to the first asserted message, with pywa.

    pip install 'pywa>=4,<5' httpx
    galley emulator --json > emulator.json &
    python first_message.py emulator.json

pywa calls graph.facebook.com; the transport below sends these calls to the emulator instead.
"""

import json
import sys

import httpx
from pywa import WhatsApp
from pywa.types.templates import BodyText, Template, TemplateCategory, TemplateLanguage, TemplateStatus

with open(sys.argv[1]) as file:
    emulator = json.load(file)
base = f"{emulator['url']}/api/v1.0/{emulator['phone_number_id']}/{emulator['key']}/emulator"
control = httpx.Client(headers={"Authorization": f"Bearer {emulator['token']}"}, trust_env=False)


class EmulatorTransport(httpx.HTTPTransport):
    """Sends requests for *.facebook.com to the emulator."""

    def handle_request(self, request):
        if request.url.host.endswith("facebook.com"):
            target = httpx.URL(emulator["url"])
            request.url = request.url.copy_with(scheme=target.scheme, host=target.host, port=target.port)
            request.headers["Host"] = f"{target.host}:{target.port}"
        return super().handle_request(request)


whatsapp = WhatsApp(
    phone_id=emulator["phone_number_id"],
    token=emulator["token"],
    waba_id=emulator["waba_id"],
    app_id=emulator["app_id"],
    app_secret=emulator["app_secret"],
    session=httpx.Client(transport=EmulatorTransport()),
)

body = BodyText("Hi {{1}}, your order {{2}} is on its way.", "Ada", "A-1024")
created = whatsapp.create_template(
    Template(
        # The suffix decides the review: PENDING, approved after ten minutes.
        name="order_shipped_pending_10m",
        category=TemplateCategory.UTILITY,
        language=TemplateLanguage.ENGLISH_US,
        components=[body],
    )
)
assert created.status == TemplateStatus.PENDING, created

moved = control.post(f"{base}/clock", json={"advance": "10m"}).json()
assert moved["applied"] == 1, moved
assert whatsapp.get_template(created.id).status == TemplateStatus.APPROVED

sent = whatsapp.send_template(
    to="15550109999",
    name="order_shipped_pending_10m",
    language=TemplateLanguage.ENGLISH_US,
    params=[body.params("Ada", "A-1024")],
)
control.post(f"{base}/clock", json={"advance": "3s"}).raise_for_status()
message = control.get(f"{base}/messages").json()["data"][0]
assert message["id"] == sent.id, message
assert message["texts"]["body"] == "Hi Ada, your order A-1024 is on its way.", message
assert message["status"] == "read", message
print("ok:", message["texts"]["body"])
