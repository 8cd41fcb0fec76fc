"""A results folder as a Workflow Run RO-Crate: one zip file that says what was run, with what, and what came out.

Profiles: Workflow Run Crate and Process Run Crate 0.5, Workflow RO-Crate 1.0, on RO-Crate 1.1 (https://w3id.org/ro/wfrun). They
are not the newest, but those that the official rocrate-validator and most readers know; 0.6 on RO-Crate 1.3 gives other
addresses to the terms for workflows and their parameters.
The workflow is the command that runs the experiments; there is an action for each size and seed, and one for each experiment.
"""

from __future__ import annotations

import hashlib
import json
import mimetypes
import os
import shlex
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from gyrostat import __version__
from gyrostat.errors import GyrostatError
from gyrostat.experiments import registry
from gyrostat.experiments.paper_files import code_files
from gyrostat.parallel.whole_files import plain
from gyrostat.reproduce.store import ResultsStore

if TYPE_CHECKING:
    from rocrate.rocrate import ROCrate

PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": ("Process Run Crate", "0.5"),
    "https://w3id.org/ro/wfrun/workflow/0.5": ("Workflow Run Crate", "0.5"),
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": ("Workflow RO-Crate", "1.0"),
}
TERMS = "https://w3id.org/ro/terms/workflow-run/context"
MANIFEST = "manifest-sha256.txt"
NO_LICENCE = "No licence is stated: ask the authors before you use these results."
WORKFLOW_PROFILE = "https://bioschemas.org/profiles/ComputationalWorkflow/1.0-RELEASE"
README = "README.md"
KINDS = {
    ".md": "text/markdown",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".toml": "application/toml",
    ".sh": "application/x-sh",
}


@dataclass(kw_only=True)
class CrateAction:
    """Something that was run: its inputs by name, and the files and folders (paths in the crate) that it wrote."""

    key: str
    name: str
    description: str
    inputs: Mapping[str, Any]
    outputs: Sequence[str]
    ended: str
    started: str = ""
    of_workflow: bool = False
    error: str = ""


@dataclass(kw_only=True)
class CrateContents:
    """Everything that goes into a crate. Paths are those in the crate; a file is a source on disk or a text."""

    name: str
    description: str
    workflow: str
    workflow_name: str
    parameters: Mapping[str, str]
    language: tuple[str, str]
    files: dict[str, Path | str]
    descriptions: Mapping[str, str]
    folders: dict[str, Path] = field(default_factory=dict)
    inner_folders: Mapping[str, str] = field(default_factory=dict)
    actions: list[CrateAction]
    versions: Mapping[str, str]
    citations: Mapping[str, str] = field(default_factory=dict)


def export_results(
    folder: str | Path, path: str | Path, *, papers: Sequence[str] = (), author: str = "", licence: str = ""
) -> Path:
    """Write the results of a folder as a crate.

    ``papers`` are files or modules with papers that are not installed. The code of papers that are not built in goes into the
    crate. ``author`` is who ran it, and ``licence`` the address of the licence of the results.
    """
    store = ResultsStore(folder)
    store.refuse_losses()
    names = store.finished()
    if not names:
        raise GyrostatError(f"{str(folder)!r} holds no finished experiment: run gyrostat reproduce --out {folder}.")
    for reference in papers:
        registry.add_paper(reference)
    return write_crate(path, _results_contents(store, names), author=author, licence=licence)


