"""Build a tiny real cross-encoder with random weights, saved like any other; its grades mean nothing."""

from pathlib import Path

WORDS = "what shelters young fish kelp forests grow fast urchins eat them where water is cold the sea"


def tiny_cross_encoder(
    folder: Path, *, outputs: int = 1, longest: int = 48, names: tuple[str, ...] | None = None
) -> Path:
    """A BERT of 16 dimensions that reads `longest` word pieces of WORDS and gives `outputs` numbers for a pair.

    `names` of the outputs, as a model for natural language inference has them.
    """
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS.split()]
    (folder / "vocab.txt").write_text("\n".join(vocabulary), encoding="utf-8")
    torch.manual_seed(11)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=longest,
        **({"id2label": dict(enumerate(names))} if names else {"num_labels": outputs}),
        initializer_range=0.5,  # so that the scores differ
    )
    BertForSequenceClassification(config).save_pretrained(folder)
    BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    return folder
