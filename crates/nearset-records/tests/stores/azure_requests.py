"""Three requests of Azure's Blob service, signed by a shared key as its documentation says: less than its client brings along."""

import base64
import hashlib
import hmac
import urllib.parse
import urllib.request
from email.utils import formatdate


def request(method, url, key, path, query=(), body=b"", headers=()):
    account = url.rsplit("/", 1)[1]
    headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-08-06", **dict(headers)}
    resource = f"/{account}/{account}/{urllib.parse.quote(path)}" + "".join(f"\n{name}:{value}" for name, value in sorted(query))
    own = "".join(f"{name}:{value}\n" for name, value in sorted(headers.items()))
    text = f"{method}\n\n\n{len(body) or ''}\n\n\n\n\n\n\n\n\n{own}{resource}"
    signature = base64.b64encode(hmac.new(base64.b64decode(key), text.encode(), hashlib.sha256).digest()).decode()
    headers["Authorization"] = f"SharedKey {account}:{signature}"
    query = "?" + urllib.parse.urlencode(list(query)) if query else ""
    # urllib names a type of its own for bodies otherwise, which would have to be signed.
    made = urllib.request.Request(f"{url}/{urllib.parse.quote(path)}{query}", data=body if method == "PUT" else None, method=method, headers={**headers, "Content-Type": ""})
    with urllib.request.urlopen(made) as answer:
        return answer.read()


def create_container(url, key, name):
    request("PUT", url, key, name, query=[("restype", "container")])


def put_blob(url, key, container, name, data):
    request("PUT", url, key, f"{container}/{name}", body=data, headers=[("x-ms-blob-type", "BlockBlob")])


def get_blob(url, key, container, name):
    return request("GET", url, key, f"{container}/{name}")
