"""The names whose values are credentials. Data only."""

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
