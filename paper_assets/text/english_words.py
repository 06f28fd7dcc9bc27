"""Recognise ordinary English words, so that a capital at the start of a sentence is not mistaken for a name.

`english_words.txt.gz` holds the lower-case words of the en_US Hunspell dictionary with their endings, which is made
from SCOWL. Copyright 2000-2019 by Kevin Atkinson. Permission to use, copy, modify, distribute and sell these word
lists, the associated scripts, the output created from the scripts, and its documentation for any purpose is hereby
granted without fee, provided that the above copyright notice appears in all copies and that both that copyright notice
and this permission notice appear in supporting documentation. Kevin Atkinson makes no representations about the
suitability of this array for any purpose. It is provided "as is" without express or implied warranty.
"""

import gzip
from functools import cache, lru_cache
from pathlib import Path

_PREFIXES = (
    "anti", "auto", "back", "bi", "bio", "co", "counter", "cross", "cyber", "data", "de", "dis", "electro", "fine",
    "geo", "hyper", "in", "inter", "key", "macro", "meta", "micro", "mid", "mis", "multi", "neuro", "non", "omni",
    "on", "out", "over", "para", "photo", "poly", "post", "pre", "pseudo", "quasi", "re", "run", "self", "semi",
    "spatio", "sub", "super", "tele", "time", "trans", "tri", "ultra", "un", "under", "uni", "up",
)  # fmt: skip
_ENDINGS = (
    ("ization", "ize"), ("izations", "ize"), ("isation", "ize"), ("ising", "izing"), ("ised", "ized"), ("ise", "ize"),
    ("yses", "ysis"), ("ysing", "yzing"), ("ysed", "yzed"), ("lling", "ling"), ("lled", "led"), ("ability", "able"),
    ("able", ""), ("able", "e"), ("ability", ""), ("ability", "e"), ("ing", ""), ("ing", "e"), ("ed", ""), ("ed", "e"),
    ("s", ""), ("es", ""), ("ly", ""), ("al", ""), ("ial", "y"), ("ic", ""), ("ized", "ize"), ("izing", "ize"),
    ("er", ""), ("er", "e"), ("ers", ""), ("ers", "e"), ("ness", ""), ("ment", ""), ("our", "or"), ("oural", "oral"),
    ("ation", "e"), ("ations", "e"), ("ity", ""), ("less", ""), ("ive", "ion"), ("ive", "e"), ("wise", ""),
)  # fmt: skip
# Words of this field that the dictionary lacks.
_OF_THE_FIELD = frozenset([
    "affordance", "agentic", "aleatoric", "amongst", "centroid", "contrastive", "convolutional", "cryptographic",
    "differentiable", "embedding", "embeddings", "epistemic", "equivariant", "equivariance", "heatmap", "invertible",
    "kurtosis", "leaderboard", "leaderboards", "modelling", "multimodal", "panoptic", "parallelism", "perceptron",
    "pre", "quantile", "quantiles", "softmax", "sparsification", "spatio", "spectrogram", "subword", "timestep",
    "tokenization", "tokenizer", "transformers", "unimodal", "variational", "verifier", "verifiers", "voxel",
    "workflow",
])  # fmt: skip
_FEWEST = 3  # letters that a word keeps without its prefix or ending


@lru_cache(maxsize=50_000)
def is_ordinary_word(word: str) -> bool:
    """Return whether a lower-case word is in the dictionary or derived from one by prefix and ending."""
    return _is_made(word, 2)


def _is_made(word: str, steps: int) -> bool:
    if word in _words() or word in _OF_THE_FIELD:
        return True
    if not steps or len(word) <= _FEWEST:
        return False
    beheaded = (word.removeprefix(prefix) for prefix in _PREFIXES if word.startswith(prefix))
    made_of = (word[: -len(ending)] + instead for ending, instead in _ENDINGS if word.endswith(ending))
    return any(len(left) >= _FEWEST + 1 and _is_made(left, steps - 1) for left in (*beheaded, *made_of))


@cache
def _words() -> frozenset[str]:
    packed = Path(__file__).with_name("english_words.txt.gz").read_bytes()
    return frozenset(gzip.decompress(packed).decode("ascii").split())
