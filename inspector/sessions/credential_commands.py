"""The commands and settings in which a password stands at a fixed place. Data only."""

from __future__ import annotations

from typing import NamedTuple

QUOTE = r"\\*[\"']?"

_ARGUMENTS = r"\s(?:(?:[^\r\n]|\\\r?\n)*?\s)?"
_FEW = r"\s(?:[^\r\n\\|;&]*?\s)?"
"""The same in one command, for options that other commands have too."""
_USER = r"[^\s:\"'\\]{1,64}:"


class Command(NamedTuple):
    """A place of a password."""

    hint: str
    """A cheap pattern that every text with this command matches."""
    before: str
    """The pattern of the text before the password and its quote."""


COMMANDS: tuple[Command, ...] = (
    Command(r"curl\s", rf"curl{_ARGUMENTS}(?:-[a-z#]{{0,8}}u|--user|--proxy-user)[ =]?{QUOTE}{_USER}"),
    Command(r"https?\s+-a\s", rf"https?\s+-a\s+{QUOTE}{_USER}"),  # HTTPie
    Command(r"sshpass\s", r"sshpass\s+-p\s?"),
    Command("mysql", rf"mysql\w*{_ARGUMENTS}-p"),
    Command(r"redis-cli\s", rf"redis-cli{_ARGUMENTS}-a\s"),
    Command(r"mongo[a-z]{2,7}\s", rf"mongo(?:sh|dump|restore|export|import){_FEW}-p\s?"),
    Command(r"\spassword\s", r"login\s+[^\s\"'\\]{1,64}\s+password\s+"),  # .netrc
    Command(r"\slogin\s", rf"(?:docker|podman|helm\s+registry|az|oc|cf)\s+login{_ARGUMENTS}-p[ =]?"),
    Command(r"-pass(?:in|out)?\s", rf"\s-pass(?:in|out)?\s+{QUOTE}pass:"),  # openssl
    Command(r"zip\s[^\r\n\\|;&]*(?-i:-P)", rf"zip{_FEW}(?-i:-P)\s?"),
    Command(r"7z[ar]?\s", rf"7z[ar]?{_FEW}-p"),
    Command(r"ldap[a-z]+\s", rf"ldap[a-z]+{_FEW}(?-i:-w)\s+"),
    Command(r"smbclient\s", rf"smbclient{_FEW}-U\s?{QUOTE}[^\s%\"'\\]{{1,64}}%"),
    Command(r"htpasswd\s", r"htpasswd\s+-[a-z]*b[a-z]*\s+[^\s\\]+\s+[^\s\\]+\s+"),
    Command(r"secret\s+set\s", rf"gh\s+secret\s+set{_FEW}(?:-b|--body)[ =]"),
    Command(r"secrets\s+set\s", rf"secrets\s+set{_FEW}[A-Z0-9_]+="),  # Fly.io, Doppler
    Command("--from-literal", rf"--from-literal[ =]{QUOTE}[\w.-]{{1,64}}="),  # kubectl create secret
    # Nodemailer and others; a value without a quote is code
    Command(rf"pass{QUOTE}\s?:\s?\\*[\"']", rf"user(?:name)?{QUOTE}\s?:\s?\\*[\"'][^\"'\\\r\n]{{1,100}}\\*[\"'],"
                                            rf"(?:\s|\\+n){{0,20}}{QUOTE}pass{QUOTE}\s?:\s?\\*[\"']"),
)