def _results_contents(store: ResultsStore, names: Sequence[str]) -> CrateContents:
    runs = {name: store.run(name) for name in names}
    groups: dict[tuple[str, int], list[str]] = {}
    for name, run in runs.items():
        groups.setdefault((run["size"], run["seed"]), []).append(name)
    latest = max(runs.values(), key=lambda run: run["time"])
    versions = latest.get("versions", {"gyrostat": latest["version"]})
    commands = [_command(of_group, runs, size, seed) for (size, seed), of_group in groups.items()]
    files: dict[str, Path | str] = {
        "reproduce.sh": "#!/bin/sh\nset -e\npip install -r requirements.txt\n" + "\n".join(commands) + "\n",
        "requirements.txt": "".join(f"{name}=={v}\n" for name, v in versions.items() if name != "python"),
        "environment.json": json.dumps(plain({name: _environment(run) for name, run in runs.items()}), indent=1) + "\n",
        **{path: store.folder / path for path in ("claims.json", "index.html") if (store.folder / path).is_file()},
        **_files_below(store.folder, "pages"),
        **_files_below(store.folder, "figures"),
        **_files_below(store.folder, "errors"),
        **_code_of_plug_ins({name.split("/")[0] for name in names}),
    }
    actions = [
        CrateAction(
            key=f"run-{size}-{seed}",
            name=f"{len(of_group)} experiments at size {size} with seed {seed}",
            description=command,
            inputs={"size": size, "seed": seed},
            outputs=[
                *(path for path in files if path in ("claims.json", "index.html") or path.startswith("pages/")),
                *(path for name in of_group for path in _outputs(name, files)),
            ],
            started=min(_started(runs[name]) for name in of_group),
            ended=max(runs[name]["time"] for name in of_group),
            of_workflow=True,
        )
        for ((size, seed), of_group), command in zip(groups.items(), commands, strict=True)
    ]
    actions += [
        CrateAction(
            key=f"experiment-{name}",
            name=f"{name}: {run.get('title', name)}",
            description=_command([name], runs, run["size"], run["seed"]),
            inputs={"size": run["size"], "seed": run["seed"], "derived_seed": run["derived_seed"], **run["settings"]},
            outputs=_outputs(name, files),
            started=_started(run),
            ended=run["time"],
        )
        for name, run in runs.items()
    ]
    actions += [_failure(path) for path in sorted((store.folder / "errors").glob("*.txt"))]
    papers = {run["paper"]["link"]: run["paper"]["title"] for run in runs.values() if run.get("paper", {}).get("link")}
    return CrateContents(
        name=f"Reproduction of {', '.join(dict.fromkeys(name.split('/')[0] for name in names))}",
        description=f"{len(names)} experiments with {len(store.claims())} claims, run by gyrostat {versions['gyrostat']}.",
        workflow="reproduce.sh",
        workflow_name="The commands that run the experiments",
        parameters={"size": "Text", "seed": "Integer"},
        language=("https://pubs.opengroup.org/onlinepubs/9799919799/utilities/sh.html", "POSIX shell"),
        files=files,
        descriptions={
            "reproduce.sh": "Runs the same experiments again",
            "requirements.txt": "The versions that the results were computed with",
            "environment.json": "Versions, code digest, machine and settings of every experiment",
            "claims.json": "Every claim with its criterion, measured numbers and verdict",
            "index.html": "The report; pages/ has a page for each paper, if this is not the only one",
        },
        folders={"results.zarr": store.data},
        inner_folders={f"results.zarr/{name}": f"Data of {name} (xarray, zarr 3)" for name in names},
        actions=actions,
        versions=versions,
        citations=papers,
    )


def _failure(path: Path) -> CrateAction:
    """The action of an experiment that could not be computed: its file of details is in the crate."""
    lines = path.read_text(encoding="utf-8").strip().splitlines() or ["no details"]
    return CrateAction(
        key=f"failed-{path.stem}",
        name=f"{path.stem} could not be computed",
        description=f"Details: errors/{path.name}",
        inputs={},
        outputs=[f"errors/{path.name}"],
        ended=datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(timespec="seconds"),
        error=lines[-1],
    )


def _command(names: Sequence[str], runs: Mapping[str, Mapping[str, Any]], size: str, seed: int) -> str:
    references = " ".join(shlex.quote(_crate_reference(name, runs[name])) for name in names)
    return f"gyrostat reproduce {references} --size {size} --seed {seed} --out results"


def _crate_reference(name: str, run: Mapping[str, Any]) -> str:
    """How to name an experiment inside the crate: a paper that was given as a file is at another path there."""
    reference = run.get("reference", name)
    if ".py" not in reference:
        return reference
    return f"papers/{name.split('/')[0]}/{reference.split('.py')[0].split('/')[-1]}.py{reference.split('.py', 1)[1]}"


def _environment(run: Mapping[str, Any]) -> dict[str, Any]:
    keys = ("version", "versions", "code", "machine", "time", "seconds", "size", "seed", "derived_seed", "settings")
    return {key: run[key] for key in keys if key in run}


def _started(run: Mapping[str, Any]) -> str:
    ended = datetime.fromisoformat(run["time"])
    return (ended - timedelta(seconds=run["seconds"])).isoformat(timespec="seconds")


def _outputs(name: str, files: Mapping[str, Any]) -> list[str]:
    return [f"results.zarr/{name}/", *(path for path in files if path.rsplit(".", 1)[0] == f"figures/{name}")]


