"""The seal on the demo model's thoughts: it distinguishes its own thinking from any other.

The key is a constant on purpose: a chat file must still be accepted after the server was restarted,
and tests must be able to make and break signatures. It protects nothing.
"""

import base64
import hashlib
import hmac

_KEY = b"parley demo server"


def sign(text: str) -> str:
    """The signature that the demo model puts on a thinking text; equal texts get equal
    signatures."""
    digest = hmac.new(_KEY, text.encode("utf-8", "surrogatepass"), hashlib.sha256).digest()
    return "Ep" + base64.b64encode(digest).decode("ascii")


def verify(text: str, signature: str) -> bool:
    """Whether `signature` was issued for exactly this text."""
    return hmac.compare_digest(sign(text).encode(), signature.encode("utf-8", "surrogatepass"))


def seal(text: str) -> str:
    """Thinking in a form that only the demo server reads: redacted or encrypted content."""
    hidden = base64.b64encode(text.encode("utf-8", "surrogatepass")).decode("ascii")
    return f"{sign(text)}.{hidden}"


def unseal(sealed: str) -> str | None:
    """The sealed text, or None if the seal is foreign or broken."""
    signature, _, hidden = sealed.partition(".")
    try:
        text = base64.b64decode(hidden, validate=True).decode("utf-8", "surrogatepass")
    except ValueError:
        return None
    return text if verify(text, signature) else None
