"""`ng-capture schema`: the JSON Schemas of everything that is read and written."""

import json
from pathlib import Path
from typing import Annotated

import typer

from ng_capture.errors import UsageError
from ng_capture.files.writing import replace_file
from ng_capture_cli import exits


def command(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="One schema; without it, their names.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Write them as DIR/NAME.schema.json.")
    ] = None,
) -> int:
    """Print the JSON Schema of what ng-capture reads or writes, or write all of them to a directory."""
    from ng_capture.outputs.shapes import SHAPES, json_schema

    if name is not None and name not in SHAPES:
        raise UsageError(f"{name}: no such schema", hint="ng-capture schema")
    names = [name] if name is not None else list(SHAPES)
    texts = {each: json.dumps(json_schema(each), indent=2, ensure_ascii=False) + "\n" for each in names}
    if out is not None:
        for each, text in texts.items():
            replace_file(out / f"{each}.schema.json", text.encode())
    elif name is not None:
        typer.echo(texts[name], nl=False)
    else:
        for each, shape in SHAPES.items():
            typer.echo(f"{each:<16} {(shape.__doc__ or '').splitlines()[0]}")
    return exits.DONE
