import json
from importlib.resources import files

import pytest

from paper_assets.ranking.calibration import Calibration, Logit, calibration_from, standard_calibration

RECORD = json.loads((files("paper_assets.ranking") / "calibration.json").read_text(encoding="utf-8"))


def test_nearness_never_counts_against_a_paper() -> None:
    logits = [
        value
        for value in map(standard_calibration().__getattribute__, Calibration.__slots__)
        if isinstance(value, Logit)
    ]
    assert len(logits) == 6
    assert all(logit.meaning >= 0 and logit.words >= 0 and logit.meaning + logit.words > 0 for logit in logits)


def test_the_background_knows_common_words_and_rare_ones() -> None:
    background = standard_calibration().background
    assert background.holders["model"] > background.papers / 4
    assert background.holders["hallucin"] < background.papers / 20
    assert 0 < background.words["optimizer"] < background.words["optimize"] < background.holders["optim"]


@pytest.mark.parametrize("changed", ["a coefficient", "the stems", "the words"])
def test_other_coefficients_or_another_background_are_another_version(changed: str) -> None:
    record, frequencies, words = json.loads(json.dumps(RECORD)), "graph\t5\n", "graph\t4\n"
    before = calibration_from(record, frequencies=frequencies, words=words)
    if changed == "a coefficient":
        record["logits"]["interest"]["words"] += 0.01
    elif changed == "the words":
        words += "tree\t6\n"
    else:
        frequencies += "tree\t7\n"
    assert calibration_from(record, frequencies=frequencies, words=words).version != before.version
