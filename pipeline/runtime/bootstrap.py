"""Starts the fork server on any interpreter: `PYTHON bootstrap.py CONTROL FOLDER`.

Run by path, not as a module, because the interpreter chosen for workers need not have this package installed.
CONTROL is the number of an inherited socket; what is wrong with the interpreter is one JSON line on it.
"""
# ruff: noqa: UP032, UP036
# Old Pythons must be able to run this file, so that they can say that they are too old.

import json
import os
import sys

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
NEEDED = {
    "fastapi": "fastapi",
    "pydantic": "pydantic",
    "sqlalchemy": "sqlalchemy",
    "email_validator": "email-validator",
    "python_multipart": "python-multipart",
    "httpx": "httpx",
    "jsonschema": "jsonschema",
}
"""Modules that the runtime and generated code import, with the packages that hold them."""


def complaint():
    """What keeps this interpreter from running workers, or None."""
    version = "Python {}.{}.{}".format(*sys.version_info[:3])
    if sys.version_info < (3, 11):
        return "it is {}; workers need 3.11 or newer".format(version)
    from importlib.util import find_spec

    missing = [package for module, package in NEEDED.items() if find_spec(module) is None]
    if missing:
        advice = "install there with {} -m pip install {}".format(sys.executable, " ".join(missing))
        return "it is {} and lacks {}: {}".format(version, ", ".join(missing), advice)
    return None


def main():
    """Check the interpreter, make `pipeline` importable, and serve."""
    control, folder = int(sys.argv[1]), sys.argv[2]
    del sys.path[0]  # this file's own folder, whose module names are not meant to be top-level ones
    reason = complaint()
    if reason:
        os.write(control, json.dumps({"error": reason}).encode() + b"\n")
        return
    import importlib.util

    # `pipeline` alone becomes importable, not whatever else lies beside it (for another Python, perhaps).
    spec = importlib.util.spec_from_file_location(
        "pipeline",
        os.path.join(PACKAGE, "__init__.py"),  # noqa: PTH118
        submodule_search_locations=[PACKAGE],
    )
    assert spec is not None and spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["pipeline"] = package
    spec.loader.exec_module(package)

    from pipeline.runtime.forkserver import serve

    serve(control, folder)


if __name__ == "__main__":
    main()
