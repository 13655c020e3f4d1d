"""Run one command and print its seconds and peak memory as JSON. A process of its own, and a small one.

On Linux a child's peak counts the memory of the process that started it, up to the exec, so a harness that holds a
database open cannot measure its children itself.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time


def main() -> None:
    started = time.perf_counter()
    child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - started
    exit_code = child.returncode = os.waitstatus_to_exitcode(status)
    print(json.dumps({"exit": exit_code, "seconds": seconds, "peak_kib": usage.ru_maxrss}))


if __name__ == "__main__":
    main()
