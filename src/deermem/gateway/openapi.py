"""The OpenAPI document: the framework's own, with how callers prove who they are."""

from __future__ import annotations

from typing import Any, Final

from fastapi import FastAPI

_OPEN_TAG: Final = "service"
_BEARER: Final = "authorization"
_KEY: Final = "x-api-key"


def add_security(app: FastAPI, identifying_headers: tuple[str, ...]) -> None:
    """Makes the document of an application tell which credentials its routes take.

    Args:
        app: The application.
        identifying_headers: What callers are known by; empty where nobody is asked.
    """
    names = {name.lower(): name for name in identifying_headers}
    schemes: dict[str, dict[str, str]] = {}
    if _BEARER in names:
        schemes["bearer"] = {"type": "http", "scheme": "bearer"}
    if _KEY in names:
        schemes["key"] = {"type": "apiKey", "in": "header", "name": names[_KEY]}
    if not schemes:
        return
    original = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = original()
            document["components"]["securitySchemes"] = schemes
            for methods in document["paths"].values():
                for operation in methods.values():
                    if _OPEN_TAG not in operation["tags"]:
                        operation["security"] = [{name: []} for name in schemes]
        return original()

    app.openapi = openapi  # type: ignore[method-assign]  # the way that FastAPI documents
