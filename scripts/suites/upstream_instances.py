"""Freezes the instance that works on a connection to a provider for longer than its lease, again and
again. Another instance has to finish the operation; when the first one continues, it must store
nothing.

Until then, the provider must have got each call once: a process that repeats a call has looked before
whether it was made. After that, it may get an edit once more that was frozen on its way: no process can
take a call back that it is already sending. Such a late edit has the content of the operation, and a
late create is refused.

Two instances on one PostgreSQL database, with an emulator as the provider. Run it through
scripts/suites/with-postgres. GALLEY_FREEZES is the number of freezes (default: 4).
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time

from instances import KEY, TOKEN, Provider, Service, galley, wait_until

LEASE_SECONDS = 5
SETTINGS = {
    "GALLEY_BOOTSTRAP_KEY": "key-of-another-account",
    "GALLEY_BOOTSTRAP_TOKEN": "token-of-another-account",
    "GALLEY_SECRET_KEY": "key-of-the-suite-only",
    "GALLEY_UPSTREAM_ALLOW_PRIVATE": "true",
    "GALLEY_UPSTREAM_CALLS_PER_HOUR": "5000",
    "GALLEY_UPSTREAM_LEASE": f"{LEASE_SECONDS}s",
}


def document(name, number):
    return {
        "name": name, "language": "en_US", "category": "UTILITY",
        "components": [{"type": "BODY", "text": f"This is the text number {number} of the template."}],
    }


def command(*arguments, text=""):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GALLEY_")}
    store = ["--store", os.environ["GALLEY_TEST_POSTGRES"]]
    done = subprocess.run(
        [galley(), *arguments, *store], input=text, env=environment | SETTINGS, capture_output=True, text=True,
    )
    if done.returncode != 0:
        sys.exit(f"{arguments} failed: {done.stderr}")


def operation(service):
    """The newest operation of the account."""
    status, page = service.call("GET", "/upstream/operations?limit=1")
    return page["data"][0] if status == 200 and page["data"] else {"state": "none", "id": None}


def main():
    freezes = int(os.environ.get("GALLEY_FREEZES", "4"))
    with tempfile.TemporaryDirectory() as work:
        provider, services = Provider(work), []
        try:
            services.append(Service(work, 0, SETTINGS))
            command("account", "create", "shop", "--rulebook", "whatsapp", "--key", KEY)
            command("token", "create", "shop", "--secret", TOKEN, "--scopes", "read,write,upstream")
            command(
                "upstream", "connect", "shop", "--base-url", f"{provider.ready['url']}/v23.0",
                "--waba", provider.ready["waba_id"], "--token-file", "-", text=provider.ready["token"],
            )
            command("upstream", "import", "shop")
            services.append(Service(work, 1, SETTINGS))
            check(provider, services, freezes)
        finally:
            for process in [provider.process, *(service.process for service in services)]:
                process.send_signal(signal.SIGCONT)
                process.terminate()
                process.wait(timeout=30)


def check(provider, services, freezes):
    frozen, rounds, template, late = 0, 0, None, 0
    while frozen < freezes:
        rounds += 1
        if rounds > 3 * freezes + 5:
            sys.exit(f"only {frozen} of {rounds} rounds froze the instance with the lease")
        holder, other = services if rounds % 2 else services[::-1]
        call = "edit" if template else "create"
        # The call is being made while the instance is frozen.
        provider.call("POST", "/emulator/faults", {"call": call, "kind": "delay", "delay": "1s", "times": 1})
        before = operation(other)["id"]
        if template:
            body = {"components": document(name, rounds)["components"]}
            status, answer = holder.call("PATCH", f"/message_templates/{template}", body)
        else:
            name = f"order_{rounds}"
            status, answer = holder.call("POST", "/message_templates", document(name, rounds))
        if status not in (200, 201):
            sys.exit(f"the {call} got {status}: {answer}")

        def is_sent():
            found = operation(other)
            return found["id"] != before and found["state"] in ("sending", "done")

        wait_until(is_sent, 30, "the operation is being made")
        holder.process.send_signal(signal.SIGSTOP)
        started = time.monotonic()
        wait_until(lambda: operation(other)["state"] not in ("queued", "sending", "unknown", "probing"), 60, "it is settled", 0.05)
        was_frozen = time.monotonic() - started > LEASE_SECONDS / 2
        frozen += was_frozen
        settled = operation(other)
        kind = "template.created" if call == "create" else "template.edited"
        made = provider.events()[name].count(kind)
        if made != 1:
            sys.exit(f"the provider made the {call} of {name} {made} times before the frozen instance continued")
        holder.process.send_signal(signal.SIGCONT)
        wait_until(lambda: operation(holder)["id"] == settled["id"], 20, "the instance continues")
        time.sleep(0.5)
        for service in services:
            if operation(service) != settled:
                sys.exit(f"a stale write was stored: {settled} became {operation(service)}")
        if settled["state"] != "done":
            sys.exit(f"the {call} ended as {settled}")
        again = provider.events()[name].count(kind) - made
        # An attempt is a call or a probe: the call, its probe, and the call once more. Only then can the
        # first one come late.
        can_be_late = call == "edit" and was_frozen and settled["attempts"] == 3
        if again > can_be_late:
            sys.exit(f"the provider made the {call} of {name} {again} more times after {settled}")
        late += again
        if settled["attempts"] > 3:
            sys.exit(f"the {call} of {name} needed more than one repeated call: {settled}")
        template = None if template else answer["id"]
    print(
        f"{frozen} freezes of the instance with the lease in {rounds} rounds: "
        f"0 stale writes, 0 doubled calls, {late} late edits"
    )


main()
