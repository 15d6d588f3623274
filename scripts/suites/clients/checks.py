"""What the rounds of the Python clients share: counting checks, and comparing what was sent with
what is read back. A check that fails is told at once, and the round goes on."""

import os
import sys
from importlib.metadata import version

ADDRESS = os.environ["SUITE_ADDRESS"]
ACCOUNT = os.environ["SUITE_ACCOUNT"]
TOKEN = os.environ["SUITE_TOKEN"]

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))

_passed = 0
_failed = 0


def check(what, good, *seen):
    """Counts one check; `seen` is told if it fails."""
    global _passed, _failed
    if good:
        _passed += 1
    else:
        _failed += 1
        print(f"  not so: {what}", *(f"\n    {it!r}" for it in seen), file=sys.stderr)


def equal(what, seen, wanted):
    check(what, seen == wanted, seen, wanted)


def refused(what, error, call):
    """Demands that a call raises that error, and gives it back."""
    try:
        answer = call()
    except error as raised:
        check(what, True)
        return raised
    except Exception as raised:  # any other is the failure that is looked for
        check(what, False, raised)
    else:
        check(what, False, answer)
    return None


def finish(package):
    """Tells the total and ends the round."""
    if _failed:
        print(f"{package} {version(package)}: {_failed} of {_passed + _failed} checks failed")
    else:
        print(f"{package} {version(package)}: {_passed} checks passed")
    sys.exit(_failed > 0 or _passed == 0)


def missing(sent, read, at=""):
    """Where what was read back does not hold what was sent. Some things are read back otherwise, as
    from Meta: the handle of a sample as its address, the code of a button as a list, words in
    capitals, and ids as strings."""
    if isinstance(sent, dict):
        if not isinstance(read, dict):
            return [at]
        if sent.get("type") == "COPY_CODE" and isinstance(sent.get("example"), str):
            sent = {**sent, "example": [sent["example"]]}
        if "flow_action" in sent:
            sent = {**sent, "flow_action": sent["flow_action"].upper()}
        if "meta_app_id" in sent:
            sent = {**sent, "meta_app_id": str(sent["meta_app_id"])}
        return [
            gone
            for key, value in sent.items()
            for gone in (
                []
                if key == "header_handle" and read.get(key, [""])[0].startswith(f"{ADDRESS}/media/")
                else missing(value, read.get(key), f"{at}/{key}")
            )
        ]
    if isinstance(sent, list):
        if not isinstance(read, list) or len(sent) != len(read):
            return [at]
        pairs = enumerate(zip(sent, read, strict=True))
        return [gone for index, pair in pairs for gone in missing(*pair, f"{at}/{index}")]
    return [] if sent == read else [at]
