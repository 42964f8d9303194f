"""The names and the commands before a credential. Data only."""

from typing import NamedTuple

NAMES: tuple[str, ...] = (
    "access_key", "access_token", "account_key", "admin_token", "api_auth_token", "api_key", "api_secret",
    "api_token", "app_key", "application_key", "app_secret", "app_token", "auth_key", "auth_secret", "auth_token",
    "authentication_token", "authorization", "authorization_token", "bearer_token", "bot_token", "client_key_data",
    "client_secret", "connection_string", "consumer_secret", "cookie", "cookie_secret", "credentials_json",
    "csrf_token", "deploy_key", "deploy_token", "digitalocean_token", "discord_token", "docker_token",
    "encryption_key", "functions_key", "gh_token", "github_token", "gitlab_token", "hf_token", "hmac_key",
    "hmac_secret", "id_token", "identity_token", "jsessionid", "jwt_secret", "jwt_token", "license_key",
    "linode_token", "login_token", "master_key", "notion_token", "npm_token", "oauth_token", "pass",
    "personal_access_token", "phpsessid", "preshared_key", "private_key", "private_token", "proxy_authorization",
    "pypi_token", "rapidapi_key", "refresh_token", "registration_token", "sas_token", "secret", "secret_access_key",
    "secret_key", "secret_key_base", "secret_token", "security_token", "server_key", "service_token", "session_key",
    "session_secret", "session_token", "set_cookie", "shared_access_key", "shared_secret", "signing_key",
    "signing_secret", "slack_token", "ssh_key", "storage_key", "subscription_key", "telegram_token", "token_secret",
    "user_token", "vault_token", "verification_token", "webhook_secret", "x_api_key", "x_auth_token", "xsrf_token",
)
"""Names of headers, JSON members, arguments and variables whose value is a credential if it looks random. Words are
joined by `_`, `-`, nothing or a capital letter: `api_key` is also `api-key`, `apiKey` and `APIKEY`. A name may have
words before it (`OPENAI_API_KEY`). The table has no `token` (`detection` has a stricter pattern for it), `token_type`,
`credentialType`, `prompt_cache_key` or `key`, which also name other values."""

PASSWORDS: tuple[str, ...] = (
    "password", "passwd", "passphrase", "pwd", "pgpassword", "mysql_pwd", "userpassword", "db_pass", "mysql_pass",
    "root_pass", "smtp_pass", "user_pass", "admin_pass", "ssh_pass", "become_pass", "sudo_pass",
    "redis_pass", "mail_pass", "email_pass", "ftp_pass", "postgres_pass", "pg_pass", "mongo_pass",
)
"""Names whose value is a credential of any length."""

VARIABLES: tuple[str, ...] = ("token", "key", "pat")
"""Last words of a variable in capitals (`SLACK_TOKEN=…`) whose value is a credential if it looks random."""


QUOTE = r"\\*[\"']?"

_ARGUMENTS = r"\s(?:(?:[^\r\n]|\\\r?\n)*?\s)?"
_FEW = r"\s(?:[^\r\n\\|;&]*?\s)?"
"""The same in one command, for options that other commands have too."""
_USER = r"[^\s:\"'\\]{1,64}:"


LOOSE = r"((?:\\+/)?[^\s\"'\\,;<>(){}\[\]&]+)"
QUOTED = r"([^\"'\\\r\n]+)"


class Command(NamedTuple):
    """A command, a setting or a line of a file in which a password stands at a fixed place."""

    hint: str
    """A cheap pattern that every text with this command matches."""
    before: str
    """The pattern of the text before the password and its quote."""
    value: str = rf"({QUOTE}){LOOSE}"
    """The pattern of the quote and of the password, each a group, and of what follows them."""


_PORT = r":(?:54[0-9]{2}|6[45]32|\*):"
_FIELD = rf"type={QUOTE}password\b"
_INPUT = rf"<input(?:\s[^<>]*?)?\s{_FIELD}[^<>]*?\svalue="

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
    Command(rf"{_PORT}[a-z_*]", rf"[\w.*-]{{1,100}}{_PORT}[a-z_*][\w*-]{{0,62}}:[\w*.@-]{{1,63}}:"),  # .pgpass
    # A field of a form, whose value may stand before its type.
    Command(_FIELD, _INPUT, rf"(\\*[\"']){QUOTED}"),
    Command(_FIELD, _INPUT, r"()([^\s\"'\\<>{}=]+)"),
    Command(_FIELD, r"<input(?:\s[^<>]*?)?\svalue=", rf"(\\*[\"']){QUOTED}\\*[\"'][^<>]*?\s{_FIELD}"),
)