def _files_below(folder: Path, name: str) -> dict[str, Path | str]:
    found = sorted(path for path in (folder / name).rglob("*") if path.is_file() and not path.name.startswith("."))
    return {path.relative_to(folder).as_posix(): path for path in found}


def _code_of_plug_ins(papers: set[str]) -> dict[str, Path | str]:
    """The code of papers that are not built in, as far as it is known here."""
    found: dict[str, Path | str] = {}
    for paper in sorted(papers & set(registry.paper_names()) - set(registry.PAPERS)):
        paths = code_files(registry.paper_address(paper))
        root = Path(os.path.commonpath([path.parent for path in paths]))
        root = root.parent if (root / "__init__.py").exists() else root
        found |= {f"papers/{paper}/{path.relative_to(root).as_posix()}": path for path in paths}
    return found


# -------------------------------------------------------------------------------------------------- any crate


def write_crate(path: str | Path, contents: CrateContents, *, author: str = "", licence: str = "") -> Path:
    """Write a crate as a zip file, whole or not at all."""
    path = Path(path)
    if path.suffix != ".zip":
        raise GyrostatError(f"a crate is a zip file: give --crate a name that ends in .zip; got {str(path)!r}.")
    try:
        from rocrate.rocrate import ROCrate
    except ImportError:
        raise GyrostatError("a crate needs rocrate: install it with pip install 'gyrostat[crate]'.") from None
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as scratch:
        crate = ROCrate(version="1.1")
        crate.metadata.extra_contexts.append(TERMS)
        contents.files[README] = _readme(contents)
        _describe_root(crate, contents, licence)
        _add_data(crate, contents, Path(scratch))
        ours = _add_software(crate, contents)
        _add_actions(crate, contents, ours, author)
        part = Path(scratch) / "crate.zip"
        crate.write_zip(part)
        _add_folders(part, crate)
        os.replace(part, path)
    return path


def _add_folders(archive: Path, crate: ROCrate) -> None:
    """Entries for the folders that the metadata name: some readers look for them in the list of a zip file."""
    with zipfile.ZipFile(archive, "a") as opened:
        for folder in crate.get_by_type("Dataset"):
            if folder is not crate.root_dataset:
                opened.mkdir(unquote(folder.id))


def _describe_root(crate: ROCrate, contents: CrateContents, licence: str) -> None:
    root = crate.root_dataset
    root["name"], root["description"] = contents.name, contents.description
    root["license"] = _entity(crate, licence, "CreativeWork", name=licence) if licence else NO_LICENCE
    crate.metadata["conformsTo"] = [{"@id": f"https://w3id.org/ro/crate/{crate.version}"}, {"@id": list(PROFILES)[-1]}]
    root["datePublished"] = datetime.now(UTC).date().isoformat()
    root["conformsTo"] = [
        _entity(crate, address, "CreativeWork", name=name, version=version)
        for address, (name, version) in PROFILES.items()
    ]
    if contents.citations:
        root["citation"] = _single(
            [_entity(crate, link, "ScholarlyArticle", name=title) for link, title in contents.citations.items()]
        )


def _single(entities: list[Any]) -> Any:
    """A list of one as that one, as RO-Crate recommends."""
    return entities[0] if len(entities) == 1 else entities


def _readme(contents: CrateContents) -> str:
    """What is in the crate, for a person who opens it without a tool."""
    listed = "".join(f"- `{path}`: {text}.\n" for path, text in contents.descriptions.items() if path in contents.files)
    folders = "".join(f"- `{place}/`: the data (zarr 3; open them with xarray).\n" for place in contents.folders)
    checked = f"`sha256sum -c {MANIFEST}` checks every file. `ro-crate-metadata.json` describes them for programs."
    return f"# {contents.name}\n\n{contents.description}\n\n{listed}{folders}\n{checked}\n"


def _entity(crate: ROCrate, identifier: str, kind: str | list[str], **properties: Any) -> Any:
    from rocrate.model.contextentity import ContextEntity

    return crate.add(ContextEntity(crate, identifier, properties={"@type": kind, **properties}))


