"""What schemathesis does not know of pinfold: names that exist, programs that can run, and which statuses are documented.

The schema says `string` where most strings are nobody's name: without these, nearly every answer would be 404. A request
stays valid by the schema, and the same seed makes the same requests.
"""

import hashlib
import itertools
import json
import os
import pathlib
import re

import jsonschema_rs
import schemathesis

ROOT = pathlib.Path(os.environ["API_ROOT"])
SESSIONS = os.environ["API_SESSIONS"].split(",")
# Messages that exist, each as `session:id`.
MESSAGES = [pair.split(":") for pair in os.environ["API_MESSAGES"].split(",")]
DESCRIPTION = json.loads(pathlib.Path(os.environ["API_DESCRIPTION"]).read_text())
STATES = ["running", "idle", "stopped", "failed,archived", "no-such-state"]
# Waits and streams must end soon, or the suite would not.
SHORT = ["10ms", "50ms", "1s", "soon"]
PROGRAMS = [["sleep", "100000"], ["cat"], ["true"], ["sh", "-c", "exit 3"], ["/no/such/program"]]


def documented():
    """The statuses of docs/http.md, except those that blame the daemon: a valid request never gets one."""
    text = pathlib.Path(os.environ["API_DOCUMENTATION"]).read_text()
    table = text[text.index("| status | when |"):].split("\n\n")[0]
    rows = [row.split("|")[1] for row in table.splitlines()[2:]]
    statuses = {int(word) for row in rows for word in re.findall(r"\d+", row)}
    assert {400, 404, 409, 422, 500} <= statuses, statuses
    return (statuses | {200}) - {500}


DOCUMENTED = documented()


@schemathesis.check
def status_is_documented(ctx, response, case):
    assert response.status_code in DOCUMENTED, f"{response.status_code} is not in the table of docs/http.md"


@schemathesis.check
def every_line_is_as_described(ctx, response, case):
    """A stream is described by the contents of each line or event."""
    kind = response.headers.get("content-type", [""])[0].split(";")[0]
    if response.status_code != 200 or kind not in ("application/x-ndjson", "text/event-stream"):
        return
    operation = DESCRIPTION["paths"][case.operation.path][case.operation.method.lower()]
    described = operation["responses"]["200"]["content"][kind]["schema"]
    if described is True:
        return
    validator = jsonschema_rs.validator_for({**described, "components": DESCRIPTION["components"]})
    for line in response.content.decode().splitlines():
        data = line.removeprefix("data:") if kind == "text/event-stream" else line
        if data and (data != line or kind == "application/x-ndjson"):
            problem = next(iter(validator.iter_errors(json.loads(data))), None)
            assert problem is None, f"{data} is not as described: {problem}"


class Dice:
    """Choices that depend on the request and its number: addresses without a body are generated alike again and again."""

    requests = itertools.count()

    def __init__(self, case):
        made = [next(self.requests), case.operation.label, case.path_parameters, case.query, case.body]
        self.state = json.dumps(made, default=repr, sort_keys=True).encode()

    def of(self, choices):
        self.state = hashlib.sha256(self.state).digest()
        return choices[int.from_bytes(self.state[:8], "big") % len(choices)]


@schemathesis.hook
def before_call(context, case, kwargs):
    dice = Dice(case)
    if case.path_parameters:
        known(case.operation.path, case.path_parameters, dice)
    short(case, dice)
    if isinstance(case.body, dict):
        body_of(case.operation.path, case.body, dice)


def known(path, parameters, dice):
    own = {"/interrupt": "turning", "/restore": "archived"}.get(path.removeprefix("/v1/sessions/{session}"))
    if "session" in parameters and dice.of([True, True, True, False]):
        parameters["session"] = dice.of([own or dice.of(SESSIONS), dice.of(SESSIONS)])
    if "message" in parameters and dice.of([True, True, True, False]):
        parameters["session"], parameters["message"] = dice.of(MESSAGES)


def short(case, dice):
    """Every wait is short."""
    query = case.query if isinstance(case.query, dict) else {}
    if case.operation.path.endswith("/wait"):
        query["timeout"] = dice.of(SHORT)
        if dice.of([True, False]):
            query["for"] = dice.of(STATES)
    if "wait" in query:
        query["wait"] = dice.of(SHORT)
    if isinstance(case.query, dict):
        case.query = query


def body_of(path, body, dice):
    if path == "/v1/daemon/backup" and (str(body.get("path", "")).startswith("/") or dice.of([True, False])):
        body["path"] = str(ROOT / "copies" / f"{dice.of(range(1 << 30))}.db")
    if path == "/v1/sessions" or path.endswith("/set"):
        definition(path, body, dice)
    if path.endswith("/answer") and dice.of([True, False]):
        body["answer"] = dice.of(["allow", "deny"])
    if path == "/v1/locks/hold":
        hold(body, dice)


def definition(path, body, dice):
    if dice.of([True, True, False]):
        body["name"] = f"made-{dice.of(range(40))}"
    if dice.of([True, True, False]):
        body["command"] = dice.of(PROGRAMS)
        body["agent"] = None
    for field in ("dir", "caller_dir"):
        if field in body:
            body[field] = dice.of([str(ROOT / "work"), str(ROOT), None, body[field]])
    if dice.of([True, False]):
        plain = ["mode", "memory", "idle", "stop_grace", "input", "turns", "parent", "vendor_session"]
        body.update({field: None for field in plain if field in body})


def hold(body, dice):
    if dice.of([True, True, False]):
        body["resource"] = f"key:{dice.of(range(5))}"
    if body.get("wait") is not None:
        body["wait"] = dice.of(SHORT)
