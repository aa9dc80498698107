"""Measure one contender once, in a process of its own: ``python -m benchmarks.child SPEC``.

The process first does the whole work on a tiny data set, so that imports, thread pools and the like
are not what is measured. Then it prepares the real input, and times the work.

Memory is the highest resident size during the timed part, minus what the process held before it
prepared anything, minus the size of the prepared input. Buffers that preparing left behind count
against the contender.
"""

from __future__ import annotations

import gc
import json
import resource
import statistics
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.work import Answer, Contender, Work

TINY_ROWS = 2_000
"""Rows of the data set that warms a process up."""

SHORT = 0.25
"""Work shorter than this many seconds is repeated, up to `MOST_CALLS` times; the median counts."""

MOST_CALLS = 9

_STATUS = Path("/proc/self/status")
_MB = 1e6


@dataclass(frozen=True)
class Spec:
    """What to measure: a contender of a work at a size."""

    work: str
    contender: str
    rows: int
    columns: int


@dataclass(frozen=True)
class Measurement:
    """What came out.

    Attributes
    ----------
    seconds
        Time of the work; the median if it was so short that it was repeated.
    peak_mb
        Highest resident size of the process during the work.
    before_mb
        Resident size before the input was prepared.
    input_mb
        Size of the prepared input in memory.
    answer
        What the contender found.
    """

    seconds: float
    peak_mb: float
    before_mb: float
    input_mb: float
    answer: Answer

    @property
    def memory_mb(self) -> float:
        """Memory that the work needed beyond its input."""
        return max(self.peak_mb - self.before_mb - self.input_mb, 0.0)


def measure(work: Work, contender: Contender, rows: int, columns: int) -> Measurement:
    """Measure a contender in this process."""
    contender.find(work.data(min(TINY_ROWS, rows), columns))
    gc.collect()
    if contender.cap is not None:
        cap_address_space(contender.cap)
    before = resident_mb()
    state = contender.prepare(work.data(rows, columns))
    gc.collect()
    forget_peak()
    times: list[float] = []
    result: Any = None
    while not times or (sum(times) < SHORT and len(times) < MOST_CALLS):
        result = None
        start = time.perf_counter()
        result = contender.run(state)
        times.append(time.perf_counter() - start)
    peak = peak_mb()
    answer = dict(contender.answer(result))
    # A peer in a process of its own that has to read a file first tells its time itself.
    seconds = answer.pop("seconds", statistics.median(times))
    return Measurement(seconds, peak, before, size_mb(state), answer)


def peak_mb() -> float:
    """Give the highest resident size since `forget_peak`, or since the process began."""
    if _STATUS.exists():
        # Unlike getrusage's, this figure does not start with that of the process that forked.
        return _status_mb("VmHWM")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (
        _MB if sys.platform == "darwin" else 1e3
    )


def resident_mb() -> float:
    """Give the resident size now (where the system does not tell, the highest until now)."""
    return _status_mb("VmRSS") if _STATUS.exists() else peak_mb()


def forget_peak() -> None:
    """Let `peak_mb` start anew, where the system can."""
    clear = Path("/proc/self/clear_refs")
    if clear.exists():
        clear.write_text("5")


def cap_address_space(n_bytes: int) -> None:
    """Let this process map at most ``n_bytes`` beyond the files it has mapped now.

    The files are the interpreter and the libraries, code that has to be mapped to run at all; Polars
    2.1 reads Parquet files without mapping them. Stacks, heaps and whatever an allocator keeps in
    reserve count against the cap, those that are there already too.
    """
    mapped = 0
    for line in Path("/proc/self/maps").read_text().splitlines():
        parts = line.split(maxsplit=5)
        if parts[-1].startswith("/"):
            start, end = (int(address, 16) for address in parts[0].split("-"))
            mapped += end - start
    limit = mapped + n_bytes
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def size_mb(state: object) -> float:
    """Add up the frames and arrays of a prepared input."""
    if isinstance(state, tuple):
        return sum(size_mb(part) for part in state)
    if hasattr(state, "estimated_size"):
        return float(state.estimated_size()) / _MB
    if hasattr(state, "nbytes"):
        return float(state.nbytes) / _MB
    return 0.0


def _status_mb(name: str) -> float:
    for line in _STATUS.read_text().splitlines():
        if line.startswith(name + ":"):
            return float(line.split()[1]) * 1024 / _MB
    raise LookupError(name)


def _plain(value: Any) -> Any:
    """Turn numpy's numbers into Python's."""
    return value.item()


def main() -> None:
    """Measure what the first argument specifies, and print the measurement as JSON."""
    from benchmarks.registry import WORKS

    spec = Spec(**json.loads(sys.argv[1]))
    work = WORKS[spec.work]
    measured = measure(work, work.contender(spec.contender), spec.rows, spec.columns)
    print(json.dumps(asdict(measured), default=_plain))


if __name__ == "__main__":
    main()
