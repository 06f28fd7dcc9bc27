"""`ranking_quality`: how well each interest mode ranks the labelled set that comes with the project (G4)."""

from collections.abc import Iterator

import dagster as dg

from paper_assets.defs.reports import markdown_table, plainly
from paper_assets.defs.resources import LoadEmbedder
from paper_assets.evaluation.compare import means
from paper_assets.evaluation.labelled_set import load_labelled_set
from paper_assets.evaluation.rankers import outcomes, shipped_set
from paper_assets.profile import RankingOptions
from paper_assets.settings import Judging, Settings

_METRIC = "ndcg@10"


@dg.asset(  # type: ignore[call-overload]  # Dagster's own Nothing is not what it declares
    description="nDCG, recall and interest coverage of every interest mode and baseline on the shipped labelled set.",
    dagster_type=dg.Nothing,
    group_name="evaluation",
    kinds={"numpy"},
    code_version="1",
    check_specs=[
        dg.AssetCheckSpec("default_mode_beats_every_baseline", asset="ranking_quality"),
        dg.AssetCheckSpec("every_judgement_is_of_a_known_document", asset="ranking_quality"),
    ],
)
def ranking_quality(
    context: dg.AssetExecutionContext, settings: dg.ResourceParam[Settings], embedder: dg.ResourceParam[LoadEmbedder]
) -> Iterator[dg.MaterializeResult]:
    """Judge all rankers, with intervals; `paper-assets evaluate DIR` does the same for other sets."""
    with plainly(context):
        labelled = load_labelled_set(shipped_set())
        judging = Judging()
        judged = outcomes(labelled, (), embed=embedder().encode, scoring=settings.scoring, judging=judging)
    summary = {name: means(outcome, judging=judging) for name, outcome in judged.items()}
    score = {name: {mean.metric: mean.mean for mean in found} for name, found in summary.items()}
    default = str(RankingOptions().interest_mode)
    best = max(
        (name for name in ("bm25", "tfidf", "random", "newest") if name in score), key=lambda n: score[n][_METRIC]
    )
    yield dg.MaterializeResult(
        metadata={
            "figures": markdown_table(
                ["ranker", *(mean.metric for mean in summary[default])],
                [
                    (name, *(f"{mean.mean:.3f} [{mean.low:.3f}, {mean.high:.3f}]" for mean in found))
                    for name, found in summary.items()
                ],
            ),
            "queries": len(labelled.judged_queries),
            "documents": len(labelled.documents),
        },
        check_results=[
            dg.AssetCheckResult(
                check_name="default_mode_beats_every_baseline",
                passed=score[default][_METRIC] > score[best][_METRIC],
                severity=dg.AssetCheckSeverity.WARN,
                metadata={default: score[default][_METRIC], best: score[best][_METRIC]},
            ),
            dg.AssetCheckResult(
                check_name="every_judgement_is_of_a_known_document",
                passed=labelled.unknown == 0,
                metadata={"unknown": labelled.unknown},
            ),
        ],
    )