def _add_data(crate: ROCrate, contents: CrateContents, scratch: Path) -> None:
    """Add files and folders, and a manifest with the digest of every file, also of those inside folders."""
    digests: dict[str, str] = {}
    for place, source in contents.files.items():
        on_disk = source if isinstance(source, Path) else scratch / f"{len(digests)}.txt"
        if isinstance(source, str):
            on_disk.write_text(source, encoding="utf-8")
        digests[place] = sha256(on_disk)
        about = {"description": contents.descriptions[place]} if place in contents.descriptions else {}
        _add_file(crate, place, on_disk, digests[place], workflow=place == contents.workflow, **about)
    for place, folder in contents.folders.items():
        whole = crate.add_dataset(folder, f"{place}/", properties={"name": place})
        for inner in sorted(file for file in folder.rglob("*") if file.is_file()):
            digests[f"{place}/{inner.relative_to(folder).as_posix()}"] = sha256(inner)
        inner_folders = [
            crate.add_dataset(dest_path=f"{name}/", properties={"name": title})
            for name, title in contents.inner_folders.items()
            if name.startswith(f"{place}/")
        ]
        whole["hasPart"] = _single(inner_folders)
    manifest = scratch / MANIFEST
    manifest.write_text("".join(f"{digest}  {place}\n" for place, digest in sorted(digests.items())), encoding="utf-8")
    _add_file(
        crate, MANIFEST, manifest, sha256(manifest), description="SHA-256 of every file, as sha256sum -c reads it"
    )


def _add_file(crate: ROCrate, place: str, source: Path, digest: str, *, workflow: bool = False, **more: str) -> None:
    suffix = Path(place).suffix
    properties: dict[str, Any] = {
        "name": place.split("/")[-1],
        "encodingFormat": KINDS.get(suffix) or mimetypes.guess_type(place)[0] or "text/plain",
        "contentSize": str(source.stat().st_size),
        "sha256": digest,
        **more,
    }
    if workflow:
        properties = {**properties, "@type": ["File", "SoftwareSourceCode", "ComputationalWorkflow"]}
    crate.add_file(source, place, properties=properties)


def sha256(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _add_software(crate: ROCrate, contents: CrateContents) -> Any:
    """The workflow as the main entity, its language and parameters; returns the software that ran it."""
    workflow = crate.get(contents.workflow)
    crate.mainEntity = workflow
    workflow["name"] = contents.workflow_name
    workflow["conformsTo"] = _entity(
        crate, WORKFLOW_PROFILE, "CreativeWork", name="ComputationalWorkflow", version="1.0"
    )
    crate.get(README)["about"] = crate.root_dataset
    address, name = contents.language
    workflow["programmingLanguage"] = _entity(crate, address, "ComputerLanguage", name=name, url=address)
    parameters = [
        _entity(crate, f"#parameter-{name}", "FormalParameter", name=name, additionalType=kind)
        for name, kind in contents.parameters.items()
    ]
    workflow["input"] = _single(parameters)
    libraries = [_software(crate, name, version) for name, version in contents.versions.items() if name != "gyrostat"]
    version = contents.versions.get("gyrostat", __version__)
    ours = _software(crate, "gyrostat", version)
    ours["softwareRequirements"] = libraries
    workflow["softwareRequirements"], workflow["version"] = ours, version
    return ours


def _software(crate: ROCrate, name: str, version: str) -> Any:
    """A package and its version, named by its package URL."""
    address = f"pkg:{'generic' if name == 'python' else 'pypi'}/{name}@{version}"
    return _entity(crate, address, "SoftwareApplication", name=name, softwareVersion=version)


def _add_actions(crate: ROCrate, contents: CrateContents, ours: Any, author: str) -> None:
    agent = _entity(crate, "#author", "Person", name=author) if author else None
    if agent is not None:
        crate.root_dataset["author"] = agent
    mentions = []
    for action in contents.actions:
        instrument = crate.get(contents.workflow) if action.of_workflow else ours
        inputs = []
        for name, value in action.inputs.items():
            text = value if isinstance(value, str | int | float) else json.dumps(plain(value))
            inputs.append(_entity(crate, f"#{action.key}-{name}", "PropertyValue", name=name, value=text))
            if action.of_workflow:
                inputs[-1]["exampleOfWork"] = crate.get(f"#parameter-{name}")
        properties = {
            "name": action.name,
            "description": action.description,
            "endTime": action.ended,
            "actionStatus": "http://schema.org/FailedActionStatus"
            if action.error
            else "http://schema.org/CompletedActionStatus",
            **({"startTime": action.started} if action.started else {}),
            **({"error": action.error} if action.error else {}),
        }
        outputs = _single([crate.get(path) for path in action.outputs])
        made = crate.add_action(
            instrument, f"#{action.key}", object=_single(inputs), result=outputs, properties=properties
        )
        if agent is not None:
            made["agent"] = agent
        mentions.append(made)
    crate.root_dataset["mentions"] = _single(mentions)
