"""Writes the kinds of secrets into docs/secrets.md: `python -m tests.docs.secrets_page`."""

from __future__ import annotations

import re
from pathlib import Path

from mockllm.record.redaction.find.patterns import (
    NAMED_KEYS,
    PATTERNS,
    gitleaks_rules,
    kind_name,
    kinds,
)

PAGE = Path(__file__).parents[2] / "docs" / "secrets.md"
BEGIN, END = "<!-- secrets: begin -->", "<!-- secrets: end -->"

_BY_PLACE = {
    "private-key": "between the lines `BEGIN ... PRIVATE KEY` and `END` of PEM; the private fields "
    "of a JSON Web Key",
    "aws-secret-key": "40 characters near an AWS access key",
    "cookie": "the pairs after `Cookie:` in a text",
    "part-of-a-key": "the beginning of such a key at the end of an answer that breaks off",
    "email": "an address, with letters of any language",
    "password": "the value of a field, variable or connection string whose name is that of a "
    "secret; in a URL; after `Basic`; in `<password>`, `.netrc` and the `auth` of Docker",
    "token": "a JSON Web Token; what follows `Bearer`, or `Authorization:` and a scheme",
    "query-parameter": "`key`, `token`, `sig` and the like in a URL in a text",
    "phone": "with `+` and the country, or as in North America",
    "iban": "a bank account, with the right check sum",
    "card": "the number of a card, with the right check sum (Luhn)",
    "ssn": "a social security number of the USA",
    "stripe-key": "`sk_live_`, `sk_test_`, `sk_prod_`, `rk_`, `pk_` and the same, `whsec_`",
    "slack-webhook": "the path of the URL",
    "discord-webhook": "the last step of the URL",
    "discord-token": "three parts with points, of which the first begins with `M`, `N` or `O`",
    "telegram-token": "digits, `:AA` and 33 more characters",
    "sentry-dsn": "the key in the URL",
}


def page() -> str:
    """The table of kinds, and the list of those from gitleaks."""
    rules = {rule.kind for rule in gitleaks_rules()}
    named = {pattern.kind for pattern in NAMED_KEYS}
    own = {name: on for name, on in kinds().items() if name not in rules | named}
    rows = [
        f"| `{name}` | {_found_by(name)} | {'yes' if on else 'no'} |" for name, on in own.items()
    ]
    names, after_names = (
        ", ".join(f"`{name}`" for name in sorted(kinds)) for kinds in (rules, named)
    )
    return "\n".join(
        [
            "| kind | what it is, or what it begins with | on |",
            "|---|---|---|",
            *rows,
            "",
            f"From the rules of [gitleaks](https://github.com/gitleaks/gitleaks): {names}.",
            "",
            f"In the forms that gitleaks knows, after the name of the service: {after_names}.",
        ]
    )


def _found_by(name: str) -> str:
    if name in _BY_PLACE:
        return _BY_PLACE[name]
    triggers = (
        trigger
        for pattern in PATTERNS
        if kind_name(pattern.kind) == name
        for trigger in pattern.triggers
    )
    return ", ".join(f"`{trigger}`" for trigger in dict.fromkeys(triggers))


def with_page(text: str) -> str:
    """The document with the generated part."""
    pattern = re.escape(BEGIN) + ".*?" + re.escape(END)
    part = f"{BEGIN}\n\n{page()}\n\n{END}"
    return re.sub(pattern, lambda _: part, text, flags=re.DOTALL)


if __name__ == "__main__":
    PAGE.write_text(with_page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
