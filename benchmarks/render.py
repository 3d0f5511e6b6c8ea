"""What rendering an answer costs, and a preview of one that is still being written.

C{python benchmarks/render.py}: an answer of one screen and one of 100 KB, in both renderings, and the
same text streamed in deltas of 20 characters with a frame for every 2 KB.  Each figure is the best of
several runs; beside it stands the ratio to decoding the same text from JSON and, for the stream, to
ten times less text.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from pitelegram.bridge.preview import frame  # noqa: E402
from pitelegram.bridge.rendering.prefix import ClosedPrefix  # noqa: E402
from pitelegram.bridge.rendering.records import RenderOptions  # noqa: E402
from pitelegram.bridge.rendering.render import render  # noqa: E402

SCREEN = """## What I found

The parser in `src/cut.py` **drops** a blank when a line is cut; see [the issue](https://example.org/1).
It happens *only* when:

1. the text is longer than 4,096 units,
2. two or more blanks lie at the cut, and
   - the next line is indented,
   - or it begins with a `>`;
3. nobody looked.

```python
def cut(text: str, limit: int = 4096) -> tuple[str, str]:
    end = text.rfind(" ", 0, limit)
    return text[:end], text[end + 1:]
```

> Note: the old behaviour is kept for ~~short~~ plain texts.

| File | Lines | Tests |
| --- | ---: | :---: |
| cut.py | 116 | yes |
| answer.py | 65 | no |

- [x] found
- [ ] mended

Next I would run `make test` and, if it is green, commit the change.

"""
DELTA, FRAME = 20, 2000


def best(call: Callable[[], object], runs: int) -> float:
    """Return the shortest time of a call, in milliseconds."""
    times = []
    for _ in range(runs):
        begin = perf_counter()
        call()
        times.append(perf_counter() - begin)
    return min(times) * 1000


def answer(size: int) -> str:
    """Return so many characters of an answer."""
    return (SCREEN * (size // len(SCREEN) + 1))[:size]


def stream(text: str, frames: bool) -> None:
    """Feed a text as a model writes it; make the frame of a preview, now and then."""
    scanner = ClosedPrefix()
    for start in range(0, len(text), DELTA):
        scanner.feed(text[start : start + DELTA])
        if frames and start % FRAME == 0:
            frame(scanner, "rich")


def main() -> None:
    """Print the table."""
    whole = RenderOptions(file_after=0)
    html = RenderOptions(file_after=0, rendering="html")
    for name, text, runs, aim in (
        ("one screen", SCREEN, 200, 1.0),
        ("100 KB", answer(100_000), 15, 60.0),
    ):
        decoding = json.dumps(text)
        reference = best(lambda: json.loads(decoding), runs)  # noqa: B023
        for options in (whole, html):
            took = best(lambda: render(text, options), runs)  # noqa: B023
            print(
                f"{name:12} {options.rendering:5} {took:8.2f} ms  aim {aim:g} ms  "
                f"{took / reference:8.0f} x decoding  {took * 1000 / len(text):.3f} us/char"
            )
    before: tuple[float, float] | None = None
    for size in (10_000, 100_000, 1_000_000):
        text, runs = answer(size), 3 if size < 1_000_000 else 1
        scan = best(lambda: stream(text, frames=False), runs)  # noqa: B023
        full = best(lambda: stream(text, frames=True), runs)  # noqa: B023
        ratio = f"  {scan / before[0]:.1f} x / {full / before[1]:.1f} x" if before else ""
        print(f"stream {size // 1000:5} KB  scan {scan:8.1f} ms  with frames {full:8.1f} ms{ratio}")
        before = (scan, full)


if __name__ == "__main__":
    main()
