"""What the roles may not do is answered to none of them with what was asked for.

The matrix of roles is a golden file that people read; here the server as a whole is held to it, with what
nobody would think of sending. The role is CORPUS_CONTRACT_ROLE, the file CORPUS_CONTRACT_MATRIX.
"""

import os
import re

import schemathesis


def denied(role):
    """The operations that the role may do nowhere."""
    lines = open(os.environ["CORPUS_CONTRACT_MATRIX"]).read().splitlines()
    found = set()
    for line in lines:
        match = re.match(r"(\w+): (.*)", line)
        decisions = dict(part.split(" ", 1) for part in match[2].split(", ")) if match and ", " in match[2] else {}
        if decisions.get(role, "yes") != "yes":
            found.add(match[1])
    return found


@schemathesis.serializer("application/zstd")
def archive(ctx, value):
    """What is no archive, of any kind: it must be refused, and never break anything."""
    del ctx
    value = getattr(value, "data", value)
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")


ROLE = os.environ["CORPUS_CONTRACT_ROLE"]
DENIED = denied(ROLE)
assert ROLE == "ops" or len(DENIED) > 3, "the matrix could not be read"


@schemathesis.check
def the_matrix_of_roles(ctx, response, case):
    operation = case.operation.definition.raw["operationId"]
    if operation in DENIED and response.status_code < 400:
        raise AssertionError(f"{ROLE} was answered {response.status_code} to {operation}")
