"""`ranking_quality`: the quality of relevance (G4) and final lists (G17) on the judged sets in the project."""

from collections.abc import Sequence

from paper_assets.evaluation.labelled_set import load_labelled_set
from paper_assets.evaluation.list_quality import shipped_lists_table
from paper_assets.evaluation.metrics import means
from paper_assets.evaluation.rankers import outcomes, shipped_set
from paper_assets.pipeline.report import Report, Table
from paper_assets.pipeline.step import WHOLE, Check, Checked, Grid, Made, Partition, Product, Step
from paper_assets.pipeline.workspace import Workspace
from paper_assets.profile import RankingOptions
from paper_assets.settings import EvaluationConfig

NAME = "ranking_quality"
_METRIC = "ndcg@10"
_BASELINES = ("bm25", "tfidf", "random", "newest")


def _make(workspace: Workspace, partitions: Sequence[Partition], wanted: frozenset[str]) -> Made:
    """Evaluate all rankers and lists, with intervals; `paper-assets evaluate` does the same for other sets."""
    labelled, judging = load_labelled_set(shipped_set()), EvaluationConfig()
    embed, settings = workspace.load_embedder().encode, workspace.settings
    judged = outcomes(labelled, (), embed=embed, scoring=settings.scoring, judging=judging)
    summary = {name: means(outcome, judging=judging) for name, outcome in judged.items()}
    lists = shipped_lists_table(
        embed=embed, scoring=settings.scoring, judging=judging, deadline=settings.store_deadline
    )
    return Made(new={WHOLE: True}, details=(labelled, summary, lists))


def _report(workspace: Workspace, partition: Partition, made: Made) -> Report:
    labelled, summary, lists = made.details
    metrics = [mean.metric for mean in next(iter(summary.values()))]
    rows = [
        (name, *(f"{mean.mean:.3f} [{mean.low:.3f}, {mean.high:.3f}]" for mean in found))
        for name, found in summary.items()
    ]
    return Report(
        "",
        {
            "figures": Table(["ranker", *metrics], rows),
            "final_lists": Table(*lists),
            "queries": len(labelled.judged_queries),
            "documents": len(labelled.documents),
        },
    )


def _default_beats_every_baseline(workspace: Workspace, partitions: Sequence[Partition], made: Made) -> Checked:
    _, summary, _ = made.details
    score = {name: next(mean.mean for mean in found if mean.metric == _METRIC) for name, found in summary.items()}
    default = str(RankingOptions().interest_mode)
    best = max((name for name in _BASELINES if name in score), key=lambda name: score[name])
    return Checked(passed=score[default] > score[best], counted={default: score[default], best: score[best]})


def _every_judgement_is_of_a_known_document(
    workspace: Workspace, partitions: Sequence[Partition], made: Made
) -> Checked:
    labelled, _, _ = made.details
    return Checked(passed=labelled.unknown == 0, counted={"unknown": labelled.unknown})


STEP = Step(
    name=NAME,
    products=(
        Product(
            name=NAME,
            description="Relevance and final lists, of every mode and baseline, on the judged sets of the project.",
            kinds=frozenset({"numpy"}),
            report=_report,
            checks=(
                Check(
                    name="default_mode_beats_every_baseline",
                    description="On the judged set, the default mode has a higher nDCG@10 than each plain baseline.",
                    holds=_default_beats_every_baseline,
                ),
                Check(
                    name="every_judgement_is_of_a_known_document",
                    description="The judged set judges no document that it lacks.",
                    holds=_every_judgement_is_of_a_known_document,
                    serious=True,
                ),
            ),
        ),
    ),
    grid=Grid.WHOLE,
    group="ranking",
    code_version="2",
    make=_make,
    partitions_per_run=None,
)
