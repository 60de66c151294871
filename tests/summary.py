#!/usr/bin/env python3
"""Adds up the result files of a test run: tests/summary.py RESULTS [--no-e2e].

RESULTS holds ctest.junit, one JUnit file for each of ctest's tests (gtest and
lit write them) and e2e.xml. A test program that failed without saying which of
its tests did (a crash) counts as one failure. Prints the failures, then
`N passed, N failed` as the last line.
"""

import os
import sys
import xml.etree.ElementTree as ET


def read(path):
    """Numbers of passed and failed tests, and the names of the failed."""
    passed, failed = 0, []
    for case in ET.parse(path).getroot().iter("testcase"):
        name = f"{case.get('classname', '')}.{case.get('name', '')}"
        if case.find("failure") is not None or case.find("error") is not None:
            failed.append(name)
        elif case.find("skipped") is None and case.get("status") != "notrun":
            passed += 1
    return passed, failed


def main():
    folder = sys.argv[1]
    passed, failed = 0, []

    def add(name, ok):
        nonlocal passed
        try:
            some, bad = read(os.path.join(folder, name + ".xml"))
        except (OSError, ET.ParseError):
            some, bad = 0, [f"{name} (left no results)"]
        if not ok and not bad:
            bad = [f"{name} (crashed or timed out)"]
        passed += some
        failed.extend(bad)

    try:
        programs = ET.parse(os.path.join(folder, "ctest.junit")).getroot()
    except (OSError, ET.ParseError):
        programs, failed = [], ["units and lit (did not run)"]
    for program in programs.iter("testcase") if failed == [] else []:
        add(program.get("name"), program.get("status") == "run")
    if "--no-e2e" not in sys.argv:
        add("e2e", True)
    for name in failed:
        print(f"FAILED: {name}")
    print(f"{passed} passed, {len(failed)} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
