"""Writes mockllm/record/redaction/find/gitleaks.json from the rules of gitleaks (MIT licence).

    python -m tools.gitleaks_rules gitleaks.toml COMMIT

`gitleaks.toml` is config/gitleaks.toml of github.com/gitleaks/gitleaks at that commit, with the
LICENSE of the repository beside it. Kept are the rules for keys that show by their form what they
are. Left out are rules that need the name of the service before the value: `secret_names` knows
such names for all services.

The expressions of Go become those of Python, without groups and with a bound for each repetition.
What must be around a key in a source file (a quotation mark, the end of the line) is left out,
because a key in prose ends with a comma too: `patterns` demands the bounds of a word.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parents[1] / "mockllm" / "record" / "redaction" / "find" / "gitleaks.json"

COVERED = frozenset(
    [
        "databricks-api-token",
        "digitalocean-pat",
        "grafana-cloud-api-token",
        "grafana-service-account-token",
        "linear-api-key",
        "notion-api-token",
        "npm-access-token",
        "pypi-upload-token",
        "sendgrid-api-token",
        "sentry-org-token",
        "sentry-user-token",
        "shopify-access-token",
        "shopify-custom-access-token",
        "shopify-private-app-access-token",
        "shopify-shared-secret",
        "slack-app-token",
        "twilio-api-key",
        "vault-batch-token",
        "vault-service-token",
        "anthropic-admin-api-key",
        "anthropic-api-key",
        "aws-access-token",
        "gcp-api-key",
        "github-app-token",
        "github-fine-grained-pat",
        "github-oauth",
        "github-pat",
        "github-refresh-token",
        "gitlab-pat",
        "huggingface-access-token",
        "jwt",
        "openai-api-key",
        "perplexity-api-key",
        "private-key",
        "slack-bot-token",
        "slack-legacy-bot-token",
        "slack-legacy-token",
        "slack-legacy-workspace-token",
        "slack-user-token",
        "slack-webhook-url",
        "stripe-access-token",
        "sidekiq-sensitive-url",
    ]
)
"""Rules for what `patterns` finds, in more forms."""

UNFIT = {
    "curl-auth-header": "looks at the text around a value, without a bound",
    "curl-auth-user": "the same",
    "kubernetes-secret-yaml": "the same",
    "nuget-config-password": "the same",
    "freemius-secret-key": "the same",
    "jwt-base64": "any base64 text of a token's header; `encodings` decodes base64 itself",
    "aws-amazon-bedrock-api-key-short-lived": "only the beginning, which all of them share",
    "flutterwave-public-key": "no secret: every page of a shop has it",
    "facebook-access-token": "two numbers in a table look the same",
}
"""Rules that do not fit, and why."""

REPLACED = {
    # Base64 has a case, and the point is one.
    "grafana-api-key": r"\b(eyJrIjoi[A-Za-z0-9]{70,400}={0,3})",
    "slack-config-access-token": r"(?i)xoxe\.xox[bp]-\d-[A-Z0-9]{163,166}",
    # 40 hexadecimal digits alone are commits of git.
    "sourcegraph-access-token": r"\b(sgp_(?:(?:[a-fA-F0-9]{16}|local)_)?[a-fA-F0-9]{40})",
}

TRIGGERS = {
    "authress-service-client-access-key": ".acc_ .acc-",
    "flyio-access-token": "fo1_ fm1r_ fm1a_ fm2_",
    "azure-ad-client-secret": "Q~",
    "airtable-personnal-access-token": "pat",
    "facebook-page-access-token": "EAAM EAAC",
    "hashicorp-tf-api-token": ".atlasv1.",
    "intra42-client-secret": "-s4t2",
    "microsoft-teams-webhook": ".webhook.office.com/webhookb2/",
    "sourcegraph-access-token": "sgp_",
    "square-access-token": "EAAA sq0atp-",
}
"""Triggers where the keywords of gitleaks do not give them."""

_ASSIGNED = "w.-]{0,50}?"
_AFTER = re.compile(
    r"\(\?:\[\\x60'\"\\s;\]\|\\\\\[nr\]\|\$(?:\|\\b)?\)\Z"
    r"|\(\?:\[\^[^\]]*\]\|\\z\)\Z|\(\?:\$\|\[[^\]]*\]\)\Z|\\b\Z"
)
_BEFORE = re.compile(r"\A\(\?:\^\|\[[^\]]*\]\)")
_GROUP = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|\((?!\?)")
_MOST = 400
_SOURCE = "config/gitleaks.toml of github.com/gitleaks/gitleaks, by tools/gitleaks_rules.py"


def main(arguments: list[str]) -> None:
    """Writes the file."""
    file, commit = Path(arguments[0]), arguments[1]
    licence = (file.parent / "LICENSE").read_text(encoding="utf-8").strip()
    rules = tomllib.loads(file.read_text(encoding="utf-8"))["rules"]
    entries = [_entry(rule) for rule in rules if _fits(rule)]
    written = {"source": _SOURCE, "commit": commit, "licence": licence.split("\n")}
    text = json.dumps({**written, "rules": entries}, indent=1, ensure_ascii=False)
    TARGET.write_text(text + "\n", encoding="utf-8")


def _fits(rule: dict[str, Any]) -> bool:
    id, regex = rule["id"], rule.get("regex", "")
    return bool(regex) and _ASSIGNED not in regex and id not in COVERED | UNFIT.keys()


def _entry(rule: dict[str, Any]) -> dict[str, Any]:
    regex = converted(REPLACED.get(rule["id"], rule["regex"]))
    triggers = TRIGGERS.get(rule["id"]) or " ".join(_triggers(rule["keywords"], regex))
    entropy = float(rule.get("entropy", 0))
    return {"kind": rule["id"], "triggers": triggers, "entropy": entropy, "regex": regex}


def _triggers(keywords: list[str], regex: str) -> list[str]:
    """The keywords as the expression has them: gitleaks compares without case."""
    plain = re.sub(r"\\([-.])", r"\1", regex)
    found = (re.search(re.escape(keyword), plain, re.IGNORECASE) for keyword in keywords)
    return [one[0] for one in found if one is not None] or keywords


def converted(regex: str) -> str:
    """An expression of Go as one of Python, without groups and with bounds."""
    regex = _AFTER.sub("", _BEFORE.sub("", regex))
    regex = regex.replace("[[:alnum:]]", "[A-Za-z0-9]").replace(r"\x60", "`")
    regex = re.sub(r"\{(\d+),\}", lambda found: f"{{{found[1]},{int(found[1]) + _MOST}}}", regex)
    regex = re.sub(r"(?<=\])\+|(?<=\\d)\+", f"{{1,{_MOST}}}", regex)
    regex = _GROUP.sub(lambda found: "(?:" if found[0] == "(" else found[0], regex)
    regex = _scoped(regex.removeprefix(r"\b"))
    regex = _bare(regex.replace(r"(?i:\b", "(?i:"))
    if re.compile(regex).groups:
        raise SystemExit(f"a group in {regex}")
    return regex


def _bare(regex: str) -> str:
    """`(?:a)` as `a`."""
    inner = regex.removeprefix("(?:").removesuffix(")")
    try:
        re.compile(inner)
    except re.error:
        return regex
    whole = (
        regex.startswith("(?:") and regex.endswith(")") and "|" not in re.sub(r"\(.*\)", "", inner)
    )
    return _bare(inner) if whole else regex


def _scoped(regex: str) -> str:
    """`a(?i)b` as `a(?i:b)`, to the end of its group."""
    at = regex.find("(?i)")
    if at < 0:
        return regex
    depth, end, escaped = 0, at + 4, False
    in_class = False
    while end < len(regex):
        character = regex[end]
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif character == "[":
            in_class = True
        elif character == "]":
            in_class = False
        elif not in_class and character == "(":
            depth += 1
        elif not in_class and character == ")":
            if depth == 0:
                break
            depth -= 1
        end += 1
    inner = regex[at + 4 : end].replace("(?i)", "")
    return regex[:at] + f"(?i:{inner})" + regex[end:]


if __name__ == "__main__":
    main(sys.argv[1:])
