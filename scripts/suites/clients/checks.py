"""Helpers of the Python client rounds: count checks, and compare documents sent with documents read. A
failed check is printed immediately, and the round continues."""

import os
import sys
from importlib.metadata import version

# Rounds with an emulator start it themselves.
ADDRESS = os.environ.get("SUITE_ADDRESS")
ACCOUNT = os.environ.get("SUITE_ACCOUNT")
TOKEN = os.environ.get("SUITE_TOKEN")

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))

_passed = 0
_failed = 0


def check(description, passed, *details):
    """Counts one check; prints the details if it fails."""
    global _passed, _failed
    if passed:
        _passed += 1
    else:
        _failed += 1
        print(f"  failed: {description}", *(f"\n    {it!r}" for it in details), file=sys.stderr)


def check_equal(description, actual, expected):
    check(description, actual == expected, actual, expected)


def expect_error(description, error, call):
    """Checks that a call raises this error, and returns the exception."""
    try:
        result = call()
    except error as raised:
        check(description, True)
        return raised
    except Exception as raised:  # any other exception is a failed check
        check(description, False, raised)
    else:
        check(description, False, result)
    return None


def finish(package, title=None):
    """Prints the total and exits. The title is by default the package with its version."""
    title = title or f"{package} {version(package)}"
    title += " with " + os.environ["SUITE_OPTIONS"] if os.environ.get("SUITE_OPTIONS") else ""
    if _failed:
        print(f"{title}: {_failed} of {_passed + _failed} checks failed")
    else:
        print(f"{title}: {_passed} checks passed")
    sys.exit(_failed > 0 or _passed == 0)


def differences(sent, read, path=""):
    """Returns the paths where the document read differs from the document sent. Some values are
    returned differently, as Meta does: a sample handle as its URL, a button code as a list, enum
    values in upper case, and ids as strings."""
    if isinstance(sent, dict):
        if not isinstance(read, dict):
            return [path]
        if sent.get("type") == "COPY_CODE" and isinstance(sent.get("example"), str):
            sent = {**sent, "example": [sent["example"]]}
        if "flow_action" in sent:
            sent = {**sent, "flow_action": sent["flow_action"].upper()}
        if "meta_app_id" in sent:
            sent = {**sent, "meta_app_id": str(sent["meta_app_id"])}
        return [
            difference
            for key, value in sent.items()
            for difference in (
                []
                if key == "header_handle" and read.get(key, [""])[0].startswith(f"{ADDRESS}/media/")
                else differences(value, read.get(key), f"{path}/{key}")
            )
        ]
    if isinstance(sent, list):
        if not isinstance(read, list) or len(sent) != len(read):
            return [path]
        pairs = enumerate(zip(sent, read, strict=True))
        return [it for index, pair in pairs for it in differences(*pair, f"{path}/{index}")]
    return [] if sent == read else [path]
