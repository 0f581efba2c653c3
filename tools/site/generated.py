"""The pages that are made of the code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tools.site import api, commands, routes, settings
from tools.site.api import FOLDER
from tools.site.error_table import error_table
from tools.site.places import relative

ORDER: Final = [
    f"{FOLDER}/{name}.md"
    for name in (
        "repository",
        "manager",
        "model",
        "search",
        "config",
        "errors",
        "integrations",
        "contracts",
        "testing",
        "commands",
        "routes",
        "settings",
    )
]

# From a page that a person wrote to the one that the code is the source of.
_LEADS: Final = {
    "reference/library.md": ("repository", "Every method, with its arguments"),
    "reference/manager.md": ("manager", "Every operation, with its arguments"),
    "reference/command-line.md": ("commands", "Every command and option in one table each"),
    "reference/http.md": ("routes", "Every route, with its parameters and shapes"),
    "reference/configuration.md": ("settings", "Every setting, with its type, range and variable"),
    "reference/authentication.md": ("settings", "Every setting, with its type, range and variable"),
    "reference/testing.md": ("contracts", "Every test of the contracts"),
    "reference/mcp.md": ("integrations", "What a program can import"),
    "reference/errors.md": ("errors", "Every class of errors, with its attributes and HTTP status"),
}


def pages() -> Mapping[str, str]:
    """Returns the generated pages by their places."""
    made = {
        **api.pages(),
        f"{FOLDER}/commands.md": commands.page(),
        f"{FOLDER}/routes.md": routes.page(),
        f"{FOLDER}/settings.md": settings.page(),
    }
    errors = f"{FOLDER}/errors.md"
    made[errors] = made[errors].replace("\n::: ", f"\n{error_table()}\n\n::: ", 1)
    return made


def led(text: str, uri: str) -> str:
    """Returns a page with a line below its title that leads to the generated page on the same thing."""
    if uri not in _LEADS:
        return text
    name, what = _LEADS[uri]
    title, _, rest = text.partition("\n")
    place = relative(f"{FOLDER}/{name}.md", uri)
    return f"{title}\n\n*{what}: [from the code]({place}).*\n{rest}"
