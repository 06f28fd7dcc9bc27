"""Build a tiny real embedding model with random weights, saved as sentence-transformers saves any other."""

from collections.abc import Iterable
from pathlib import Path


def tiny_embedder(folder: Path, words: Iterable[str]) -> Path:
    """Return the folder of a model of 16 dimensions that reads 12 word pieces of these words."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *sorted(set(words))]
    (folder / "vocab.txt").write_text("\n".join(vocabulary), encoding="utf-8")
    torch.manual_seed(7)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
    )
    BertModel(config).save_pretrained(folder / "bert")
    BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder / "bert")
    SentenceTransformer(modules=[Transformer(str(folder / "bert"), max_seq_length=12), Pooling(16)], device="cpu").save(
        str(folder / "model")
    )
    return folder / "model"
