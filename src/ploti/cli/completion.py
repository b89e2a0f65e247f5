"""`ploti completion`: the shell completes commands and flags."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from ploti.cli.groups import make_app
from ploti.cli.output import Json, print_json

Shell = Literal["bash", "zsh", "fish"]


def completion(
    shell: Annotated[Shell, Parameter(help="Which shell.")],
    /,
    *,
    install: Annotated[
        bool, Parameter(negative=(), help="Put it where the shell looks for it.")
    ] = False,
    json: Json = False,
) -> None:
    """Print the shell's script of completion, or install it for your user.

    Without --install: source <(ploti completion bash)
    """
    app = make_app()
    if not install:
        script = app.generate_completion(prog_name="ploti", shell=shell)
        if json:
            print_json({"shell": shell, "script": script})
        else:
            print(script)
        return
    path: Path = app.install_completion(shell=shell)
    if json:
        print_json({"shell": shell, "path": str(path)})
    else:
        print(f"Installed in {path}. Open a new shell.")
