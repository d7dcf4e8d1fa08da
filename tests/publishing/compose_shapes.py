"""The shape of a Compose file, as far as ``compose.yaml`` uses the Compose specification: so a key that Compose does not know, or a
value of another kind, is found where Docker Compose is not at hand.
"""

from __future__ import annotations

from typing import Any

Shape = dict[str, Any]

TEXT: Shape = {"type": "string"}
FLAG: Shape = {"type": "boolean"}
TEXTS: Shape = {"type": "array", "items": TEXT}
WORDS: Shape = {"anyOf": [TEXT, TEXTS]}
DURATION: Shape = {"type": "string", "pattern": r"^(\d+h)?(\d+m)?(\d+s)?$", "minLength": 2}
SIZE: Shape = {"type": "string", "pattern": r"^\d+[bkmg]b?$"}


def closed(**keys: Shape) -> Shape:
    return {"type": "object", "properties": keys, "additionalProperties": False}


def named(shape: Shape) -> Shape:
    return {"type": "object", "additionalProperties": shape}


VALUES: Shape = named({"type": ["string", "number", "null"]})
STARTED: Shape = {"enum": ["service_started", "service_healthy", "service_completed_successfully"]}
HEALTH: Shape = closed(
    test=WORDS, interval=DURATION, timeout=DURATION, start_period=DURATION, retries={"type": "integer"}, disable=FLAG
)
SERVICE: Shape = closed(
    build=closed(context=TEXT, dockerfile=TEXT, args=VALUES),
    cap_drop=TEXTS,
    command=WORDS,
    depends_on=named(closed(condition=STARTED)),
    deploy=closed(replicas={"type": "integer", "minimum": 0}),
    entrypoint=WORDS,
    environment=VALUES,
    healthcheck=HEALTH,
    image=TEXT,
    init=FLAG,
    logging=closed(driver=TEXT, options=VALUES),
    networks=TEXTS,
    ports=TEXTS,
    profiles=TEXTS,
    read_only=FLAG,
    restart={"enum": ["no", "always", "on-failure", "unless-stopped"]},
    secrets=TEXTS,
    security_opt=TEXTS,
    shm_size=SIZE,
    stop_grace_period=DURATION,
    tmpfs=TEXTS,
    volumes=TEXTS,
)
COMPOSE: Shape = {
    **closed(
        name=TEXT,
        services=named(SERVICE),
        networks=named(closed()),
        volumes=named(closed()),
        secrets=named(closed(file=TEXT)),
    ),
    "patternProperties": {"^x-": {}},
}
