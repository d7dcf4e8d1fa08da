"""The secret stores of AWS and Google: they return the text of a secret's newest version."""

from __future__ import annotations

import re
from typing import Any

from evenflow.api import limits
from evenflow.api.secret_stores.store import FOLDERS, StoredSecret, parse_secret
from evenflow.core.object_names import SealedKind
from evenflow.errors import SecretStoreError, SettingsError


class AwsSecrets:
    """AWS Secrets Manager: ``<prefix>/connections/<id>`` and ``<prefix>/variables/<key>``. Credentials are found as in AWS's own
    programs.
    """

    folds = False

    def __init__(self, prefix: str) -> None:
        try:
            import boto3
            from botocore.config import Config
            from botocore.exceptions import BotoCoreError, ClientError, NoRegionError
        except ImportError:
            raise SettingsError("Secrets from AWS need boto3. Type: pip install 'evenflow[aws]'") from None
        self.name, self._prefix = "AWS Secrets Manager", prefix
        self._refused, self._failed = ClientError, BotoCoreError
        wait = limits.SECRET_STORE
        config = Config(connect_timeout=wait, read_timeout=wait, retries={"total_max_attempts": 1})
        try:
            self._client: Any = boto3.session.Session().client("secretsmanager", config=config)
        except NoRegionError:
            raise SettingsError("Secrets are to come from AWS: set AWS_DEFAULT_REGION to the region that has them.") from None

    def read(self, kind: SealedKind, name: str) -> StoredSecret | None:
        place = "/".join(part for part in (self._prefix, FOLDERS[kind], name) if part)
        try:
            found = self._client.get_secret_value(SecretId=place)
        except self._refused as error:
            code = error.response["Error"]["Code"]
            if code == "ResourceNotFoundException":
                return None
            raise SecretStoreError(
                f"{self.name} refuses to read {place}: {code}. Let the API's account read it (secretsmanager:GetSecretValue)."
            ) from None
        except self._failed as error:
            raise SecretStoreError(
                f"{self.name} cannot be asked: {error}. Look at the API's network and credentials for AWS."
            ) from None
        if "SecretString" not in found:
            raise SecretStoreError(f"{self.name} has {place} as bytes; store a text.")
        return parse_secret(self.name, name, found["SecretString"])


class GoogleSecrets:
    """Google Secret Manager: ``<prefix>-connections-<id>`` and ``<prefix>-variables-<key>`` of a project. Credentials are the
    default ones of its libraries.
    """

    folds = False

    def __init__(self, project: str, prefix: str, client: Any = None) -> None:
        try:
            from google.api_core import exceptions
            from google.auth.exceptions import DefaultCredentialsError
            from google.cloud import secretmanager
        except ImportError:
            raise SettingsError("Secrets from Google need its library. Type: pip install 'evenflow[gcp]'") from None
        if not project:
            raise SettingsError("Secrets are to come from Google: name the project, such as gcp://our-project/evenflow.")
        self.name, self._project, self._prefix = "Google Secret Manager", project, prefix
        self._exceptions: Any = exceptions
        try:
            self._client: Any = client or secretmanager.SecretManagerServiceClient()
        except DefaultCredentialsError as error:
            raise SettingsError(f"Secrets are to come from Google, and there are no credentials here: {error}") from None

    def read(self, kind: SealedKind, name: str) -> StoredSecret | None:
        secret = "-".join(part for part in (self._prefix, FOLDERS[kind], name) if part)
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,255}", secret):
            return None  # Google cannot have a secret with this name
        place = f"projects/{self._project}/secrets/{secret}/versions/latest"
        try:
            found = self._client.access_secret_version(name=place, timeout=limits.SECRET_STORE, retry=None)
        except self._exceptions.NotFound:
            return None
        except (self._exceptions.Forbidden, self._exceptions.Unauthorized):
            raise SecretStoreError(
                f"{self.name} refuses to read {place}: permission denied. Give the API's account the role "
                "Secret Manager Secret Accessor."
            ) from None
        except self._exceptions.GoogleAPICallError as error:
            raise SecretStoreError(f"{self.name} cannot be asked: {error.message}. Look at the API's network.") from None
        return parse_secret(self.name, name, found.payload.data.decode())
