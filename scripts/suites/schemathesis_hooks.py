"""What schemathesis cannot know about the service: which refusals a good request may meet, and
how to keep requests from getting into each other's way."""

import itertools

import schemathesis

# Rules that JSON Schema cannot express. A document that meets the schema may break these and no
# others.
BEYOND_THE_SCHEMA = {
    # Placeholders count from {{1}} without gaps: a pattern would have to list every set of them.
    "placeholder-gap",
    # One sample for each different placeholder: a schema cannot count inside a string.
    "samples-count",
    # Which IPv6 addresses and which letters beyond ASCII make a host: patterns that say so exist,
    # but not in a form that every usual engine reads.
    "url-host",
}

# Every this many requests are sent as they were generated.
UNTOUCHED = 8

numbers = itertools.count(1)


@schemathesis.check
def only_the_inexpressible_is_refused(ctx, response, case):
    """A 422 for a document that meets the schema names only rules the schema cannot express."""
    if response.status_code != 422 or case.meta is None or not case.meta.generation.mode.is_positive:
        return
    problem = response.json()
    if problem["type"] == "/problems/idempotency-key-reused":
        # The same key with another body; the description cannot say which keys were used.
        return
    broken = {violation["rule"] for violation in problem["violations"]}
    assert broken <= BEYOND_THE_SCHEMA, f"the schema allows what these rules refuse: {broken - BEYOND_THE_SCHEMA}"


@schemathesis.hook
def before_call(context, case, kwargs):
    """Gives most good requests a name and an Idempotency-Key of their own.

    Generated names are short and repeat: without this nearly every creation after the first few
    would be answered 409 or 422, and the rules behind the name would never be reached. Some
    requests are left alone, so that these two answers are seen as well.
    """
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    number = next(numbers)
    if number % UNTOUCHED == 0:
        return
    if isinstance(case.body, dict) and isinstance(case.body.get("name"), str):
        case.body["name"] = fresh(case.body["name"], number)
    key = case.headers.get("Idempotency-Key") if case.headers else None
    if key is not None:
        case.headers["Idempotency-Key"] = fresh(key, number)


def fresh(text, number):
    """The text with a number at its end; a long text keeps its length, since it may be a limit."""
    tail = f"~{number}"
    return (text[: -len(tail)] if len(text) > 100 else text) + tail
