"""The cache of compiled programs: kept between processes, the same bits, safe with two writers, off on request."""

from __future__ import annotations

import os
import subprocess
import sys

from gyrostat.jax_tools import compile_cache
from gyrostat.jax_tools.compile_cache import VARIABLE, _make_room, cache_folder

SMALL = """
import hashlib, jax, gyrostat as gs
hits = []
jax.monitoring.register_event_listener(lambda name, **_: hits.append(name) if name.endswith("cache_hits") else None)
problem = gs.Problem(gs.RandomEnvironments(6, law=gs.TwoPoint(spread=3.0)), gs.Identity())
result = gs.run(gs.HeteroSGD(0.05), problem, num_steps=20, seeds=3, record=["signal"])
print(len(hits) > 0, hashlib.sha256(result.to_array().values.tobytes()).hexdigest())
"""


def small_run(folder: str, **variables: str) -> subprocess.Popen:
    given = {**os.environ, VARIABLE: folder, **variables}
    return subprocess.Popen(
        [sys.executable, "-c", SMALL], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=given
    )


def said(child: subprocess.Popen) -> list[str]:
    out, complaints = child.communicate()
    assert child.returncode == 0 and complaints == "", complaints
    return out.split()


def test_a_second_process_finds_the_program_and_a_damaged_one_is_replaced(tmp_path):
    """Every process computes the same bits."""
    folder = tmp_path / "programs"
    at_once = [small_run(str(folder)) for _ in range(2)]  # both compile and write
    first = [said(child) for child in at_once]
    (program,) = folder.rglob("jit_advance*")
    again = said(small_run(str(folder)))
    assert again[0] == "True"

    whole = program.read_bytes()
    program.write_bytes(whole[: len(whole) // 2])  # what a kill can leave
    repaired = said(small_run(str(folder)))
    assert len(program.read_bytes()) > len(whole) // 2

    (tmp_path / "file").write_text("")  # where no folder can be made, nothing is kept
    off = said(small_run(str(tmp_path / "file")))
    assert off[0] == "False"
    assert {outcome[1] for outcome in (*first, again, repaired, off)} == {first[0][1]}


def test_the_variable_names_the_folder_or_turns_the_cache_off(monkeypatch, tmp_path):
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    folder = cache_folder()
    assert folder is not None and folder.parent == tmp_path
    for word in ("off", "OFF", "0"):
        monkeypatch.setenv(VARIABLE, word)
        assert cache_folder() is None
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    default = cache_folder()
    assert default is not None and "gyrostat" in str(default)


def test_another_processor_or_number_of_threads_has_another_folder(monkeypatch, tmp_path):
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    folders = {cache_folder()}
    for name, value in (("_processor", lambda: "another"), ("_threads", lambda: 99)):
        with monkeypatch.context() as patched:
            patched.setattr(compile_cache, name, value)
            folders.add(cache_folder())
    with monkeypatch.context() as patched:
        patched.setattr("jaxlib.__version__", "9.9.9")
        folders.add(cache_folder())
    assert len(folders) == 4


def test_a_process_with_a_cache_of_its_own_is_left_alone(tmp_path):
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    given = {"JAX_COMPILATION_CACHE_DIR": str(theirs), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    said(small_run(str(ours), **given))
    assert theirs.exists() and not ours.exists()


def test_the_programs_used_longest_ago_are_deleted_first(tmp_path):
    for number, name in enumerate("abc"):
        (tmp_path / name).write_bytes(b"x" * 100)
        os.utime(tmp_path / name, (1000 + number, 1000 + number))
    os.utime(tmp_path / "a", (2000, 1000))  # used again
    _make_room(tmp_path, limit=250)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "c"]
