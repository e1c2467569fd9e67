"""Reading ``s3://bucket/key?versionId=…`` with boto3: signed with the usual AWS settings, unsigned without."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from neuco_core.errors import FetchError
from neuco_core.fetch.transfer import CHUNK, Settings, Sink, TransientError, shown

CREDENTIALS = ("InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "TokenRefreshRequired")
BUSY = ("SlowDown", "ServiceUnavailable", "InternalError", "RequestTimeout", "503", "500", "502", "504")
BAD_VERSION = ("InvalidArgument", "MethodNotAllowed")  # what servers say of a version that is none, or was deleted


@dataclass(frozen=True)
class Location:
    """A place in a bucket, at one version or at the newest."""

    bucket: str
    key: str
    version: str = ""

    def request(self) -> dict[str, str]:
        wanted = {"Bucket": self.bucket, "Key": self.key}
        return {**wanted, "VersionId": self.version} if self.version else wanted

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.key}" + (f"?versionId={self.version}" if self.version else "")


def parse_s3(url: str) -> Location:
    parts = urlsplit(url)
    version = parse_qs(parts.query).get("versionId", [""])[0]
    if not parts.netloc or not parts.path.strip("/"):
        raise FetchError("bad address", where=url, expected="s3://bucket/key, with ?versionId=… for one version")
    return Location(parts.netloc, unquote(parts.path.removeprefix("/")), version)


def make_client(settings: Settings, *, anonymous: bool = False, attempts: int = 1) -> Any:
    """A boto3 client. Reading is tried once here: one place decides about retries for all transports."""
    import boto3
    from botocore import UNSIGNED
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError

    try:
        session = boto3.session.Session()
        unsigned = {"signature_version": UNSIGNED} if anonymous or session.get_credentials() is None else {}
        config = Config(
            connect_timeout=settings.timeout,
            read_timeout=settings.timeout,
            retries={"total_max_attempts": attempts},
            **unsigned,
        )
        return session.client("s3", config=config)
    except (BotoCoreError, ValueError) as error:
        raise FetchError(f"the AWS settings are unusable: {error}", hint="See AWS_PROFILE, AWS_ENDPOINT_URL") from error


def read_s3(url: str, sink: Sink, settings: Settings, *, anonymous: bool = False) -> None:
    """Try once, continuing what an earlier try has received."""
    from botocore.exceptions import BotoCoreError, ClientError
    from urllib3.exceptions import HTTPError

    location = parse_s3(url)
    client = make_client(settings, anonymous=anonymous)
    rest = {"Range": f"bytes={sink.received}-", "IfMatch": sink.validator} if sink.received and sink.validator else {}
    try:
        answer = client.get_object(**location.request(), **rest)
        length = answer["ContentLength"]
        offset = sink.received if rest and answer.get("ContentRange") else 0
        sink.start(offset=offset, length=length, validator=answer.get("ETag", ""))
        with closing(answer["Body"]) as body:
            for chunk in body.iter_chunks(CHUNK):
                sink.write(chunk)
    except ClientError as error:
        if rest:  # the object may have changed in between: begin anew before anything else is concluded
            sink.reset()
            raise TransientError("the download cannot be continued", where=shown(url)) from error
        raise explain(error, location, settings) from error
    except (BotoCoreError, HTTPError, OSError) as error:
        raise explain(error, location, settings) from error
    finally:
        client.close()


def explain(error: Exception, location: Location, settings: Settings) -> FetchError:
    """Explain in plain words what went wrong with S3."""
    from botocore import exceptions as failed

    where, hint = str(location), ""
    if isinstance(error, failed.ClientError):
        return _explain_answer(error.response, location)
    if isinstance(error, failed.NoCredentialsError | failed.PartialCredentialsError):
        return FetchError(f"the AWS credentials are incomplete: {error}", where=where)
    if isinstance(error, failed.ParamValidationError):
        return FetchError(f"not a valid S3 address: {error}", where=where)
    if isinstance(error, failed.ConnectTimeoutError | failed.ReadTimeoutError) or "Read timed out" in str(error):
        what = f"the S3 server sent nothing for {settings.timeout:g} seconds"
    elif isinstance(error, failed.EndpointConnectionError):
        what, hint = "the S3 server cannot be reached", "Check the network and AWS_ENDPOINT_URL"
    else:
        what = "the connection to the S3 server was lost in the middle of the file"
    return TransientError(what, where=where, hint=hint)


def error_code(response: Any) -> str:
    """What S3 calls the error that it answers with."""
    return str(response.get("Error", {}).get("Code", ""))


def _explain_answer(response: Any, location: Location) -> FetchError:
    where, code = str(location), error_code(response)
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if code in BUSY or status >= 500:
        return TransientError(f"the S3 server failed ({code})", where=where)
    what, hint = f"the S3 server answered {code or status}", ""
    no_such_object = code in ("NoSuchKey", "404")
    if code == "NoSuchBucket":
        what, hint = f"there is no bucket {location.bucket!r}", "Check the name and AWS_ENDPOINT_URL"
    elif code == "NoSuchVersion" or (location.version and (no_such_object or code in BAD_VERSION)):
        what, hint = f"the object has no version {location.version!r}", "It was deleted, or the id is wrong"
    elif no_such_object:
        what, hint = f"the bucket has no object {location.key!r}", "Check the key"
    elif code in CREDENTIALS:
        what = f"the S3 server does not accept your credentials ({code})"
        hint = "Correct AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or unset them to read anonymously"
    elif code in ("AccessDenied", "403", "AllAccessDisabled") or status == 403:
        what = "the S3 server refused access"
        hint = "The bucket's policy must allow it; or set credentials that may read it"
    return FetchError(what, where=where, hint=hint)
