"""Write a language model of random weights as a GGUF file: the tiny llama architecture with a small vocabulary made
here.

    python tiny_model.py FILE [--context 16384]

Runs in the environment of the server, which has `gguf`; the tests call it as a program. What the model says means
nothing. Two things make its answers end: one dimension of every embedding is constant, so that the output layer
prefers quotation marks, commas and closing brackets, and all other logits are small.
"""

import argparse
import string
from pathlib import Path

import gguf
import numpy as np

LAYERS, WIDTH, HEADS, INNER = 1, 32, 2, 64
WORDS = (
    "the of and to in is that for with are this which it as be by on an or not from we model models paper papers "
    "original text sentence sentences number numbers score id title abstract json schema object string type array "
    "properties required items description answer question passage words say says give each one only "
    "must data minimum maximum integer enum verdict supported changed invented interest interests researcher"
)
TEMPLATE = "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}assistant:"
PREFERRED = {'"': 7.0, "}": 5.0, "]": 6.0, ",": 2.5, " ": -1.0, "\n": -3.0, "</s>": 2.0}
DIGITS = -0.5  # shorter numbers are more often in range


def vocabulary() -> list[tuple[str, float, gguf.TokenType]]:
    """Return the pieces with their score and type: special ones, bytes, printable characters, pairs and whole words."""
    special = [("<unk>", gguf.TokenType.UNKNOWN), ("<s>", gguf.TokenType.CONTROL), ("</s>", gguf.TokenType.CONTROL)]
    pieces = [(name, 0.0, kind) for name, kind in special]
    pieces += [(f"<0x{byte:02X}>", 0.0, gguf.TokenType.BYTE) for byte in range(256)]
    singles = [*(string.ascii_letters + string.digits + string.punctuation), "▁"]
    grown: list[str] = []  # a word is reached by merging from its beginning, so every beginning is a piece
    for word in WORDS.split():
        whole = f"▁{word}"
        grown += [whole[:length] for length in range(2, len(whole) + 1)]
    pieces += [(each, -1e4, gguf.TokenType.NORMAL) for each in singles]
    pieces += [(each, float(-place), gguf.TokenType.NORMAL) for place, each in enumerate(dict.fromkeys(grown))]
    return pieces


def write(file: Path, *, context: int) -> None:
    """Write the model."""
    rng = np.random.default_rng(17)
    pieces = vocabulary()
    writer = gguf.GGUFWriter(str(file), "llama")
    writer.add_name("random weights")
    writer.add_context_length(context)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_vocab_size(len(pieces))
    writer.add_tokenizer_model("llama")
    writer.add_token_list([piece for piece, _, _ in pieces])
    writer.add_token_scores([score for _, score, _ in pieces])
    writer.add_token_types([kind for _, _, kind in pieces])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_chat_template(TEMPLATE)

    def noise(*shape: int, scale: float = 0.02) -> np.ndarray:
        return rng.normal(0.0, scale, shape).astype(np.float32)

    embedded = noise(len(pieces), WIDTH)
    embedded[:, 0] = 1.0
    logits = noise(len(pieces), WIDTH, scale=0.05)
    logits[:, 0] = 0.0
    for place, (piece, _, kind) in enumerate(pieces):
        if piece in PREFERRED:
            logits[place, 0] = PREFERRED[piece] / WIDTH**0.5
        elif kind == gguf.TokenType.BYTE:
            byte = int(piece[3:5], 16)
            logits[place, 0] = -20.0 if not 32 <= byte < 127 else PREFERRED.get(chr(byte), -4.0) / WIDTH**0.5
        elif piece in string.digits:
            logits[place, 0] = DIGITS / WIDTH**0.5
    writer.add_tensor("token_embd.weight", embedded)
    writer.add_tensor("output_norm.weight", np.ones(WIDTH, np.float32))
    writer.add_tensor("output.weight", logits)
    for layer in range(LAYERS):
        for name, shape in {
            "attn_q": (WIDTH, WIDTH), "attn_k": (WIDTH, WIDTH), "attn_v": (WIDTH, WIDTH),
            "attn_output": (WIDTH, WIDTH), "ffn_gate": (INNER, WIDTH), "ffn_up": (INNER, WIDTH),
            "ffn_down": (WIDTH, INNER),
        }.items():  # fmt: skip
            writer.add_tensor(f"blk.{layer}.{name}.weight", noise(*shape))
        for name in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{layer}.{name}.weight", np.ones(WIDTH, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--context", type=int, default=16_384)
    asked = parser.parse_args()
    write(asked.file, context=asked.context)
