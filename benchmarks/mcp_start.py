"""Measure the MCP server from its start to the first answer of tools/list, beside `python -c "import mcp"`.

    python -m benchmarks.mcp_start [--rounds 7]

The server is the command `paper-assets mcp`, called over its pipes in the handshake protocol; the clock stops
when the whole list has been read. The two take turns, so that a busy machine slows both. Ratio of the medians.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time

_SERVE = [sys.executable, "-c", "from paper_assets.interfaces.cli.app import main; main()", "mcp"]
_IMPORT = [sys.executable, "-c", "import mcp"]
_CLIENT = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "benchmark", "version": "0"}}
_ASKED = (
    {"id": 1, "method": "initialize", "params": _CLIENT},
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/list"},
)


def until_the_tools_are_listed() -> float:
    asked = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in _ASKED)
    start = time.perf_counter()
    with subprocess.Popen(
        _SERVE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stdin and server.stdout
        server.stdin.write(asked)
        server.stdin.flush()
        for line in server.stdout:
            message = json.loads(line)
            if message.get("id") == 2:
                taken = time.perf_counter() - start
                assert message["result"]["tools"]
                server.stdin.close()
                return taken
    raise SystemExit("the server ended before it had listed its tools")


def until_it_is_imported() -> float:
    start = time.perf_counter()
    subprocess.run(_IMPORT, check=True)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7, help="starts of each (default 7)")
    rounds = parser.parse_args().rounds
    until_the_tools_are_listed(), until_it_is_imported()  # files into memory
    pairs = [(until_the_tools_are_listed(), until_it_is_imported()) for _ in range(rounds)]
    ours, theirs = (statistics.median(times) for times in zip(*pairs, strict=True))
    ratios = [one / other for one, other in pairs]
    print(f"tools/list answered after {ours:.2f} s, `import mcp` alone {theirs:.2f} s (medians of {rounds})")
    print(f"ratio {ours / theirs:.2f} (rounds {min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    main()
