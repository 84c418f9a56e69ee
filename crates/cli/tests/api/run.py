"""Drives a daemon in a throw-away home with requests that its own description allows (schemathesis).

    run.py PINFOLD SCHEMATHESIS     the program to try, and the program that tries it

Every answer must have a documented status, none may be 500, and each must be what the description says. The seed and
the number of requests are fixed.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.request

from bridge import Bridge

HERE = pathlib.Path(__file__).resolve().parent
REPOSITORY = HERE.parents[3]
SEED = os.environ.get("API_SEED", "20150")
EXAMPLES = os.environ.get("API_EXAMPLES", "15")
CHECKS = ("not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,"
          "status_is_documented,every_line_is_as_described")
CHAT = "while read -r line; do echo \"PINFOLD_DONE $line\"; done"
SESSIONS = {
    "sleeper": ["--", "sleep", "100000"],
    "chat": ["--mode", "on-demand", "--turns", "done", "--", "sh", "-c", CHAT],
    "cat": ["--mode", "on-demand", "--", "cat"],
    "screen": ["--pty", "--mode", "on-demand", "--", "cat"],
    "failed": ["--mode", "once", "--", "sh", "-c", "echo no luck; exit 3"],
    "archived": ["--mode", "on-demand", "--", "cat"],
}
# Sessions that only some requests are about: with a turn that never ends, and with a message that is never delivered.
SPECIAL = {
    "turning": ["--turns", "done", "--", "sh", "-c", "trap '' INT; while read -r line; do sleep 100000; done"],
    "parked": ["--mode", "on-demand", "--force", "--", "/no/such/program"],
}


class World:
    """A home with a daemon and some sessions."""

    def __init__(self, pinfold):
        self.pinfold = pinfold
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="pinfold-api-")).resolve()
        for folder in ("copies", "work", "user"):
            (self.root / folder).mkdir()
        self.environment = {
            "PATH": os.environ["PATH"], "HOME": str(self.root / "user"), "LANG": "C.UTF-8",
            "PINFOLD_HOME": str(self.root / "home"), "PINFOLD_LOCKS": str(self.root / "locks"),
            "XDG_STATE_HOME": str(self.root / "state"),
        }

    def verb(self, *words):
        done = subprocess.run([self.pinfold, "--json", *words], env=self.environment, cwd=self.root / "work",
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        if done.returncode != 0:
            sys.exit(f"error: {words} ended with {done.returncode}: {done.stderr}")
        return json.loads(done.stdout)

    def inhabit(self):
        self.verb("up")
        for name, words in (SESSIONS | SPECIAL).items():
            self.verb("new", name, *words)
        self.verb("archive", "archived")
        self.verb("send", "turning", "work")
        answered = self.verb("send", "chat", "hello", "--wait", "30s")
        waiting = self.verb("send", "parked", "waits")
        return [f"chat:{answered['id']}", f"parked:{waiting['id']}", f"parked:{waiting['id']}"]

    def done(self, method, path):
        """After a `down` another daemon answers; archived sessions are restored, or soon all would be archived."""
        if path == "/v1/daemon/down":
            self.verb("up")
        if path in ("/v1/purge", "/v1/restore") or path.endswith(("/archive", "/restore")) or method == "DELETE":
            self.verb("restore", "--all")
            names = {session["name"] for session in self.verb("ls")}
            if "archived" not in names:
                self.verb("new", "archived", *SESSIONS["archived"])
            self.verb("archive", "archived")

    def end(self):
        """Ends whatever has this folder in its environment, by its id, and the folder."""
        for _ in range(50):
            found = [entry for entry in pathlib.Path("/proc").glob("[0-9]*") if self.is_ours(entry)]
            if not found:
                break
            for entry in found:
                try:
                    os.kill(int(entry.name), signal.SIGKILL)
                except ProcessLookupError:
                    pass
        shutil.rmtree(self.root, ignore_errors=True)
        return not found

    def is_ours(self, entry):
        try:
            zombie = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
            return not zombie and str(self.root).encode() in (entry / "environ").read_bytes()
        except (OSError, IndexError):
            return False


def describe(world, bridge):
    """The daemon's own description; and the same without what a line of a stream is, which hooks.py checks.

    schemathesis takes the schema of an event stream for that of a frame, with `id` and `event`; OpenAPI 3.1 does not say.
    """
    with urllib.request.urlopen(f"{bridge.url}/v1/openapi.json") as answer:
        document = json.load(answer)
    (world.root / "description.json").write_text(json.dumps(document))
    for operation in (operation for path in document["paths"].values() for operation in path.values()):
        content = operation["responses"]["200"]["content"]
        content.update({kind: {} for kind in content if kind in ("text/event-stream", "application/x-ndjson")})
    (world.root / "tried.json").write_text(json.dumps(document))


def schemathesis(program, bridge, world, messages):
    describe(world, bridge)
    environment = dict(os.environ, SCHEMATHESIS_HOOKS="hooks", PYTHONPATH=str(HERE), PYTHONDONTWRITEBYTECODE="1",
                       API_ROOT=str(world.root), API_SESSIONS=",".join(SESSIONS), API_MESSAGES=",".join(messages),
                       API_DESCRIPTION=str(world.root / "description.json"),
                       API_DOCUMENTATION=str(REPOSITORY / "docs/http.md"))
    words = [program, "run", str(world.root / "tried.json"), "--url", bridge.url, "--checks", CHECKS,
             "--mode", "positive", "--phases", "coverage,fuzzing", "--workers", "1", "--seed", SEED,
             "--generation-database", "none", "--max-examples", EXAMPLES, "--request-timeout", "60",
             "--suppress-health-check", "all", "--warnings", "off", "--no-color"]
    return subprocess.run(words, env=environment, cwd=world.root, timeout=300)


def checks_bite(program, world):
    """Checks that a 500 is found; otherwise everything that follows proves nothing."""
    bridge = Bridge(world.verb("status")["socket"], turn=lambda status: 500 if status == 200 else status)
    try:
        document = world.root / "document.json"
        with open(document, "w") as file:
            json.dump({"openapi": "3.1.0", "info": {"title": "one", "version": "1"}, "paths": {"/v1/ping": {"get": {
                "responses": {"200": {"description": "done"}, "default": {"description": "an error"}}}}}}, file)
        told = subprocess.run([program, "run", str(document), "--url", bridge.url, "--checks", "not_a_server_error",
                               "--max-examples", "1", "--no-color"], cwd=world.root, capture_output=True, timeout=60)
        return told.returncode == 1
    finally:
        bridge.close()


def main(pinfold, program):
    program = os.path.abspath(program)
    world = World(os.path.abspath(pinfold))
    ended = True
    try:
        messages = world.inhabit()
        if not checks_bite(program, world):
            sys.exit("error: an answer with status 500 was not found: the checks check nothing")
        bridge = Bridge(world.verb("status")["socket"], world.done)
        told = schemathesis(program, bridge, world, messages)
        bridge.close()
        report(world, bridge, told.returncode)
    finally:
        ended = world.end()
    if not ended:
        sys.exit("error: processes of the home are left")
    sys.exit(told.returncode)


def report(world, bridge, code):
    """Counts requests by status, names the addresses that never did anything, and exits as test runners do."""
    described = json.loads((world.root / "description.json").read_text())["paths"]
    answers = {(method.upper(), path): {} for path, methods in described.items() for method in methods}
    total = {}
    for (method, path, status), count in bridge.statuses.items():
        total[status] = total.get(status, 0) + count
        for known, of in answers.items():
            if known[0] == method and fits(known[1], path):
                of[status] = of.get(status, 0) + count
    print(f"{sum(total.values())} requests: {counted(total)}")
    idle = [f"{method} {path} ({counted(of)})" for (method, path), of in answers.items() if 200 not in of]
    print(f"never answered with 200: {', '.join(idle) or 'none'}")
    good, bad = (len(answers), 0) if code == 0 else (0, 1)
    print(f"test result: {'ok' if code == 0 else 'FAILED'}. {good} passed; {bad} failed (addresses)")


def counted(statuses):
    return ", ".join(f"{count} x {status}" for status, count in sorted(statuses.items()))


def fits(template, path):
    """Whether a path is one of a template: `/v1/sessions/{session}`."""
    return re.fullmatch(re.sub(r"\\{[a-z]+\\}", "[^/]+", re.escape(template)), path) is not None


if __name__ == "__main__":
    main(*sys.argv[1:])
