"""JSON by HTTP POST for callbacks: a few attempts, each with a timeout, and failures that show no secret."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from evenflow.errors import NotificationFailed

MAX_ANSWER = 500  # characters of a refusal in the error
KEY_PREFIX = "whsec_"
LASTING = 500  # a status below it means a wrong request: another attempt would get the same


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirects)


def post_json(
    url: str,
    payload: Any,
    headers: Mapping[str, str],
    *,
    timeout_s: float,
    attempts: int,
    pause_s: float,
    key: str | None = None,
) -> None:
    """Posts ``payload``, signed with ``key`` if there is one. It follows no redirects, which would take secrets elsewhere. Raises
    :class:`NotificationFailed` that names only the host, because chat servers have their secret in the path.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise NotificationFailed("A webhook needs a URL that begins with http:// or https:// and names a host.")
    body = json.dumps(payload, default=str, ensure_ascii=False).encode()
    sent = {"Content-Type": "application/json", **headers}
    host, why, message_id = parts.hostname, "", f"msg_{uuid4().hex}"
    for attempt in range(attempts):
        if attempt:
            print(f"The webhook at {host} did not answer well ({why}); attempt {attempt + 1} of {attempts} follows.", flush=True)
            time.sleep(pause_s * 2 ** (attempt - 1))
        signed = {} if key is None else signature(key, message_id, int(time.time()), body)
        request = urllib.request.Request(url, data=body, headers={**sent, **signed}, method="POST")
        try:
            with _OPENER.open(request, timeout=timeout_s):
                return
        except urllib.error.HTTPError as error:
            why = f"status {error.code}: {error.read(MAX_ANSWER).decode(errors='replace')}"
            if error.code < LASTING and error.code != 429:
                break
        except ValueError:  # of a header, with its value in the text
            raise NotificationFailed(
                f"The webhook at {host} has a header that HTTP does not allow: letters and digits do."
            ) from None
        except HTTPException as error:
            why = type(error).__name__
        except (urllib.error.URLError, TimeoutError, OSError) as error:
            why = str(getattr(error, "reason", error)) or type(error).__name__
    raise NotificationFailed(f"The webhook at {host} was not delivered: {why}")


def signature(key: str, message_id: str, timestamp_s: int, body: bytes) -> dict[str, str]:
    """Returns the headers of the specification Standard Webhooks, for which receivers have libraries. A message has one id in all
    its attempts, and each attempt its own time. A ``key`` that begins with ``whsec_`` is base64 behind that, as specified;
    otherwise it is text.
    """
    try:
        secret = base64.b64decode(key.removeprefix(KEY_PREFIX), validate=True) if key.startswith(KEY_PREFIX) else key.encode()
    except ValueError:
        secret = b""
    if not secret:
        raise NotificationFailed(
            f"The key that signs the webhook is empty, or no base64 behind {KEY_PREFIX!r}: set another password."
        )
    signed = hmac.digest(secret, f"{message_id}.{timestamp_s}.".encode() + body, hashlib.sha256)
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp_s),
        "webhook-signature": f"v1,{base64.b64encode(signed).decode()}",
    }
