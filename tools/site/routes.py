"""The page of the HTTP routes: the gateway's own OpenAPI document for a reader."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from deermem.asgi.limits import LimitSettings
from deermem.gateway.app import create_app
from deermem.gateway.auth import AuthSettings, make_authenticator
from deermem.gateway.backend import Backend
from deermem.gateway.service import Gateway
from deermem.gateway.settings import GatewaySettings
from deermem.manager import MemoryManager
from tools.site.tables import code, heading, table

_OPENING: Final = """\
# HTTP routes and shapes

The OpenAPI document of the gateway, which it serves at `/openapi.json`. [The gateway](../http.md) tells what
holds for all routes: conditions, refusals, settings.
"""


class _NoMemory(MemoryManager):
    """Remembers nothing: the document of the routes is the same whatever is behind them."""

    def add(self, *_: Any, **__: Any) -> None:
        """Refuses."""
        raise NotImplementedError

    def get_context(self, *_: Any, **__: Any) -> str:
        """Refuses."""
        raise NotImplementedError


def openapi() -> Mapping[str, Any]:
    """Returns the document of a gateway with default settings."""
    settings = GatewaySettings()
    backend = Backend(_NoMemory(), read_only=False, max_facts_per_request=settings.max_facts_per_request)
    gateway = Gateway(backend, settings, has_roles=False)
    app = create_app(gateway, make_authenticator(AuthSettings()), LimitSettings())
    document: Mapping[str, Any] = app.openapi()
    return document


def page() -> str:
    """Returns the page."""
    document = openapi()
    parts = [_OPENING, "## Routes"]
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            parts += _route(method.upper(), path, operation)
    parts.append("## Shapes")
    for name, schema in document["components"]["schemas"].items():
        parts += _shape(name, schema)
    return "\n\n".join([*parts, ""])


def anchor_of(method: str, path: str) -> str:
    """Returns the anchor of a route."""
    return f"{method} {path}".lower().replace("/", "-").replace(" ", "").replace("{", "").replace("}", "")


def _route(method: str, path: str, operation: Mapping[str, Any]) -> Iterator[str]:
    yield heading(3, f"`{method} {path}`", anchor_of(method, path))
    yield operation.get("description", "")
    rows = [_parameter(each) for each in operation.get("parameters", ())]
    if "requestBody" in operation:
        rows.append(["body", "", _link(_schema(operation["requestBody"])), ""])
    if rows:
        yield table(("takes", "in", "as", "means"), rows)
    answers = [
        [status, _link(_schema(answer)), answer.get("description", "")]
        for status, answer in operation["responses"].items()
    ]
    yield table(("answers", "with", "when"), answers)


def _parameter(parameter: Mapping[str, Any]) -> list[str]:
    schema = parameter.get("schema", {})
    needed = " (needed)" if parameter.get("required") and parameter["in"] != "path" else ""
    return [
        code(parameter["name"]),
        parameter["in"],
        _link(schema) + needed,
        parameter.get("description", ""),
    ]


def _schema(carrier: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = carrier.get("content", {}).get("application/json", {}).get("schema", {})
    return found


def _shape(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    yield heading(3, f"`{name}`", f"shape-{name.lower()}")
    yield schema.get("description", "")
    properties = schema.get("properties", {})
    if not properties:
        yield f"```json\n{json.dumps(schema, indent=2, ensure_ascii=False)}\n```"
        return
    needed = schema.get("required", ())
    rows = [
        [code(key), _link(each), "yes" if key in needed else "", each.get("description", "")]
        for key, each in properties.items()
    ]
    yield table(("key", "is", "always", "means"), rows)


def _link(schema: Mapping[str, Any]) -> str:
    """Returns what a schema allows, in few words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[`{name}`](#shape-{name.lower()})"
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            told = [_link(each) for each in schema[several] if each.get("type") != "null"]
            return " or ".join(dict.fromkeys(told))
    if schema.get("type") == "array":
        return f"list of {_link(schema.get('items', {})) or 'anything'}"
    if "const" in schema:
        return code(json.dumps(schema["const"]))
    if "enum" in schema:
        return " or ".join(code(json.dumps(each)) for each in schema["enum"])
    return f"{schema.get('type', 'anything') if schema else ''}{_limits(schema)}"


def _limits(schema: Mapping[str, Any]) -> str:
    words = {"minimum": "from", "maximum": "to", "minLength": "at least", "maxLength": "at most"}
    told = [f"{word} {schema[key]:,}" for key, word in words.items() if key in schema]
    unit = " characters" if told and "string" in schema.get("type", "") else ""
    return f", {' '.join(told)}{unit}" if told else ""
