"""Checks of schemathesis: the server refuses what the document excludes, and nothing else.

`REASONS` lists the refusals that no schema can state. Any other refusal with the status 400 or 422 of a request that
fits the document is a constraint that the document lacks.
"""

import re

import schemathesis
from schemathesis.core.failures import Failure
from schemathesis.specs.openapi.checks import is_unexpected_http_status_case, negative_data_rejection

# Code, pattern of the detail, pattern of the JSON pointer, and the reason why JSON Schema can't state the rule.
REASONS = [
    ("conflicting-fields", None, None, "compares fields with each other, or with the state"),
    ("cidr-has-host-bits", None, None, "compares the bits of an address with its prefix length"),
    ("range-reversed", None, None, "compares the ends of a range"),
    ("family-mismatch", None, None, "compares the families of several addresses"),
    ("outside-subnet", None, None, "compares an address with a subnet"),
    ("gateway-in-range", None, None, "compares a gateway with a subnet"),
    ("address-outside-pools", None, None, "compares an address with the pools that there are"),
    ("immutable-field", None, None, "compares a field with the resource as it is"),
    ("idempotency-key-reused", None, None, "compares the request with an earlier one"),
    ("invalid-cursor", None, None, "only the server makes cursors, and they are opaque"),
    ("limit-exceeded", r"\bbytes\b", None, "counts bytes of UTF-8, where JSON Schema counts characters"),
    ("limit-exceeded", r"an automatic pool of \d+ addresses", None, "adds replicas to a size"),
    ("limit-exceeded", r"such a token lives", None, "depends on the purpose of the token"),
    ("invalid-field", None, r"^/steps/\d+/body\b", "the path of a step determines the schema of its body"),
    ("unknown-field", None, r"^/steps/\d+/body\b", "the path of a step determines the schema of its body"),
    ("invalid-field", None, r"^/(capture|desired_state|interfaces)\b", "compares parts of a host policy with each other"),
    ("invalid-field", r"the name default belongs", None, "excludes one name"),
    ("limit-exceeded", r"the desired state has more than \d+ levels", None, "counts levels of any JSON"),
    ("invalid-field", r"floating point", None, "JSON Schema counts 73.0 among the integers"),
]

# Headers that the server reads leniently: it ignores a malformed trace and replaces a malformed name. A short budget
# ends in 504, which counts as a server error.
LENIENT = {f"#/components/parameters/{name}" for name in ("RequestId", "TraceParent", "BudgetMs")}

# Mutations without effect: `schemathesis.toml` sets the parameter to one value, or the server does not know the header.
WITHOUT_EFFECT = re.compile(
    r"parameter `at_least_revision` in query|in header - object with unexpected properties"
)


@schemathesis.hook
def before_load_schema(ctx, raw_schema):
    """Leaves out the headers that the server reads leniently."""
    for path in raw_schema["paths"].values():
        for operation in path.values():
            parameters = operation["parameters"]
            operation["parameters"] = [one for one in parameters if one.get("$ref") not in LENIENT]


def is_reason(problem):
    """True if one of the reasons applies to a problem."""
    pointers = [error["pointer"] for error in problem.get("errors", [])]
    return any(
        code == problem["code"]
        and (detail is None or re.search(detail, problem["detail"]))
        and (pointer is None or any(re.search(pointer, one) for one in pointers))
        for code, detail, pointer, _ in REASONS
    )


@schemathesis.check
def schema_valid_requests_are_accepted(ctx, response, case):
    """Refuses statuses 400 and 422 for requests that fit the document, unless one of the reasons applies."""
    if case.meta is None or is_unexpected_http_status_case(case) or response.status_code not in (400, 422):
        return
    problem = response.json()
    named = case.operation.definition.raw["responses"][str(response.status_code)]["description"].split(", ")
    if problem["code"] not in named:
        raise AssertionError(f"the document names no {problem['code']} here: {problem['detail']}")
    if case.meta.generation.mode.is_positive and not is_reason(problem):
        raise AssertionError(f"schema-valid request refused: {problem['code']}: {problem['detail']}")


@schemathesis.check
def schema_invalid_requests_are_refused(ctx, response, case):
    """Refuses to accept requests that break the document, except by mutations without effect."""
    try:
        negative_data_rejection(ctx, response, case)
    except Failure as failure:
        if not WITHOUT_EFFECT.search(failure.message):
            raise
