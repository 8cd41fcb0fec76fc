"""What the profiles of run crates ask of a crate (RO-Crate 1.1, Process and Workflow Run Crate 0.5), and of its files."""

from __future__ import annotations

import hashlib
import json
import zipfile
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote


def listed(value: Any) -> list:
    return value if isinstance(value, list) else [] if value is None else [value]


class OpenedCrate:
    """The entities of a crate by id, its files, and the checks."""

    def __init__(self, path: Path):
        self.archive = zipfile.ZipFile(path)
        self.names = set(self.archive.namelist())
        self.content = json.loads(self.archive.read("ro-crate-metadata.json"))
        graph = self.content["@graph"]
        self.entities = {entity["@id"]: entity for entity in graph}
        assert len(self.entities) == len(graph), "an id is used twice"
        self.root = self.entities["./"]

    def of_type(self, kind: str) -> list[dict]:
        return [entity for entity in self.entities.values() if kind in listed(entity["@type"])]

    def linked(self, entity: dict, key: str) -> list[dict]:
        return [self.entities[reference["@id"]] for reference in listed(entity.get(key))]

    def problems(self) -> list[str]:
        """Every MUST of the profiles that is not met, and every broken link or wrong file."""
        return [*self._structure(), *self._links(), *self._actions(), *self._files()]

    def _structure(self) -> list[str]:
        wrong = []
        context = self.content["@context"]
        if context != ["https://w3id.org/ro/crate/1.1/context", "https://w3id.org/ro/terms/workflow-run/context"]:
            wrong.append(f"context {context}")
        metadata = self.entities["ro-crate-metadata.json"]
        if metadata["conformsTo"][0] != {"@id": "https://w3id.org/ro/crate/1.1"} or metadata["about"] != {"@id": "./"}:
            wrong.append("metadata descriptor")
        wrong += [
            f"root has no {key}"
            for key in ("name", "description", "datePublished", "license")
            if not self.root.get(key)
        ]
        profiles = {
            entity["@id"] for entity in self.linked(self.root, "conformsTo") if "CreativeWork" in entity["@type"]
        }
        wanted = {
            "https://w3id.org/ro/wfrun/process/0.5",
            "https://w3id.org/ro/wfrun/workflow/0.5",
            "https://w3id.org/workflowhub/workflow-ro-crate/1.0",
        }
        wrong += [f"root does not conform to {profile}" for profile in wanted - profiles]
        (main,) = self.linked(self.root, "mainEntity")
        if not {"File", "SoftwareSourceCode", "ComputationalWorkflow"} <= set(listed(main["@type"])):
            wrong.append("the main entity is no workflow")
        if not main.get("name") or not self.linked(main, "programmingLanguage"):
            wrong.append("the workflow has no name or language")
        return wrong

    def _links(self) -> list[str]:
        """References to entities that are missing, and data that the root does not reach by hasPart."""
        wrong = [
            f"{entity['@id']}.{key} -> {reference['@id']}"
            for entity in self.entities.values()
            for key, value in entity.items()
            for reference in listed(value)
            if isinstance(reference, dict) and reference["@id"] not in self.entities
            if reference["@id"] != "https://w3id.org/ro/crate/1.1"
        ]
        reached, waiting = set(), [self.root]
        while waiting:
            for part in self.linked(waiting.pop(), "hasPart"):
                if part["@id"] not in reached:
                    reached.add(part["@id"])
                    waiting.append(part)
        data = {e["@id"] for e in [*self.of_type("File"), *self.of_type("Dataset")]} - {"./"}
        return wrong + [f"{name} is no part of the root" for name in data - reached]

    def _actions(self) -> list[str]:
        wrong = []
        actions = self.of_type("CreateAction")
        main = self.root["mainEntity"]
        if not any(action["instrument"] == main for action in actions):
            wrong.append("no action has the workflow as its instrument")
        mentioned = {entity["@id"] for entity in self.linked(self.root, "mentions")}
        for action in actions:
            name = action["@id"]
            kinds = {kind for tool in self.linked(action, "instrument") for kind in listed(tool["@type"])}
            if not kinds & {"SoftwareApplication", "SoftwareSourceCode", "ComputationalWorkflow"}:
                wrong.append(f"{name}: the instrument is no software")
            wrong += [
                f"{name} has no {key}" for key in ("name", "description", "endTime", "result") if not action.get(key)
            ]
            datetime.fromisoformat(action["endTime"])
            if name not in mentioned:
                wrong.append(f"{name} is not mentioned by the root")
            for value in self.linked(action, "object"):
                if action["instrument"] == main and not self.linked(value, "exampleOfWork"):
                    wrong.append(f"{name}: {value['@id']} realises no parameter")
            failed = action["actionStatus"].endswith("FailedActionStatus")
            if failed != ("error" in action):
                wrong.append(f"{name}: status and error do not agree")
        wrong += [
            f"{tool['@id']} has no version"
            for tool in self.of_type("SoftwareApplication")
            if not tool.get("softwareVersion")
        ]
        return wrong

    def _files(self) -> list[str]:
        wrong = []
        for file in self.of_type("File"):
            name = unquote(file["@id"])
            if name not in self.names:
                wrong.append(f"{name} is listed and missing")
                continue
            content = self.archive.read(name)
            if int(file["contentSize"]) != len(content) or file["sha256"] != hashlib.sha256(content).hexdigest():
                wrong.append(f"{name} has another size or digest")
        for folder in self.of_type("Dataset"):
            if folder is not self.root and not any(n.startswith(unquote(folder["@id"])) for n in self.names):
                wrong.append(f"{folder['@id']} is empty")
        lines = self.archive.read("manifest-sha256.txt").decode().splitlines()
        manifest = {name: digest for digest, name in (line.split("  ", 1) for line in lines)}
        files = {name for name in self.names if not name.endswith("/")}
        if set(manifest) != files - {"ro-crate-metadata.json", "manifest-sha256.txt"}:
            wrong.append("the manifest does not list every file")
        wrong += [n for n, d in manifest.items() if hashlib.sha256(self.archive.read(n)).hexdigest() != d]
        return wrong
