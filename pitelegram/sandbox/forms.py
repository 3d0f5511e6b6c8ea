"""Reading a call's parameters from a request: query, form, JSON, multipart."""

from __future__ import annotations

import re
from email.message import Message as Headers
from email.parser import BytesHeaderParser
from email.policy import HTTP
from urllib.parse import parse_qsl

from twisted.web.http import Request

from pitelegram.kernel.jsonio import loads
from pitelegram.sandbox.errors import bad_request
from pitelegram.sandbox.parameters import Parameters, Part, from_json

MAX_PARTS = 100


def read_parameters(request: Request) -> Parameters:
    """Return what the request gives; the body wins over the query.

    @raise pitelegram.sandbox.errors.ApiError: a body that its own content type does not describe.
    """
    query = request.uri.partition(b"?")[2].decode("latin-1")
    values = dict(parse_qsl(query, keep_blank_values=True, max_num_fields=1000))
    parts: dict[str, Part] = {}
    content_type = request.getHeader("content-type") or ""
    kind = content_type.partition(";")[0].strip().lower()
    body = request.content.read() if request.method == b"POST" and request.content else b""
    if kind == "application/json" and body:
        try:
            parsed = loads(body)
        except ValueError:
            raise bad_request("the body is not a JSON object")
        values |= from_json(parsed)
    elif kind == "application/x-www-form-urlencoded":
        values |= dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))
    elif kind == "multipart/form-data":
        fields, parts = read_multipart(body, content_type)
        values |= fields
    return Parameters(values, parts)


def read_multipart(body: bytes, content_type: str) -> tuple[dict[str, str], dict[str, Part]]:
    """Split a C{multipart/form-data} body into text fields and file parts.

    @raise pitelegram.sandbox.errors.ApiError: no boundary, no end, or a nameless part.
    """
    holder = Headers()
    holder["content-type"] = content_type
    boundary = holder.get_param("boundary")
    if not isinstance(boundary, str) or not boundary:
        raise bad_request("boundary is missing in the multipart body")
    delimiter = b"\r\n--" + boundary.encode("latin-1", "replace")
    pieces = (b"\r\n" + body).split(delimiter)
    if len(pieces) < 2 or not pieces[-1].startswith(b"--"):
        raise bad_request("the multipart body has no end")
    if len(pieces) > MAX_PARTS:
        raise bad_request("too many parts in the multipart body")
    values: dict[str, str] = {}
    parts: dict[str, Part] = {}
    for piece in pieces[1:-1]:
        head, found, data = piece.partition(b"\r\n\r\n")
        headers = BytesHeaderParser(policy=HTTP).parsebytes(head.lstrip(b"\r\n") + b"\r\n\r\n")
        disposition = headers.get("content-disposition", "")
        name = _parameter(str(disposition), "name")
        if not found or name is None:
            raise bad_request("a part of the multipart body has no name")
        filename = _parameter(str(disposition), "filename")
        if filename is None:
            values[name] = data.decode("utf-8", "replace")
        else:
            mime_type = str(headers.get("content-type", "application/octet-stream"))
            parts[name] = Part(name, filename, mime_type.partition(";")[0].strip(), data)
    return values, parts


def _parameter(disposition: str, name: str) -> str | None:
    match = re.search(rf'(?:^|[;\s]){name}="((?:\\.|[^"\\])*)"', disposition)
    if match:
        return re.sub(r"\\(.)", r"\1", match.group(1))
    plain = re.search(rf"(?:^|[;\s]){name}=([^;\s\"]+)", disposition)
    return plain.group(1) if plain else None
