"""Every ranker of a labelled set by name: our interest modes beside the baselines (SPEC G4)."""

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

from paper_assets.errors import InvalidInput
from paper_assets.evaluation.baselines import baselines
from paper_assets.evaluation.judge import Evaluation, judge
from paper_assets.evaluation.labelled_set import LabelledSet
from paper_assets.evaluation.modes import Embed, modes
from paper_assets.settings import EvaluationConfig, ScoringConfig


def shipped_set() -> Path:
    """Folder of the invented labelled set that comes with the project."""
    return Path(str(files("paper_assets.example") / "labelled"))


def shipped_lists() -> tuple[Path, Path]:
    """Folder of the invented judged lists that come with the project, and the file of their papers."""
    example = files("paper_assets.example")
    return Path(str(example / "judged_lists")), Path(str(example / "papers.jsonl"))


def outcomes(
    labelled: LabelledSet, names: Sequence[str], *, embed: Embed, scoring: ScoringConfig, judging: EvaluationConfig
) -> Mapping[str, Evaluation]:
    """Judge the named rankers (none: all that the set allows). Raises InvalidInput for a name that is none."""
    known = {**modes(labelled, embed=embed, scoring=scoring), **baselines(labelled, seed=judging.seed)}
    for name in names:
        if name not in known:
            raise InvalidInput(f"no ranker {name!r} for this set; choose among {', '.join(known)}")
    return {name: judge(labelled, known[name](), judging=judging) for name in names or known}
