"""Statistics: tools that reckon, that work for a while, and that ask."""

import random
import statistics
import time
from dataclasses import dataclass
from typing import Annotated

from longshore import Tools, ask, progress, stop_if_cancelled, tool  # noqa: F401  `Tools` is what the component exports

Numbers = Annotated[list[float], "The numbers.", {"minItems": 2, "maxItems": 100_000}]


@dataclass
class Description:
    count: int
    mean: float
    median: float
    deviation: Annotated[float, "Standard deviation of the sample."]
    smallest: float
    largest: float


@tool(title="Describe numbers", task="forbidden", read_only=True)
def describe(numbers: Numbers) -> Description:
    """Describes numbers: mean, median, standard deviation, and the smallest and largest of them."""
    return Description(
        count=len(numbers),
        mean=statistics.fmean(numbers),
        median=statistics.median(numbers),
        deviation=statistics.stdev(numbers),
        smallest=min(numbers),
        largest=max(numbers),
    )


@tool(title="How sure is the mean?", read_only=True)
def bootstrap(
    numbers: Numbers,
    resamples: Annotated[int, "How often to draw anew.", {"minimum": 100, "maximum": 100_000}] = 2_000,
) -> str:
    """Estimates between which two values the true mean lies (95 %), by drawing from the numbers again and again."""
    means = []
    for drawn in range(1, resamples + 1):
        means.append(statistics.fmean(random.choices(numbers, k=len(numbers))))
        if drawn % (resamples // 20) == 0:
            stop_if_cancelled()
            progress(drawn, resamples, f"{drawn} of {resamples} samples drawn")
    return between(means)


@dataclass
class Enough:
    enough: Annotated[bool, {"title": "Good enough"}]
    seconds: Annotated[float | None, "For the next try; as many as before if empty.", {"minimum": 0.01, "maximum": 60}] = None


@tool(title="Estimate until it is good enough", read_only=True)
def estimate(numbers: Numbers, seconds: Annotated[float, {"minimum": 0.01, "maximum": 60}] = 1.0) -> str:
    """Estimates the true mean like `bootstrap`, for some seconds; then asks the user whether that is good enough, and goes on
    for as long as they like."""
    means: list[float] = []
    tries: list[str] = []
    while True:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            stop_if_cancelled()
            means += (statistics.fmean(random.choices(numbers, k=len(numbers))) for _ in range(500))
            time.sleep(0.001)  # Others want to compute too.
        tries.append(between(means))
        progress(len(tries), None, tries[-1])

        # While a question is open this plugin need not be in memory. It may be started again for the answer, an hour later or
        # after a restart of the server: it is then told the same times, random numbers and answers as before, so it draws the
        # same samples and arrives here again.
        answer = ask(f"{tries[-1]} Is that good enough?", Enough, name="enough")
        if answer is None or answer.enough:
            return "\n".join(tries)
        seconds = answer.seconds or seconds


def between(means: list[float]) -> str:
    means = sorted(means)
    tail = len(means) * 25 // 1000
    return f"Between {means[tail]:.6g} and {means[-1 - tail]:.6g}, from {len(means)} samples."
