"""The other sides of ``runs.py``: prints their ports as JSON, and serves until its input ends."""

from __future__ import annotations

import asyncio
import http.server
import json
import sys
import tempfile
import threading

import asyncssh
from moto.server import ThreadedMotoServer


class Web(http.server.BaseHTTPRequestHandler):
    """Answers all with "ok", as a webhook of Slack does."""

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    do_POST = do_GET


class AnyUser(asyncssh.SSHServer):
    def password_auth_supported(self) -> bool:
        return True

    def validate_password(self, username: str, password: str) -> bool:
        return True


async def _shell(process: asyncssh.SSHServerProcess[str]) -> None:
    ran = await asyncio.create_subprocess_shell(process.command or "true", stdout=asyncio.subprocess.PIPE)
    out, _ = await ran.communicate()
    process.stdout.write(out.decode())
    process.exit(ran.returncode or 0)


async def main() -> None:
    web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Web)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    aws = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    aws.start()
    root = tempfile.mkdtemp()
    ssh = await asyncssh.create_server(
        AnyUser,
        "127.0.0.1",
        0,
        server_host_keys=[asyncssh.generate_private_key("ssh-ed25519")],
        process_factory=_shell,
        sftp_factory=lambda channel: asyncssh.SFTPServer(channel, chroot=root),
    )
    ports = {"web": web.server_port, "aws": aws.get_host_and_port()[1], "ssh": ssh.get_port()}
    print(json.dumps(ports), flush=True)
    await asyncio.to_thread(sys.stdin.read)


asyncio.run(main())
