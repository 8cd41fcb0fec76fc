"""Files that tell when they are damaged: JSON with a checksum of its own content, and zarr arrays with checksummed chunks.

Every chunk ends in a CRC-32C (a standard codec of zarr), so a changed chunk is refused by any program that reads it. Two kinds
of damage remain. A chunk that is missing reads as the fill value, so the files of an array are compared with those that it
must have, and chunks that hold nothing but the fill value are written, too. A changed ``zarr.json`` can turn good chunks into
other numbers, so its content has a checksum.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gyrostat.errors import GyrostatError
from gyrostat.parallel.whole_files import write_whole

CHECKSUM, KINDS = "checksum", "checksums"
"""The keys that :func:`sealed` adds."""

KINDS_TEXT = "sha256 of this content, crc32c of every chunk"
METADATA = "zarr.json"


class DamagedStore(GyrostatError):
    """A file of a store is missing, or differs from what was written: the ``fault``."""

    def __init__(self, fault: str, remedy: str = "run the same command as before to compute it anew"):
        super().__init__(f"{fault}: {remedy}.")
        self.fault = fault


def digest(content: Any) -> str:
    """A short digest of a JSON value, whatever its spaces and the order of its keys.

    >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1}) != digest({"a": 1, "b": 3})
    True
    """
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def sealed(content: Mapping[str, Any]) -> dict[str, Any]:
    """The content with a checksum of itself.

    >>> unsealed(sealed({"steps": 5}), "x.json")
    {'steps': 5}
    """
    kept = {name: value for name, value in content.items() if name not in (CHECKSUM, KINDS)}
    return {**kept, KINDS: KINDS_TEXT, CHECKSUM: digest(kept)}


def unsealed(content: Any, where: str | Path) -> dict[str, Any]:
    """The content without its checksum, or an error if it has none, or another one than the content."""
    if not isinstance(content, dict):
        raise DamagedStore(f"{str(where)!r} does not hold a JSON object")
    kept = {name: value for name, value in content.items() if name not in (CHECKSUM, KINDS)}
    if content.get(CHECKSUM) != digest(kept) or content.get(KINDS) != KINDS_TEXT:
        raise DamagedStore(f"{str(where)!r} does not match its checksum")
    return kept


def read_json(path: Path) -> Any:
    """The content of a JSON file; an error that names the file if it is none."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise
    except (ValueError, RecursionError) as error:
        raise DamagedStore(f"{str(path)!r} is not JSON ({' '.join(str(error).split())})") from None
    except OSError as error:
        raise DamagedStore(f"{str(path)!r} cannot be read ({error.strerror})") from None


# --- zarr -----------------------------------------------------------------------------------------------------------------


def compressors() -> list[Any]:
    """What every array of ours is written with: compressed, then checksummed."""
    from zarr.codecs import Crc32cCodec, ZstdCodec

    return [ZstdCodec(), Crc32cCodec()]


def read_metadata(folder: Path) -> dict[str, Any]:
    """The content of a ``zarr.json`` that :func:`write_metadata` wrote; an error if it is damaged or has no checksum."""
    document = read_json(folder / METADATA)
    attributes = document.get("attributes") if isinstance(document, dict) else None
    if not isinstance(attributes, dict):
        raise DamagedStore(f"{str(folder / METADATA)!r} does not describe an array or a group")
    seal = {name: attributes[name] for name in (KINDS, CHECKSUM) if name in attributes}
    bare = {**document, "attributes": {k: v for k, v in attributes.items() if k not in seal}}
    unsealed({**bare, **seal}, folder / METADATA)
    return document


def write_metadata(folder: Path, document: Mapping[str, Any]) -> None:
    """Write ``zarr.json`` with a checksum among its attributes, unless the file has this content already."""
    attributes = {k: v for k, v in document["attributes"].items() if k not in (CHECKSUM, KINDS)}
    seal = sealed({**document, "attributes": attributes})
    complete = {**document, "attributes": {**attributes, KINDS: seal[KINDS], CHECKSUM: seal[CHECKSUM]}}
    text = json.dumps(complete, indent=2) + "\n"
    path = folder / METADATA
    if not path.is_file() or path.read_bytes() != text.encode():
        write_whole(path, text)


def array_metadata(
    shape: Sequence[int], chunks: Sequence[int], dtype: Any, dims: Sequence[str], missing: Any = None
) -> dict[str, Any]:
    """The content of ``zarr.json`` of a new array with our codecs; ``missing`` is its fill value."""
    import zarr
    from zarr.storage import MemoryStore

    files: dict[str, Any] = {}
    zarr.create_array(
        MemoryStore(files),
        shape=tuple(shape),
        chunks=tuple(chunks),
        dtype=dtype,
        fill_value=missing,
        compressors=compressors(),
        dimension_names=tuple(dims),
    )
    return json.loads(files[METADATA].to_bytes())


def chunk_shape(document: Mapping[str, Any]) -> tuple[int, ...]:
    """The shape of the chunks of an array."""
    return tuple(document["chunk_grid"]["configuration"]["chunk_shape"])


def chunk_files(folder: Path, document: Mapping[str, Any], shape: Sequence[int] | None = None) -> Iterator[Path]:
    """The files that an array must have; those of its first ``shape`` entries only, if that is given."""
    shape = document["shape"] if shape is None else shape
    counts = [math.ceil(n / chunk) for n, chunk in zip(shape, chunk_shape(document), strict=True)]
    for index in itertools.product(*(range(n) for n in counts)):
        yield folder.joinpath("c", *map(str, index))


def has_good_checksum(path: Path) -> bool:
    """Whether the last four bytes of a chunk are the CRC-32C of the others, as zarr's codec ``crc32c`` writes them."""
    import google_crc32c  # zarr depends on it

    content = path.read_bytes()
    return len(content) > 4 and google_crc32c.value(content[:-4]) == int.from_bytes(content[-4:], "little")


def chunk_fault(path: Path) -> str:
    """What is wrong with a chunk: ``missing``, ``damaged``, or nothing."""
    if not path.is_file():
        return "missing"
    return "" if has_good_checksum(path) else "damaged"
