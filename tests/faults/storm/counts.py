"""Count the outcomes of a part of the fault-injection test, and format them.

Every part offers `run(seed: int, size: int, folder: Path) -> Counts` and works below `folder` alone. A part does not
raise for what it finds: it counts it and says in `findings` how to see it again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The outcome of one part: of `tried` things, `whole` came out as if nothing had happened.

    Visibly `missing` is allowed: the user sees what is missing and the command that fixes it. `lost` (was there, is
    gone), `doubled` (there twice) and `silent` (wrong, late or hanging without a message) are not.
    """

    part: str  # kills, stops, year …
    unit: str  # what `tried` counts, in the plural: "kill points", "days", "inputs"
    tried: int
    whole: int
    missing: int = 0
    lost: int = 0
    doubled: int = 0
    silent: int = 0
    findings: tuple[str, ...] = ()  # a line for each lost, doubled or silent one: what, and where to see it again
    figures: tuple[str, ...] = ()  # what else was measured: "longest wait 3.1 s"

    @property
    def held(self) -> bool:
        """Return whether nothing was lost, doubled or silent and every case is accounted for."""
        return not (self.lost or self.doubled or self.silent) and self.whole + self.missing == self.tried > 0

    def lines(self) -> list[str]:
        """Return lines for the terminal: counts, other measurements and findings."""
        counted = (
            f"{self.part}: {self.tried} {self.unit}, {self.whole} whole, {self.missing} visibly missing; "
            f"{self.lost} lost, {self.doubled} doubled, {self.silent} silent"
        )
        return [counted, *(f"  {line}" for line in self.figures), *(f"  FOUND {line}" for line in self.findings)]


@dataclass(slots=True)
class Tally:
    """Counts in progress: one case after the other, each with what was wrong."""

    tried: int = 0
    whole: int = 0
    lost: int = 0
    doubled: int = 0
    silent: int = 0
    findings: list[str] = field(default_factory=list)

    def add(self, what: str, found: Sequence[str], *, most: int = 9) -> None:
        """Count one thing; `found` begin with lost, more or silent, and `most` limits how many are reported."""
        self.tried += 1
        self.whole += not found
        self.lost += any(line.startswith("lost") for line in found)
        self.doubled += any(line.startswith("more") for line in found)
        self.silent += any(line.startswith("silent") for line in found)
        self.findings += [f"{what}: {line}" for line in found[:most]]

    def counts(self, *, part: str, unit: str, figures: tuple[str, ...]) -> Counts:
        """Return the counts of all cases."""
        return Counts(
            part=part,
            unit=unit,
            tried=self.tried,
            whole=self.whole,
            lost=self.lost,
            doubled=self.doubled,
            silent=self.silent,
            findings=tuple(self.findings),
            figures=figures,
        )
