"""The package, its tests and the examples of README.md and of the guides, checked by mypy."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from test_readme import EXAMPLES, README

CLIENT = README.parent
GUIDES = CLIENT.parent.parent / "docs" / "guides"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def test_everything_is_typed(tmp_path: Path) -> None:
    examples = EXAMPLES + [block for page in GUIDES.glob("*.md") for block in BLOCK.findall(page.read_text())]
    assert len(examples) > len(EXAMPLES)
    files = [tmp_path / f"example_{number}.py" for number in range(len(examples))]
    for file, example in zip(files, examples, strict=True):
        file.write_text(example)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull]
    command += [str(path) for path in (CLIENT / "tidegate", CLIENT / "tests", *files)]
    env = {**os.environ, "MYPYPATH": f"{CLIENT}:{CLIENT / 'tests'}"}
    checked = subprocess.run(command, env=env, capture_output=True, text=True, cwd=tmp_path)
    assert checked.returncode == 0, checked.stdout + checked.stderr
