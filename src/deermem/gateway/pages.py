"""The page at `/docs`: the OpenAPI document for a reader, made here.

Viewers that are loaded from elsewhere would run as the gateway's own origin, where they could read every
memory that the browser may.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any, Final

_STYLE: Final = """
:root { color-scheme: light dark }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 56rem; margin: 2rem auto; padding: 0 1rem }
code, pre { font: .9em/1.5 ui-monospace, monospace }
pre { overflow-x: auto; padding: .75rem; border: 1px solid #8884 }
h2 { margin-top: 2.5rem; border-top: 1px solid #8884; padding-top: 1rem }
th, td { text-align: left; vertical-align: top; padding: .1rem 1rem .1rem 0 }
"""


_CODE: Final = re.compile("`([^`]*)`")


def page_of(openapi: Mapping[str, Any]) -> str:
    """Returns an HTML page that shows an OpenAPI document."""
    info = openapi["info"]
    parts = [
        '<!doctype html><html lang="en"><meta charset="utf-8">',
        f"<title>{escape(info['title'])}</title><style>{_STYLE}</style>",
        f"<h1>{escape(info['title'])} {escape(info['version'])}</h1>",
        f"<p>{_text(info)}</p>",
        '<p>For programs: <a href="/openapi.json"><code>/openapi.json</code></a></p>',
    ]
    for path, methods in openapi["paths"].items():
        for method, operation in methods.items():
            parts += _operation(f"{method.upper()} {path}", operation)
    parts.append("<h2>Shapes</h2>")
    for name, schema in openapi.get("components", {}).get("schemas", {}).items():
        rest = {key: value for key, value in schema.items() if key != "description"}
        parts.append(
            f'<details id="{escape(name)}"><summary>{escape(name)}</summary><p>{_text(schema)}</p>'
            f"<pre>{escape(json.dumps(rest, indent=2))}</pre></details>"
        )
    return "\n".join(parts)


def _operation(title: str, operation: Mapping[str, Any]) -> Iterator[str]:
    yield f"<h2><code>{escape(title)}</code></h2><p>{_text(operation)}</p>"
    rows = [*_parameters(operation), *_body(operation)]
    if rows:
        yield f"<table>{''.join(rows)}</table>"
    answers = operation.get("responses", {}).items()
    yield f"<table>{''.join(_row(status, _shape(answer), answer) for status, answer in answers)}</table>"


def _parameters(operation: Mapping[str, Any]) -> Iterator[str]:
    for parameter in operation.get("parameters", ()):
        yield _row(parameter["name"], f"in the {parameter['in']}", parameter)


def _body(operation: Mapping[str, Any]) -> Iterator[str]:
    if "requestBody" in operation:
        yield _row("body", _shape(operation["requestBody"]), {})


def _row(name: str, kind: str, told: Mapping[str, Any]) -> str:
    return f"<tr><td><code>{escape(name)}</code></td><td>{kind}</td><td>{_text(told)}</td></tr>"


def _text(told: Mapping[str, Any]) -> str:
    """Returns what something is, with its code as such."""
    return _CODE.sub(r"<code>\1</code>", escape(told.get("description", "")))


def _shape(carrier: Mapping[str, Any]) -> str:
    """Returns a link to the schema of a body, where it is one with a name."""
    schema = carrier.get("content", {}).get("application/json", {}).get("schema", {})
    name = escape(schema.get("$ref", "").rpartition("/")[2])
    return f'<a href="#{name}">{name}</a>' if name else ""
