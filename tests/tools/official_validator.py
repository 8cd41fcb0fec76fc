"""Validate crates with rocrate-validator, offline: `.venv/validator/bin/python official_validator.py CONTEXT CRATE.zip ...`.

Prints, as JSON, what the validator finds in each crate against Workflow Run Crate 0.5, which includes Process Run Crate,
Workflow RO-Crate and RO-Crate 1.1. The validator carries the profiles. It takes JSON-LD contexts from the network or from its
cache, which is filled here: CONTEXT is the context that rocrate carries, that of RO-Crate 1.3, in which terms for workflows
have new addresses. The validator wants an older rich than ours and runs in an environment of its own (in the Makefile).
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

BIOSCHEMAS = "https://bioschemas.org"
TERMS_OF_1_1 = {
    "ComputationalWorkflow": f"{BIOSCHEMAS}/ComputationalWorkflow",
    "FormalParameter": f"{BIOSCHEMAS}/FormalParameter",
    "input": f"{BIOSCHEMAS}/ComputationalWorkflow#input",
    "output": f"{BIOSCHEMAS}/ComputationalWorkflow#output",
}
NOT_IN_1_1 = ("Profile", "sha256")
RUN_TERMS = {"sha256": "https://w3id.org/ro/terms/workflow-run#sha256"}


def contexts(bundled: Path) -> dict[str, dict]:
    """The two contexts that our crates name, by address."""
    context = json.loads(bundled.read_text())
    terms = {name: address for name, address in context["@context"].items() if name not in NOT_IN_1_1}
    return {
        "https://w3id.org/ro/crate/1.1/context": {"@context": terms | TERMS_OF_1_1},
        "https://w3id.org/ro/terms/workflow-run/context": {"@context": RUN_TERMS},
    }


def fill_cache(path: Path, pages: dict[str, dict]) -> None:
    from requests import Request
    from requests_cache import CachedResponse, CachedSession

    with CachedSession(str(path), backend="sqlite", expire_after=-1) as session:
        for address, page in pages.items():
            response = CachedResponse(status_code=200, url=address, headers={"Content-Type": "application/ld+json"})
            response._content = json.dumps(page).encode()
            key = session.cache.create_key(session.prepare_request(Request("GET", address)))
            session.cache.responses[key] = response


def findings(crate: str, cache: Path) -> list[tuple[str, str, str]]:
    """Severity, check and message of everything that the profiles require or recommend and the crate does not meet."""
    from rocrate_validator import services
    from rocrate_validator.models import Severity

    result = services.validate(
        {
            "rocrate_uri": crate,
            "profile_identifier": "workflow-run-crate",
            "requirement_severity": Severity.RECOMMENDED,
            "offline": True,
            "cache_path": str(cache),
        }
    )
    return sorted({(i.severity.name, i.check.identifier, i.message.strip()) for i in result.get_issues()})


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        fill_cache(Path(folder) / "cache", contexts(Path(sys.argv[1])))
        print(json.dumps({crate: findings(crate, Path(folder) / "cache") for crate in sys.argv[2:]}))
