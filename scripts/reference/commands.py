"""The command line."""

from __future__ import annotations

import re
import sys

from evenflow.cli.app import build_app


def page() -> str:
    started_as, sys.argv = sys.argv, ["evenflow"]  # help shows how the program was started
    try:
        text = build_app().generate_docs(output_format="markdown", max_heading_level=4, usage_name="evenflow")
    finally:
        sys.argv = started_as
    return re.sub(r"## Table of Contents.*?(?=\*\*)", "", text, flags=re.DOTALL).replace("# evenflow\n", "# Commands\n", 1)
