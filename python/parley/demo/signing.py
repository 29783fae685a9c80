"""Signs the demo model's thinking, to distinguish it from other thinking.

The key is a constant on purpose, because a chat file must still be accepted after a restart of the
server, and tests must be able to create and break signatures. It does not protect anything.
"""

import base64
import hashlib
import hmac

_KEY = b"parley demo server"


def sign(text: str) -> str:
    """Sign a thinking text; equal texts have equal signatures."""
    digest = hmac.new(_KEY, text.encode("utf-8", "surrogatepass"), hashlib.sha256).digest()
    return "Ep" + base64.b64encode(digest).decode("ascii")


def verify(text: str, signature: str) -> bool:
    """Whether `signature` is valid for exactly this text."""
    return hmac.compare_digest(sign(text).encode(), signature.encode("utf-8", "surrogatepass"))


def seal(text: str) -> str:
    """Turn thinking into redacted or encrypted content, which only the demo server reads."""
    hidden = base64.b64encode(text.encode("utf-8", "surrogatepass")).decode("ascii")
    return f"{sign(text)}.{hidden}"


def unseal(sealed: str) -> str | None:
    """The sealed text; None if the seal is invalid."""
    signature, _, hidden = sealed.partition(".")
    try:
        text = base64.b64decode(hidden, validate=True).decode("utf-8", "surrogatepass")
    except ValueError:
        return None
    return text if verify(text, signature) else None
