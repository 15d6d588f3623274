"""A client of pywa whose requests for Meta go to an emulator."""

import httpx
from emulator import VERIFY_TOKEN
from pywa import WhatsApp


def connect(emulator, **session):
    """Returns the client. Other arguments are those of its HTTP session."""
    address = httpx.URL(emulator.url)

    def redirect(request):
        request.url = request.url.copy_with(scheme="http", host=address.host, port=address.port)
        request.headers["host"] = f"{address.host}:{address.port}"

    return WhatsApp(
        phone_id=emulator.phone_number_id,
        token=emulator.token,
        waba_id=emulator.waba_id,
        app_id=emulator.app_id,
        app_secret=emulator.app_secret,
        verify_token=VERIFY_TOKEN,
        session=httpx.Client(event_hooks={"request": [redirect]}, trust_env=False, **session),
    )
