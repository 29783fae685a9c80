"""The conformance suite starts this client; it passes its task to a process that has already loaded
Parley.

Its arguments are that process's socket and, added by the suite, the URL of the suite's server.
"""

import json
import os
import socket
import sys

with socket.socket(socket.AF_UNIX) as line:
    line.connect(sys.argv[1])
    scenario, context = (
        os.environ["MCP_CONFORMANCE_SCENARIO"],
        os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"),
    )
    task = {"url": sys.argv[2], "scenario": scenario, "context": json.loads(context)}
    line.sendall(json.dumps(task).encode() + b"\n")
    print(line.makefile(encoding="utf-8").read())
