"""Whether the service of this container is live or ready: `python health.py live`, `python health.py ready`. Exit code 0 is yes.

It asks the port of health and metrics, and, of an API, which has none beside its own, that one.
"""

from __future__ import annotations

import http.client
import os
import ssl
import sys

TIMEOUT_S = 3.0  # below the one of the container's check


def answer(port: int, path: str) -> int | None:
    """The status; None where nobody listens. To this host TLS says nothing that would have to be verified."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    encrypted = bool(os.environ.get("EVENFLOW_TLS_CERT"))
    if encrypted and os.environ.get("EVENFLOW_TLS_CLIENT_CA"):
        context.load_cert_chain(os.environ["EVENFLOW_TLS_CERT"], os.environ["EVENFLOW_TLS_KEY"])
    connection = (
        http.client.HTTPSConnection("127.0.0.1", port, timeout=TIMEOUT_S, context=context)
        if encrypted
        else http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    )
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except ConnectionRefusedError:
        return None
    except OSError:
        return 0
    finally:
        connection.close()


def main(question: str) -> int:
    ports = [int(os.environ.get("EVENFLOW_METRICS_PORT", "9464")), int(os.environ.get("EVENFLOW_API_PORT", "8974"))]
    answers = [status for port in ports if (status := answer(port, f"/health/{question}")) is not None]
    if not answers:
        print(f"nobody listens at {' or '.join(map(str, ports))}")
    elif answers[0] != 200:
        print(f"it is not {question}: {answers[0] or 'no answer'}")
    return 0 if answers[:1] == [200] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
