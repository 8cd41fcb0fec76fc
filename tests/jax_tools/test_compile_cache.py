"""The cache of compiled programs: kept between processes, the same bits, safe with two writers, off on request."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from gyrostat.jax_tools import compile_cache
from gyrostat.jax_tools.compile_cache import VARIABLE, ProgramFiles, cache_folder, long_compilations_announced

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
    files = [path for path in folder.rglob("*") if path.is_file()]
    (program,) = (path for path in files if path.name.startswith("jit__continue_many"))
    assert not any(path.suffix == ".part" for path in files)
    again = said(small_run(str(folder)))
    assert again[0] == "True"

    whole = program.read_bytes()
    program.write_bytes(whole[: len(whole) // 2])
    repaired = said(small_run(str(folder), PYTHONWARNINGS="ignore"))
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


def test_files_are_whole_whoever_writes(tmp_path):
    files, values = ProgramFiles(tmp_path), [bytes([n]) * 200_000 for n in range(8)]
    files.put("key", values[0])
    with ThreadPoolExecutor(8) as pool:
        writing = [pool.submit(files.put, "key", value) for value in values * 5]
        while not all(job.done() for job in writing):
            assert files.get("key") in values
    assert sorted(path.name for path in tmp_path.iterdir()) == ["key"]


def test_the_programs_used_longest_ago_are_deleted_first(tmp_path):
    files = ProgramFiles(tmp_path, limit=300)
    for number, name in enumerate("abc"):
        files.put(name, b"x" * 100)
        os.utime(tmp_path / name, (1000 + number, 1000 + number))
    assert files.get("a") is not None  # used now
    files.put("d", b"x" * 100)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "c", "d"]
    old = tmp_path / ".left.part"
    old.write_bytes(b"")
    os.utime(old, (1000, 1000))
    files.put("e", b"x")
    assert not old.exists()


def test_a_long_compilation_is_announced_once(monkeypatch):
    heard: list[str] = []
    monkeypatch.setattr(compile_cache, "SAY_AFTER", 0.05)
    compile_long(monkeypatch, heard, seconds=0.3)
    assert len(heard) == 1 and heard[0].startswith("gyrostat: compiling, once")


def test_a_short_compilation_and_silence_are_not_announced(monkeypatch):
    heard: list[str] = []
    monkeypatch.setattr(compile_cache, "SAY_AFTER", 30.0)
    compile_long(monkeypatch, heard, seconds=0.0)
    monkeypatch.setattr(compile_cache, "SAY_AFTER", 0.05)
    with long_compilations_announced(None):
        jax.jit(lambda x: x + 3)(jnp.ones(3))
    with long_compilations_announced(heard.append):
        time.sleep(0.2)  # nothing is compiled here
    assert heard == [] and not any(isinstance(t, threading.Timer) for t in threading.enumerate())


def compile_long(monkeypatch: pytest.MonkeyPatch, heard: list[str], seconds: float) -> None:
    """Compile a program while the compiler is made to take longer."""
    from jax._src import compiler

    compiling = compiler.backend_compile_and_load

    def slowly(*given, **named):
        time.sleep(seconds)
        return compiling(*given, **named)

    monkeypatch.setattr(compiler, "backend_compile_and_load", slowly)
    with long_compilations_announced(heard.append):
        for number in (2, 3):
            jax.jit(lambda x, number=number: x * number + seconds)(np.ones(3))
