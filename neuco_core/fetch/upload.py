"""``neuco data upload``: put a file into an S3 bucket, and prove that it arrived and that others can read it."""

from __future__ import annotations

import base64
import tempfile
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from neuco_core.errors import ChecksumError, FetchError, NeucoError, OfflineError, UsageError
from neuco_core.fetch.cache import hash_file
from neuco_core.fetch.fetch import Pin, verify
from neuco_core.fetch.s3 import Location, error_code, explain, make_client, parse_s3, read_s3
from neuco_core.fetch.transfer import GIB, Settings, download
from neuco_core.specs import Remote

LARGEST = 5 * GIB  # what S3 takes in one request; only one request can carry the file's own sha256
BAD_SUM = ("BadDigest", "InvalidDigest", "XAmzContentChecksumMismatch", "XAmzContentSHA256Mismatch")
POLICY = "Let the bucket's policy allow s3:GetObject and s3:GetObjectVersion to everyone, then upload again"


@dataclass(frozen=True)
class Uploaded:
    """An uploaded file. ``version`` is empty if the bucket keeps no versions."""

    remote: Remote
    version: str
    confirmed: bool

    @property
    def declaration(self) -> str:
        """The line to paste into a plugin."""
        return f'Remote("{self.remote.url}", sha256="{self.remote.sha256}", size={self.remote.size})'


def upload(path: Path, target: str) -> Uploaded:
    """Put a file to ``s3://bucket/key`` or ``s3://bucket/prefix/``, and read it back without credentials."""
    settings = Settings.from_environment()
    if settings.offline:
        raise OfflineError("an upload needs the network, and NEUCO_OFFLINE is set", where=target)
    location = _location(path, target)
    pin = Pin(hash_file(path), path.stat().st_size)
    answer = _put(path, location, pin, settings)
    version = answer.get("VersionId", "")
    version = "" if version == "null" else version
    stored = Location(location.bucket, location.key, version)
    url = f"s3://{stored.bucket}/{quote(stored.key)}" + (f"?versionId={version}" if version else "")
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "read-back"
        try:
            read, limits = partial(read_s3, anonymous=True), replace(settings, max_bytes=LARGEST)
            download(url, copy, limits, size=pin.size, progress=False, transport=read)
        except FetchError as error:
            what = f"the file is stored, but others cannot read it: {error.what}"
            raise FetchError(what, where=url, hint=POLICY) from error
        verify(copy, pin, url)
    return Uploaded(Remote(url, sha256=pin.sha256, size=pin.size), version, bool(answer.get("ChecksumSHA256")))


def _location(path: Path, target: str) -> Location:
    if not path.is_file():
        raise UsageError("no such file", where=path)
    if path.stat().st_size > LARGEST:
        raise UsageError("the file is too large for one upload", where=path, expected=f"up to {LARGEST} bytes")
    if target.startswith("hf://"):
        hint = (
            "Use their own tool, `hf upload OWNER/NAME FILE --repo-type dataset`; the file is then "
            "hf://datasets/OWNER/NAME@COMMIT/FILE, which `neuco new` and `Remote` take"
        )
        raise UsageError("uploads to Hugging Face are not ours to make", got=repr(target), hint=hint)
    if not target.startswith("s3://"):
        raise UsageError("bad target", expected="s3://bucket/prefix/ or s3://bucket/key", got=repr(target))
    bucket, _, key = target.removeprefix("s3://").partition("/")
    key = key + path.name if not key or key.endswith("/") else key
    return parse_s3(f"s3://{bucket}/{quote(key)}")


def _put(path: Path, location: Location, pin: Pin, settings: Settings) -> dict[str, Any]:
    from botocore.exceptions import BotoCoreError, ClientError

    checksum = base64.b64encode(bytes.fromhex(pin.sha256)).decode()
    wanted = {**location.request(), "ChecksumSHA256": checksum}
    client = make_client(settings, attempts=settings.retries + 1)
    try:
        # Without versions an upload under a used name would destroy what others have pinned.
        versioned = False
        with suppress(ClientError):  # not everybody who may write may ask
            versioned = client.get_bucket_versioning(Bucket=location.bucket).get("Status") == "Enabled"
        if not versioned:
            wanted["IfNoneMatch"] = "*"
        with path.open("rb") as body:
            answer: dict[str, Any] = client.put_object(Body=body, **wanted)
    except (ClientError, BotoCoreError) as error:
        raise _refusal(error, location, settings) from error
    finally:
        client.close()
    if answer.get("ChecksumSHA256", checksum) != checksum:
        raise ChecksumError("the server stored different bytes", where=str(location), hint="Upload it again")
    return answer


def _refusal(error: Exception, location: Location, settings: Settings) -> NeucoError:
    code = error_code(getattr(error, "response", {}))
    where = str(location)
    if code in BAD_SUM:
        return ChecksumError(f"the server received different bytes ({code})", where=where, hint="Upload it again")
    if code in ("PreconditionFailed", "412"):
        what = "the bucket has this object and keeps no versions: the old one would be lost"
        return UsageError(what, where=where, hint="Choose another name, or turn on the bucket's versioning")
    failure = explain(error, location, settings)
    return FetchError(f"the upload failed: {failure.what}", where=where, hint=failure.hint)
