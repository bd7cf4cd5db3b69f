"""The examples of README.md, run as they are against `tidegate demo`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import start

README = Path(__file__).parent.parent / "README.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", README.read_text(), re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def demo() -> Iterator[str]:
    command = ["demo", "--listen", "127.0.0.1:0", "--for", "120"]
    process, url = start(command, r"tidegate demo: open (\S+)", {})
    yield url
    process.kill()
    process.wait()


def test_it_has_examples() -> None:
    assert len(EXAMPLES) > 3


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs(number: int, demo: str) -> None:
    env = {**os.environ, "TIDEGATE_SERVER": demo, "PYTHONPATH": str(README.parent)}
    ran = subprocess.run(
        [sys.executable, "-c", EXAMPLES[number]], env=env, capture_output=True, text=True, timeout=60
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout, "it prints what it got"
