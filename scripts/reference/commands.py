"""The command line."""

from __future__ import annotations

import re

from evenflow.cli.app import build_app


def page() -> str:
    text = build_app().generate_docs(output_format="markdown", max_heading_level=4, usage_name="evenflow")
    return re.sub(r"## Table of Contents.*?(?=\*\*)", "", text, flags=re.DOTALL).replace("# evenflow\n", "# Commands\n", 1)
