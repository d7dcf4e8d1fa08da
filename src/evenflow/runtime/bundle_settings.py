"""``[bundles.<name>]`` of ``evenflow.toml``: DAG files from elsewhere, beside the DAG folder."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from evenflow.core.bundle import REFRESH_S, BundleSource

NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,99}")  # it is the name of a folder, too


class BundleSettings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    folder: Path | None = Field(None, description="Local folder of DAG files")
    git: str | None = Field(None, min_length=1, description="URL or path of a git repository")
    ref: str = Field("HEAD", min_length=1, description="Branch, tag or full commit to follow; HEAD is the default branch")
    subdir: str = Field("", description="Folder of the repository that has the DAG files")
    refresh: float = Field(REFRESH_S, ge=1, le=86_400, description="Seconds from one look at the remote to the next")
    connection: str | None = Field(None, description="Connection whose login and password the remote is shown")

    @field_validator("git")
    @classmethod
    def _no_password(cls, url: str | None) -> str | None:
        if url is not None and "://" in url and urlsplit(url).password is not None:
            raise ValueError(
                'the URL holds a password, which would be shown; name a connection with it instead: connection = "..."'
            )
        if url is not None and url.startswith("-"):
            raise ValueError("a URL does not begin with -")
        return url

    @field_validator("subdir")
    @classmethod
    def _inside(cls, subdir: str) -> str:
        path = PurePosixPath(subdir)
        if path.is_absolute() or ".." in path.parts:
            raise ValueError("subdir is a folder inside the repository")
        return "" if subdir in ("", ".") else path.as_posix()

    @field_validator("ref")
    @classmethod
    def _plain(cls, ref: str) -> str:
        if not re.fullmatch(r"[\w./@+-]+", ref) or ref.startswith(("-", "+")):
            raise ValueError("ref is the name of a branch or tag, or a full commit")
        return ref

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.folder is None) == (self.git is None):
            raise ValueError("give either folder or git")
        if self.folder is not None and self.model_fields_set - {"folder"}:
            raise ValueError(f"{', '.join(sorted(self.model_fields_set - {'folder'}))} belong to git")
        return self

    def source(self, name: str) -> BundleSource:
        folder = str(self.folder.expanduser().absolute()) if self.folder is not None else None
        rest = self.model_dump(exclude={"folder"})
        return BundleSource(name=name, folder=folder, **rest)
