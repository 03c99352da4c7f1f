"""What is made from the schema: the extension's settings (JSON schema) and the page of the documentation.

`python -m jaxsight.engine.settings.documentation > docs/settings.md` writes the page; a test holds it current.
"""

from __future__ import annotations

import json
from typing import Any

from jaxsight.engine.settings.schema import SCHEMA, Setting

HEAD = """\
# Settings

<!-- Written by `python -m jaxsight.engine.settings.documentation`: change the schema, not this page. -->

Settings live in the editor (section `jaxsight`), in the project's `pyproject.toml`, or in both: the editor's value wins over the
project's, the project's over the default. Changes take effect at once. A wrong value is reported where it stands (`JX900`), and
the next in rank is used.

In `pyproject.toml`, names may be written `like-this` or `likeThis`:

```toml
[tool.jaxsight]
python = ".venv/bin/python"
ignore = ["JX405"]
memory-limit = "8 GiB"

[tool.jaxsight.sizes]
B = 32

[tool.jaxsight.examples]
"mypackage.model:loss" = "x: f32[B, 512]"

[tool.jaxsight.timeouts]
trace = 120
```

In the editor, as JSON:

```json
{ "jaxsight": { "inlayHints": { "shapes": false }, "timeouts": { "trace": 120 } } }
```

## All settings
"""


def schema_json() -> dict[str, Any]:
    """The settings as VS Code's `contributes.configuration` wants them."""
    return {
        "title": "jaxsight",
        "properties": {f"jaxsight.{s.key}": _property(s) for s in SCHEMA.values()},
    }


def _property(setting: Setting) -> dict[str, Any]:
    return {
        **setting.kind.schema,
        "default": setting.default,
        "markdownDescription": setting.description,
        "scope": setting.scope,
    }


def page() -> str:
    """The documentation's page, as Markdown."""
    return "\n".join([HEAD, *(_section(setting) for setting in SCHEMA.values())])


def _section(setting: Setting) -> str:
    facts = f"Type: {setting.kind.expected}. Default: `{json.dumps(setting.default)}`."
    if setting.editor_only:
        facts += " Read in the editor only."
    return f"### `{setting.key}`\n\n{setting.description}\n\n{facts}\n"


if __name__ == "__main__":
    print(page(), end="")
