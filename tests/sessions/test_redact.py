"""Credentials: none survives in anything that an exchange or a written session holds; nothing else is touched."""

import base64
import json
import pickle
import random
import re
import string
import time
from functools import reduce
from operator import getitem

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.sessions import credentials, detection, open_paths, redact
from inspector.sessions.build import SpelledPiece, piece_spans
from inspector.sessions.credential_values import REDACTED
from inspector.sessions.detection import CredentialSpan
from inspector.sessions.histories import _CACHE_MARK
from inspector.sessions.native import FIELDS, session_bytes, write_session
from inspector.sessions.native_models import json_schema
from inspector.sessions.transcripts.member_values import is_mask
from tests.scenes.bodies import CHAT, chat_body, entry, har, user
from tests.scenes.rows import each_row
from tests.scenes.shapes import SHAPES, Shape, places, put

ALNUM = string.ascii_letters + string.digits
KEY = "sk-proj-Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0"


@each_row(
    "name",
    [
        "Authorization",
        "authorization",
        "X-Api-Key",
        "api-key",
        "Cookie",
        "Set-Cookie",
        "x-goog-api-key",
        "Proxy-Authorization",
        "X-Amz-Security-Token",
        "X-Auth-Token",
        "X-CSRF-Token",
        "Ocp-Apim-Subscription-Key",
        "CF-Access-Client-Secret",
        "X-Functions-Key",
        "anthropic-api-key",
        "x-portkey-api-key",
        "Helicone-Auth",
        "X-Stripe-Signature",
        "private-token",
        "x-password",
        "X-My-Credential",
        "WWW-Authenticate",
        "Authentication",
        "Cookie2",
        "apikey",
        "X-Goog-IAM-Authorization-Token",
        "X-Amz-Signature",
        "X-Amz-Credential",
        "CF-Access-Jwt-Assertion",
        "jwt",
        "X-CSRF",
        "X-XSRF",
        "X-Forwarded-Client-Cert",
        "X-Session",
        "session",
    ],
)
def test_headers_that_carry_credentials(name):
    assert redact.headers([(name, "abc")]) == ((name, REDACTED),)


@each_row(
    "name",
    [
        "anthropic-ratelimit-tokens-remaining",
        "x-ratelimit-limit-tokens",
        "x-ratelimit-reset-tokens",
        "content-type",
        "X-Amzn-Bedrock-Input-Token-Count",
        "x-request-id",
        "retry-after",
        "idempotency-key",
        "openai-processing-ms",
        "access-control-expose-headers",
        "accept",
        "keep-alive",
        "date",
        "x-author",
        "authority",
        ":authority",
    ],
)
def test_headers_that_are_needed_or_harmless_stay(name):
    assert redact.headers([(name, "abc")]) == ((name, "abc"),)


@each_row(
    ("given", "expected"),
    [
        ("https://h/p?key=abc&alt=sse", "https://h/p?key=REDACTED&alt=sse"),
        ("https://h/p?alt=sse&api_key=abc", "https://h/p?alt=sse&api_key=REDACTED"),
        ("https://h/p?api-version=2024&api-key=abc#x", "https://h/p?api-version=2024&api-key=REDACTED#x"),
        (
            "https://h/p?X-Amz-Signature=a&X-Amz-Credential=b&X-Amz-Date=c&X-Amz-Security-Token=d",
            "https://h/p?X-Amz-Signature=REDACTED&X-Amz-Credential=REDACTED&X-Amz-Date=c&X-Amz-Security-Token=REDACTED",
        ),
        ("https://h/p?token=a;sig=b", "https://h/p?token=REDACTED;sig=REDACTED"),
        ("https://h/p?code=a&session=b&session_token=c", "https://h/p?code=REDACTED&session=REDACTED&session_token=REDACTED"),
        ("https://h/p?AWSAccessKeyId=a&Signature=b", "https://h/p?AWSAccessKeyId=REDACTED&Signature=REDACTED"),
        ("https://h/p?pwd=a&passwd=b&password=c", "https://h/p?pwd=REDACTED&passwd=REDACTED&password=REDACTED"),
        ("https://h/p?refresh_token=a&id_token=b", "https://h/p?refresh_token=REDACTED&id_token=REDACTED"),
        ("https://h/p?client_secret=a&secret=b", "https://h/p?client_secret=REDACTED&secret=REDACTED"),
        ("https://h/p?x-goog-signature=a&x-goog-credential=b",
         "https://h/p?x-goog-signature=REDACTED&x-goog-credential=REDACTED"),
        ("https://h/p?auth=a&jwt=b&subscription-key=c", "https://h/p?auth=REDACTED&jwt=REDACTED&subscription-key=REDACTED"),
        ("https://me:pw@h/p", "https://REDACTED@h/p"),
        ("https://h/p#access_token=abc", "https://h/p#access_token=REDACTED"),
        ("https://h/p?max_tokens=5&model=m", "https://h/p?max_tokens=5&model=m"),
        (f"https://h/{KEY}/p", "https://h/REDACTED/p"),
        ("https://h/p?to=https%3A%2F%2Fme%3Ap%2577%40d%2Fx&alt=sse", "https://h/p?to=REDACTED&alt=sse"),
        ("https://h/p?to=https%253A%252F%252Fme%253Apw7%2540d&alt=sse", "https://h/p?to=REDACTED&alt=sse"),
        ("https://h/p?set=PASSWORD%3Dhq7vX2mZk9", "https://h/p?set=REDACTED"),
        ("https://h/p?to=https%3A%2F%2Fh%3A443%2Fx%40y", "https://h/p?to=https%3A%2F%2Fh%3A443%2Fx%40y"),
    ],
)
def test_urls(given, expected):
    assert redact.url(given) == expected


def example(template, rng):
    """A credential of a form, drawn by its template with the least repetitions, or some more where more may come."""
    letters = {"a": ALNUM, "b": ALNUM + "_-", "B": ALNUM + "+/", "c": ALNUM + "_~.-", "d": string.digits,
               "h": "0123456789abcdef", "H": "0123456789ABCDEF", "l": string.ascii_lowercase + string.digits,
               "k": ALNUM + "_=;:,./-", "m": "MNO", "p": ALNUM + "%/+=_-", "U": string.ascii_uppercase + string.digits}

    def draw(piece):
        least = int(piece[2])
        count = rng.randint(least, least + 9) if piece[3] else rng.randint(least, int(piece[4] or least))
        made = "".join(rng.choice(letters[piece[1]]) for _ in range(count))
        return made if made[-1].isalnum() else f"{made[:-1]}7"

    return re.sub(r"\{(\w)(\d+)(?:(\+)|-(\d+))?\}", draw, template)


AROUND = [("use ", " now"), ('{"k":"', '"}'), ("line\\n", "\\n"), ("\\u003c", "\\u003e"), ("say \\u201c", "\\u201d"),
          ("(", ")"), ("https://h/p?x=", "&y=1"), ("", ""), ("https://h/p?to=%2F", ""), ("KEY%3D", "&"),
          ("\x1b[32m", " \x1b[0m"), ("\\u001b[1;31m", "\\u001b[0m"), ("\x1b[m", "")]


@each_row("form", credentials.FORMS)
def test_every_form_is_masked_wherever_it_stands_and_keeps_its_length(form):
    rng = random.Random(form.name)
    made = [f"{before}{example(form.template, rng)}{after}".encode() for before, after in AROUND]
    for lines in (made, [made[0]]):  # beside each other, and one alone
        counts = {}
        masked = redact.body(b"\n".join(lines), counts)
        assert sum(counts.values()) == len(lines)
        assert redact.body(masked) == masked
        for (before, after), plain, shown in zip(AROUND, lines, masked.split(b"\n"), strict=False):
            assert len(shown) == len(plain)
            assert shown.startswith(before.encode())
            assert shown.endswith(after.encode())
            hidden = shown[len(before.encode()) : len(plain) - len(after.encode())].decode()
            assert re.fullmatch(r"(\[masked(: [^\]]+)?\])?\**", hidden), hidden
            assert detection.suspicious(plain)
        assert masked.count(b"\n") == len(lines) - 1


@pytest.mark.parametrize("backwards", [False, True])
def test_all_forms_in_one_text_are_masked_whatever_their_order(backwards):
    rng = random.Random(7)
    secrets = [example(form.template, rng) for form in credentials.FORMS]
    given = "\n".join(reversed(secrets) if backwards else secrets).encode()
    counts = {}
    masked = redact.body(given, counts)
    assert len(masked) == len(given)
    assert sum(counts.values()) == len(secrets)
    assert not [secret for secret in secrets if secret.encode() in masked]


@each_row("secret", [
    f"bAIza{'Kq7' * 15}xyJQQJ9{'Kq7' * 9}", f"ud83bAIza{'Kq7' * 14}xJQQJ9{'Kq7' * 9}",
    f"bAKIAABCDEFGHIJKLMNOP{'Kq7' * 18}xAZDOKq7x", f"nBSAKq_{'Kq7' * 9}xy_mmk", f"b4b1d{'0a1b2c3' * 4}0a1FFFFNRAL",
])
def test_a_credential_whose_beginning_may_be_an_escape_is_masked(secret):
    """`\\b` before `AKIA…` would be an escape before a key that is too long; `bAKIA…` is one of another form."""
    for said in (f"\\{secret}", f"say \\{secret} now"):
        start = said.index(secret)
        assert [span[:2] for span in detection.spans(said.encode())] == [(start, start + len(secret))]


def test_the_table_is_large_and_names_its_sources():
    assert len(credentials.FORMS) >= 70
    assert len({form.name for form in credentials.FORMS}) == len(credentials.FORMS)
    assert all(form.source and form.kind for form in credentials.FORMS)


@each_row("name", [
    "apiKey", "apikey", "api_key", "api-key", "APIKEY", "apiToken", "apiSecret", "appKey", "appSecret",
    "accessKey", "accessToken", "accountKey", "applicationKey", "authKey", "authToken",
    "authenticationToken", "authorization",
    "authorizationToken", "bearerToken", "clientSecret", "clientKeyData", "connectionString", "consumerSecret",
    "credentialsJson", "deployKey", "encryptionKey", "hmacKey", "hmacSecret", "idToken", "jwtSecret",
    "licenseKey", "masterKey", "oauthToken", "personalAccessToken", "privateKey", "privateToken",
    "proxyAuthorization", "refreshToken", "secret", "secretAccessKey", "secretKey", "secretToken",
    "securityToken", "sessionToken", "sharedAccessKey", "sharedSecret", "signingKey", "signingSecret", "sshKey",
    "storageKey", "subscriptionKey", "webhookSecret", "xApiKey", "xAuthToken", "password", "passwd",
    "passphrase", "pwd", "pgpassword", "mysqlpwd", "mysqlPwd", "userpassword", "userPassword",
    "adminToken", "apiAuthToken", "appToken", "authSecret", "botToken", "cookieSecret", "csrfToken", "deployToken",
    "digitaloceanToken", "discordToken", "dockerToken", "ghToken", "githubToken", "gitlabToken", "hfToken",
    "identityToken", "jwtToken", "linodeToken", "loginToken", "notionToken", "npmToken", "pass", "pypiToken",
    "registrationToken", "sasToken", "secretKeyBase", "serverKey", "serviceToken", "sessionKey", "sessionSecret",
    "slackToken", "telegramToken", "tokenSecret", "userToken", "vaultToken", "verificationToken", "xsrfToken",
])
def test_the_name_of_a_member_says_that_its_value_is_a_credential(name):
    given = f'{{"{name}": "q1w2e3r4t5y6u7"}}'
    masked = redact.body(given.encode()).decode()
    assert "q1w2e3r4t5y6u7" not in masked
    assert len(masked) == len(given)


@each_row("name", ["dbPass", "mysqlPass", "rootPass", "smtpPass", "userPass", "adminPass",
                                  "sshPass", "becomePass", "sudoPass"])
def test_the_name_of_a_short_password_says_so(name):
    assert "q1w2" not in redact.body(f'{{"{name}": "q1w2"}}'.encode()).decode()


@each_row("name", ["OPS_TOKEN", "DEPLOY_OPS_KEY", "SIGNED_SECRET", "MY_PAT"])
def test_the_name_of_a_variable_says_so(name):
    assert "q1w2e3r4t5y6u7" not in redact.body(f"{name}=q1w2e3r4t5y6u7".encode()).decode()


@each_row("name", [
    "MY_CACHE_KEY", "MY_PRIMARY_KEY", "A_FOREIGN_KEY", "THE_SORT_KEY", "A_PARTITION_KEY", "MY_PUBLIC_KEY",
    "A_NEXT_TOKEN", "A_PAGE_TOKEN",
])
def test_variables_that_hold_no_credential_stay(name):
    given = f"{name}=q1w2e3r4t5y6u7".encode()
    assert redact.body(given) == given


HASHED = "yyxWslqCwTXjtqR1fQxstS98VpLl2AejxQUqRdS0gprzWWRpWv81a"


@each_row(("given", "hidden"), [
    ("Bearer abc123def456ghi789jkl", "abc123def456ghi789jkl"),
    ("authorization: bearer abc123def456ghi789", "abc123def456ghi789"),
    ("Basic dXNlcjpwYXNzd29yZA==", "dXNlcjpwYXNzd29yZA=="),
    ("postgres://me:hunter2@db.host/x", "hunter2"),
    ('{"server_url": "https://u:pw1@mcp.host/sse"}', "pw1"),
    ("see https://x1y2z3a4b5c6d7@github.com/o/r.git", "x1y2z3a4b5c6d7"),
    ("Referer: https://h/p?access_token=a1b2c3d4e5f6g7", "a1b2c3d4e5f6g7"),
    ("https://h/?X-Amz-Signature=abcdef", "abcdef"),
    ("-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA\n-----END RSA PRIVATE KEY-----", "MIIEowIBAAKCAQEA"),
    ("-----BEGIN OPENSSH PRIVATE KEY-----\\nb3BlbnNzaC1rZXk\\n-----END OPENSSH PRIVATE KEY-----", "b3BlbnNzaC1rZXk"),
    ("-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG", "MIIEvQIBADANBgkqhkiG"),
    ('{"password": "x"}', '"x"'),
    ('{\\"password\\": \\"hunter2, or (so)\\"}', "hunter2, or (so)"),
    ("password=hunter2", "hunter2"),
    ("DB_PASSWORD: letmein", "letmein"),
    ("got (password=hunter2) from it", "hunter2"),
    ('{"client_secret": "Zm9vYmFyMTIz"}', "Zm9vYmFyMTIz"),
    ("apiKey: 'a1b2c3d4e5f6'", "a1b2c3d4e5f6"),
    ("MY_API_KEY=1234567890abcdef", "1234567890abcdef"),
    ("your API key: 1234567890abcdef", "1234567890abcdef"),
    ("see https://h/cb?next=%2Fx%3Faccess_token%3Dq1w2e3r4t5y6", "q1w2e3r4t5y6"),
    ("password%3Dhunter2", "hunter2"),
    ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    ('{"name":"x-api-key","value":"1234567890abcdef"}', "1234567890abcdef"),
    ("SLACK_TOKEN=q1w2e3r4t5y6", "q1w2e3r4t5y6"),
    ("Cookie: sid=abc123def456ghi; theme=dark", "abc123def456ghi"),
    ("Cookie: theme=dark; sid=abc123def456ghi", "abc123def456ghi"),
    ("password = 'hunter2, or (so)'", "hunter2, or (so)"),
    ("-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0A1B\n\nMIIEowIBAAKCAQEA\n"
     "-----END RSA PRIVATE KEY-----", "MIIEowIBAAKCAQEA"),
    ("use sk-Hwu9HFhvTS0l_Nrr-9EEa4 now", "Hwu9HFhvTS0l_Nrr-9EEa4"),
    ("use sk-Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0 now", "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0"),
    ("---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\nComment: \"mine\"\nP2/56wAAAgIAAAAm\n---- END", "P2/56wAAAgIAAAAm"),
    ("PuTTY-User-Key-File-3: ssh-rsa\nPrivate-Lines: 2\nAAABAQCmXh\nZ3q8bTkP\nPrivate-MAC: 0a", "AAABAQCmXh\nZ3q8bTkP"),
    ("<password>hunter2</password>", "hunter2"),
    ("<db:password>hunter2</db:password>", "hunter2"),
    ("<apiKey>a1b2c3d4e5f6</apiKey>", "a1b2c3d4e5f6"),
    ("tool --password hunter2 --quiet", "hunter2"),
    ("tool --db-pass=hunter2", "hunter2"),
    ('["tool", "--password", "hunter2"]', "hunter2"),
    ("tool --api-key a1b2c3d4e5f6 x", "a1b2c3d4e5f6"),
    ("tool --token 'a1b2c3d4e5f6'", "a1b2c3d4e5f6"),
    ("curl -u me:hunter2 https://h/", "hunter2"),
    ("curl -s --user 'me:hunter2' https://h/", "hunter2"),
    ("sshpass -p hunter2 ssh me@h", "hunter2"),
    ("mysql -u root -phunter2 db", "hunter2"),
    ("redis-cli -h h -a hunter2 ping", "hunter2"),
    ("machine h login me password hunter2", "hunter2"),
    ("curl -sSu me:hunter2 https://h/", "hunter2"),
    ("curl https://h/ \\\n  -u me:hunter2", "hunter2"),
    ("curl 'https://h/' \\\n  -H 'accept: x' \\\n  -b 'theme=dark; sid=abc123def456ghi'", "abc123def456ghi"),
    ("http -a me:hunter2 GET h", "hunter2"),
    ("mongodump --uri h -u me -p hunter2", "hunter2"),
    ("az login --service-principal -u x -p hunter2 --tenant t", "hunter2"),
    ("openssl rsa -in a -passin pass:hunter2 -out b", "hunter2"),
    ("zip -r -P hunter2 a.zip b", "hunter2"),
    ("7z a -phunter2 a.7z b", "hunter2"),
    ("ldapsearch -D cn=x -w hunter2 -b dc=y", "hunter2"),
    ("smbclient //h/s -U me%hunter2", "hunter2"),
    ("htpasswd -cb file me hunter2", "hunter2"),
    ("gh secret set DEPLOY --body hunter2", "hunter2"),
    ("fly secrets set DB_URL=hunter2", "hunter2"),
    ("kubectl create secret generic x --from-literal=db=hunter2", "hunter2"),
    ("auth: { user: 'me@h', pass: 'hunter2' }", "hunter2"),
    ('{"auth": {"user": "me", "pass": "hunter2"}}', "hunter2"),
    ("echo me:hunter2 | chpasswd", "hunter2"),
    (f"wandb login --relogin {'0a1b2c3d' * 5}", "0a1b2c3d" * 5),
    ("ngrok config add-authtoken 2abCdEfGh1jKlMn0pQrStUv", "2abCdEfGh1jKlMn0pQrStUv"),
    ("snyk auth 0a1b2c3d-0a1b-2c3d-4e5f-0a1b2c3d4e5f", "0a1b2c3d-0a1b-2c3d-4e5f-0a1b2c3d4e5f"),
    ('{"token": "q1w2e3r4t5y6u7i8o9p0"}', "q1w2e3r4t5y6u7i8o9p0"),
    ("const token = 'q1w2e3r4t5y6u7i8o9p0'", "q1w2e3r4t5y6u7i8o9p0"),
    ("API_KEYS=q1w2e3r4t5y6u7i8,o9p0a1s2d3f4g5h6", "q1w2e3r4t5y6u7i8"),
    ("OPS_TOKENS='q1w2e3r4t5y6u7i8,o9p0a1s2d3f4g5h6'", "o9p0a1s2d3f4g5h6"),
    ("MY_PATS=q1w2e3r4t5y6u7i8", "q1w2e3r4t5y6u7i8"),
    ("docker login -u me -p hunter2 h", "hunter2"),
    ("echo 'hunter2' | docker login -u me --password-stdin", "hunter2"),
    ("me:hunter2@tcp(127.0.0.1:3306)/db", "hunter2"),
    ("https://api.telegram.org/bot123456789:AAq1w2e3r4t5y6u7i8o9p0a1s2d3f4g5h6j/getMe", "AAq1w2e3r4t5y6u7"),
    ("sqlplus -S me/hunter2@//h:1521/db", "hunter2"),
    ("jdbc:oracle:thin:me/hunter2@h:1521:db", "hunter2"),
    (f'Digest username="me", nonce="n", response="{"0a1b2c3d" * 4}"', "0a1b2c3d" * 4),
    ("CREATE USER me IDENTIFIED BY 'hunter2'", "hunter2"),
    ("ALTER ROLE me WITH PASSWORD 'hunter2'", "hunter2"),
    ('{"auths": {"h": {"auth": "bWU6aHVudGVyMg=="}}}', "bWU6aHVudGVyMg"),
    ("//h/:_auth=bWU6aHVudGVyMg==", "bWU6aHVudGVyMg"),
    (f"Credential=me/20260101/s3, SignedHeaders=host, Signature={'0a1b2c3d' * 8}", "0a1b2c3d" * 8),
    ("https://a1b2c3d4e5f6g7:hunter2@h/1", "a1b2c3d4e5f6g7"),
    ('{"k": "sk\\u002dproj-Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8"}', "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8"),
    ('{"k": "Basic bWU6Pz8\\/cHc="}', "cHc="),
    ("| API_KEY | q1w2e3r4t5y6u7i8 |", "q1w2e3r4t5y6u7i8"),
    ("| **`API_KEY`** | `q1w2e3r4t5y6u7i8` |", "q1w2e3r4t5y6u7i8"),
    ("| API key | q1w2e3r4t5y6u7i8 |", "q1w2e3r4t5y6u7i8"),
    ("- **API key:** `q1w2e3r4t5y6u7i8`", "q1w2e3r4t5y6u7i8"),
    ("ENV API_KEY q1w2e3r4t5y6u7i8", "q1w2e3r4t5y6u7i8"),
    ('setx SLACK_TOKEN "q1w2e3r4t5y6u7i8"', "q1w2e3r4t5y6u7i8"),
    ("ENV BUILDKITE_PAT q1w2e3r4t5y6u7i8", "q1w2e3r4t5y6u7i8"),
    ("| CODECOV_TOKEN | q1w2e3r4t5y6u7i8 |", "q1w2e3r4t5y6u7i8"),
    ("set -gx SLACK_TOKEN 'q1w2e3r4t5y6u7i8'", "q1w2e3r4t5y6u7i8"),
    ("aws configure set aws_secret_access_key wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "K7MDENG"),
    ("gh secret set API_KEY --body q1w2e3r4t5y6u7i8", "q1w2e3r4t5y6u7i8"),
    ('{"out": "API_KEY\\tq1w2e3r4t5y6u7i8"}', "q1w2e3r4t5y6u7i8"),
    ("your API key is q1w2e3r4t5y6u7i8.", "q1w2e3r4t5y6u7i8"),
    ("API_KEY,q1w2e3r4t5y6u7i8", "q1w2e3r4t5y6u7i8"),
    ('SetEnvironmentVariable("API_KEY", "q1w2e3r4t5y6u7i8")', "q1w2e3r4t5y6u7i8"),
    ("<td>API_KEY</td><td>q1w2e3r4t5y6u7i8</td>", "q1w2e3r4t5y6u7i8"),
    ("<key>API_KEY</key>\n  <string>q1w2e3r4t5y6u7i8</string>", "q1w2e3r4t5y6u7i8"),
    ('<add key="ApiKey" value="q1w2e3r4t5y6u7i8"/>', "q1w2e3r4t5y6u7i8"),
    ("- name: API_KEY\n  value: q1w2e3r4t5y6u7i8", "q1w2e3r4t5y6u7i8"),
    ('{"out": "- name: API_KEY\\n  value: q1w2e3r4t5y6u7i8"}', "q1w2e3r4t5y6u7i8"),
    ("api_key: |\n  q1w2e3r4t5y6u7i8", "q1w2e3r4t5y6u7i8"),
    ("api_key: >-\n  q1w2e3r4t5y6u7i8", "q1w2e3r4t5y6u7i8"),
    ("apiKey: string = 'q1w2e3r4t5y6u7i8'", "q1w2e3r4t5y6u7i8"),
    ('apiKey := "q1w2e3r4t5y6"', "q1w2e3r4t5y6"),
    ("\x1b[1mAPI_KEY\x1b[0m=\x1b[32mq1w2e3r4t5y6u7i8\x1b[0m", "q1w2e3r4t5y6u7i8"),
    ("API_KEY=\x1b[32mq1w2e3r4t5y6u7i8\x1b[0m", "q1w2e3r4t5y6u7i8"),
    ("Authorization: Api-Key q1w2e3r4.t5y6u7i8o9p0a1s2d3f4g5h6j7k8l9z0", "t5y6u7i8o9p0a1s2d3"),
    ("NEBIUS_API_KEY=v1.q1w2e3r4t5y6u7i8o9p0a1s2d3f4g5h6", "q1w2e3r4t5y6u7i8o9p0"),
    ("echo hunter2 | sudo -S apt update", "hunter2"),
    ("echo hunter2 | wrangler secret put DB", "hunter2"),
    ("echo hunter2 | vercel env add DB", "hunter2"),
    ('{"api_key": "ab\\/cD9\\/eF8gH7iJ6kL5mN4oP3"}', "eF8gH7iJ6kL5mN4oP3"),
    ('{"api_key": "\\/bcD9\\/eF8gH7iJ6kL5mN4oP3"}', "eF8gH7iJ6kL5mN4oP3"),
    ('{"api_key": "abcD9\\u002BeF8gH7iJ6kL5mN4oP3\\u003d"}', "eF8gH7iJ6kL5mN4oP3"),
    ('{"password": "hunt\\"er2"}', "er2"),
    ('{"password": "hunter\\\\"}', "hunter"),
    ('{"a": "{\\"password\\": \\"hunt\\\\\\"er2\\"}"}', "er2"),
    ("db.example.com:5432:shop:admin:hunter2", "hunter2"),
    ("*:*:*:me:hunter2", "hunter2"),
    ('{"out": "# host\\nh:6432:*:me@corp:hunter2"}', "hunter2"),
    ("<input type=password value=hunter2>", "hunter2"),
    ('<input id="p" type="password" name="p" value="hunter2, or so">', "hunter2, or so"),
    ("<INPUT value='hunter2, or so' id=p type='password'/>", "hunter2, or so"),
    ('{"out": "<input type=\\"password\\" value=\\"hunter2\\">"}', "hunter2"),
    ("users:\n- name: me\n  user:\n    token: q1w2e3r4t5y6u7i8o9p0", "q1w2e3r4t5y6u7i8o9p0"),
    ('{"out": "user:\\n  token: abcdef.0r4t5y6u7i8o9p0a"}', "abcdef.0r4t5y6u7i8o9p0a"),
    *((f"<{name}>q1w2e3r4t5y6u7i8o9p0</{name}>", "q1w2e3r4t5y6u7i8o9p0") for name in (
        "sharedAccessKey", "xAuthToken", "xApiKey", "apiAuthToken", "personalAccessToken", "secretAccessKey")),
    *((f"me:{kind}{HASHED}:19000:0:99999:7:::", HASHED) for kind in (
        "$1$q1w2e3r4$", "$5$q1w2e3r4t5y6u7i8$", "$6$rounds=5000$q1w2e3r4$", "$y$j9T$q1w2e3r4$", "$2b$12$",
        "$apr1$q1w2e3r4$", "$argon2id$v=19$m=65536,t=3,p=4$q1w2e3r4t5y6$")),
])
def test_what_stands_before_a_value_can_say_that_it_is_a_credential(given, hidden):
    assert detection.suspicious(given)
    masked = redact.body(given.encode()).decode()
    assert hidden not in masked
    assert len(masked) == len(given)
    if given.startswith("{") and "\\\"" not in given:
        json.loads(masked)


@each_row("secret", [
    f"apk_user_{'q1w2e3' * 6}", f"apk_{'q1w2e3' * 6}", f"cog_{'q1w2e3' * 6}", f"fk-{'q1w2e3' * 4}-{'q1-2e3' * 6}",
    f"sgamp_user_{'Q1W2E3' * 4}_{'0a1b2c3d' * 8}", f"dtn_{'0a1b2c3d' * 8}", f"xai-token-{'q1w2e3' * 11}",
    "ctx7sk-0a1b2c3d-0a1b-2c3d-4e5f-0a1b2c3d4e5f", f"bt-st-{'q1w2e3' * 7}", f"wk-1.{'0a1b2c3d' * 8}",
    f"sk_{'q1w2e3' * 6}", f"vci_{'q1w2e3' * 7}", f"vcr_{'q1w2e3' * 7}",
    f"vercel_blob_rw_{'q1w2' * 4}_{'q1w2e3' * 5}",
])
def test_a_key_of_a_coding_agent_or_its_host_is_masked(secret):
    masked = redact.body(f"use {secret} now".encode()).decode()
    assert re.fullmatch(r"use \[masked: [^\]]+\]\** now", masked), masked


@pytest.mark.parametrize("key", ["sk-abcdefghijklmnopqrstuvwx", "sk-test-aaaaaaaaaaaaaaaaaaaaaaaa"])
def test_a_key_is_masked_even_if_it_does_not_look_random(key):
    assert key[8:] not in redact.body(f"the key {key} is here".encode()).decode()


@each_row("pem", [
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA\nq1w2e3/r4t5y6==\n-----END RSA PRIVATE KEY-----\n",
    "-----BEGIN PRIVATE KEY-----\r\nMIIEowIBAAKCAQEA\r\nq1w2e3/r4t5y6",
    "---- BEGIN SSH2 PRIVATE KEY ----\nComment: \"mine\"\nMIIEowIBAAKCAQEA\nq1w2e3/r4t5y6==\n",
    "Private-Lines: 2\r\nMIIEowIBAAKCAQEA\r\nq1w2e3/r4t5y6==\r\n",
])
def test_a_private_key_in_json_in_json_is_masked(pem):
    given = pem
    for depth in range(5):  # a file in the result of a tool in a request in an export
        for spelled in (given, given.replace("/", "\\/")):
            masked = redact.body(spelled.encode()).decode()
            assert ("MIIEowIBAAKCAQEA" in masked, "q1w2e3" in masked, "r4t5y6" in masked) == (False,) * 3, depth
            assert len(masked) == len(spelled)
        given = json.dumps({"k": given})
        json.loads(redact.body(given.encode()))


@settings(deadline=None)
@given(st.text(max_size=40), st.sampled_from(credentials.FORMS), st.text(max_size=40), st.randoms())
def test_json_stays_json_of_the_same_shape(before, form, after, rng):
    secret = example(form.template, rng)
    given = json.dumps({"a": [f"{before} {secret} {after}", 1], "b": None}).encode()
    masked = redact.body(given)
    assert len(masked) == len(given)
    assert secret not in masked.decode()
    read = json.loads(masked)
    assert (set(read), type(read["a"][0]), read["a"][1], read["b"]) == ({"a", "b"}, str, 1, None)


def test_the_values_of_this_machines_own_credentials(monkeypatch):
    monkeypatch.setenv("CORP_LLM_KEY", "plain words of a key")
    detection._environment.cache_clear()
    try:
        assert "plain words of a key" not in redact.text("it is plain words of a key here")
    finally:
        detection._environment.cache_clear()


@each_row(
    "text",
    [
        "task-based-learning-with-long-words",
        "sk-learn",
        "sk-learn-based-pipeline-of-many-steps",
        "sk-toggleable__content fitted sk-container-id-12 sk-estimator-doc-link-wrapper-2",
        "100%sure\x1b[32mgreen [m]task-based-learning-with-long-words",
        "Bearer of bad news",
        "the Bearer authentication-scheme-of-http",
        "AIza",
        "risk-0123456789abcdefghijklm",
        "Basic understanding of arithmetic",
        '{"token_type": "Bearer", "token": " the", "logprob": -0.1}',
        '{"prompt_cache_key": "abcd1234efgh5678", "credentialType": "a1b2c3d4e5f6g7h8"}',
        "api_key = os.environ['OPENAI_API_KEY']",
        "client = Client(api_key=settings.openai_api_key, password=password)",
        'password: str = Field(description="The password")',
        "check that `password=None` also returns, and that `password='invalid'` fails",
        '{"password": {"type": "string"}}',
        "the --password flag, the --token option and --key in the docs",
        "The API key: it is kept in the vault; the session key: see above; access token = none",
        "a password > 8, <password></password>, <label>Password</label>",
        "curl -u $USER:$PASS https://h/ and mysql -u root -p db",
        'the word password "is" quoted, and so is \'password\'',
        '{"auth": "required", "next_token": "a1b2c3d4e5f6"}',
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855@123e4567-e89b-12d3-a456-426614174000",
        "OpenTelemetryInstrumentation.Tracer.abc Mixtral-8x7B-Instruct-v0.1",
        "d41d8cd98f00b204e9800998ecf8427e",
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "123e4567-e89b-12d3-a456-426614174000",
        "call_a1B2c3D4e5F6g7H8i9J0k1L2 chatcmpl-Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St msg_01XFDUDYJgAACzvnptvVoYEL",
        "toolu_01A09q90qw90lq917835lq9 resp_67ccd2bed1ec8190b14f964abc0542670bb6a6b452d3795b",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
        "https://h/p?page_token=abc&key=name",
        "| API_KEY | string | required, see settings_2024.example |",
        "| password | The password of the user, 16 characters |",
        "isinstance(self.private_key, X25519PrivateKey), CACHE_KEY v2-0a1b2c3d4e5f6a7b",
        "ENV API_KEY ${API_KEY} and setx API_KEY %API_KEY%, set -x API_KEY $argv[1]",
        "the api key claude-3-5-sonnet-20241022 takes, access token src/auth/refresh_tokens_test.py",
        "tests pass d41d8cd98f00b204e9800998ecf8427e, deploy key 2024-01-02T03:04:05",
        "echo hello | sort, cog_config_for_the_service_of_users, apk_signing_block_version_two_and_three",
        '{"token": "a1b2c3d4e5f6", "next_token": "q1w2e3r4t5y6u7i8o9p0", "nextPageToken": "q1w2e3r4t5y6u7i8o9p0"}',
        "const token = 'the-word-that-stands-here' and token = tokens['a1b2c3d4e5f6a7b8c9d0'].value",
        "CACHE_KEYS=q1w2e3r4t5y6u7i8 MAX_TOKENS=4096 SORT_KEYS='name,created_at_2024'",
        "docker run --name mongodb -p 27017:27017 mongo, unzip -p a.zip b | head, gzip -k a && xargs -P 4 make",
        "curl -sS -o out https://h/ && git checkout -b 'fix/a1b2c3d4e5f6' origin/main, 7z a -p out.7z b",
        "user: 'me', pass: process.env.PASS, kubectl create configmap x --from-literal=db=$DB, gh secret set X < file",
        "openssl rsa -passin env:PASS, ldapsearch -W -b dc=x, http -v GET h, wandb login, snyk auth --help",
        "fk-orders-customer-id-2024-constraint ak_form sm_breakpoint hb_form ste-by-step sk_buff",
        "root:x:0:0:root:/root:/bin/bash root:*:19000:0:99999:7::: bin:!:19000:: localhost:5432:db 12:30:45:067:890",
        "app.js:1024:20:error:undefined fe80:1234:5678:9abc:def0 java:5423:45:warn:unused",
        '<input type=password value=""><input type="password" placeholder="Yours"><input type="text" value="me">',
        '<input type="password" value="{{ form.password }}"><input type=password value={password}> :value="password2"',
        "token: string, token: ${{ secrets.GITHUB_TOKEN }}, token: the-word-that-stands-here",
        "page_token: q1w2e3r4t5y6u7i8o9p0",
        'echo "$1$2" "$1$HOME/bin/of/the/service/2024" $6$ $y$ awk \'{print $1$5}\'',
    ],
)
def test_ordinary_text_is_not_touched(text):
    assert redact.text(text) == text


def test_names_in_a_requests_own_json_but_never_in_its_messages():
    request = {
        "tools": [{"type": "mcp", "authorization": "abc", "headers": {"X-Api-Key": "abc", "accept": "x"}}],
        "mcp_servers": [{"url": "u", "authorization_token": "abc"}],
        "max_tokens": 5,
        "metadata": {"token_count": "7", "cookie": "abc", "setCookie": "abc"},
        "messages": [{"role": "user", "content": "x", "api_key": "kept"}],
    }
    clean = redact.request(request, json.dumps(request))
    assert clean["tools"][0]["authorization"] == clean["mcp_servers"][0]["authorization_token"] == REDACTED
    assert clean["tools"][0]["headers"] == {"X-Api-Key": REDACTED, "accept": "x"}
    assert clean["max_tokens"] == 5
    assert clean["metadata"] == {"token_count": "7", "cookie": REDACTED, "setCookie": REDACTED}
    assert clean["messages"] == request["messages"]


def everything(exchange):
    """All that a view could show of an exchange."""
    return repr([getattr(exchange, name) for name in type(exchange).__slots__])


def test_no_credential_of_a_har_is_in_its_exchanges(load):
    source = entry(
        [user(f"my key is {KEY}")],
        chat_body(f"do not share {KEY}"),
        url=CHAT + "?api_key=hunter2secret",
        headers={
            "Authorization": "Bearer hunter2secret",
            "Cookie": "sid=hunter2secret",
            "x-forwarded-note": f"is {KEY}",
        },
        response_headers={"Set-Cookie": "sid=hunter2secret", "content-type": "application/json"},
        tools=[{"type": "mcp", "authorization": "hunter2secret"}],
    )
    loaded = load(har(source))
    (exchange,) = loaded.exchanges
    assert "hunter2secret" not in everything(exchange)
    assert KEY not in everything(exchange)
    assert exchange.response.text == f"do not share {redact.mask(len(KEY), 'OpenAI project key').decode()}"
    assert loaded.inputs[0].masked["OpenAI project key"] == 3
    assert len(exchange.body) == len(source["response"]["content"]["text"])


def test_no_credential_reaches_a_written_session(tmp_path):
    path = tmp_path / "s.jsonl"
    write_session(
        path,
        [
            {
                "type": "request",
                "id": "r1",
                "api": "openai_chat",
                "url": CHAT + "?key=hunter2secret",
                "headers": [("Authorization", "Bearer hunter2secret")],
                "body": {"messages": [user(KEY)], "mcp_servers": [{"authorization_token": "hunter2secret"}]},
            },
            {"type": "response", "request": "r1", "status": 200, "headers": [["set-cookie", "hunter2secret"]]},
            {"type": "bytes", "request": "r1", "text": f"data: {KEY}\n\n"},
            {"type": "tool_result", "request": "r1", "call_id": "c", "text": f"env: {KEY}"},
            {"type": "note", "text": f"rotate {KEY}"},
        ],
    )
    written = path.read_text()
    assert "hunter2secret" not in written
    assert KEY not in written
    assert written.count("[masked: OpenAI project key]") == 4


LEAST = {"id": "r1", "request": "r1", "text": "x", "end": "reset", "name": "strict", "values": {}}
"""A value of every member that some record cannot do without (`inspector.sessions.native.FIELDS`)."""


@each_row("kind", [None, *FIELDS])
def test_no_member_of_a_written_record_keeps_a_credential(kind):
    model = next(each for each in json_schema()["$defs"].values() if (
        each["properties"].get("type", {}).get("const") == kind and ("type" in each["properties"]) == bool(kind)))
    least = {"type": kind, **{name: LEAST[name] for name in FIELDS[kind]}} if kind else {"loop_inspector_session": 1}
    tried = 0
    for name in model["properties"].keys() - {"type", "api"}:
        for value in (KEY, {KEY: KEY}, [[KEY, KEY]]):
            record = {key: each for key, each in least.items() if (key, name) != ("text", "base64")} | {name: value}
            if name == "base64":
                record["base64"] = base64.b64encode(b"\xff " + KEY.encode()).decode()
            try:
                written = session_bytes([record])
            except ValueError:
                continue  # no value of that member's type
            tried += 1
            for line in map(json.loads, written.splitlines()):
                plain = json.dumps(line).encode() + base64.b64decode(line.get("base64", ""))
                assert KEY.encode() not in plain, (name, value)
    assert tried or kind == "cancel"


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_a_key_in_any_text_of_a_file_is_masked_before_anything_is_shown(shape: Shape, tmp_path):
    path = tmp_path / shape.name
    texts = [place for place in places(shape.value) if isinstance(reduce(getitem, place, shape.value), str)]
    for place in texts:
        path.write_bytes(shape.file_bytes(put(shape.value, place, KEY)))
        assert KEY.encode() not in pickle.dumps(open_paths([str(path)])), place


def test_what_a_proxy_says_of_a_connection_is_masked(tmp_path):
    shape = next(shape for shape in SHAPES if shape.format == "mitmproxy")
    path = tmp_path / shape.name
    flow = {**shape.value, "error": {"msg": f"lost https://u:{KEY}@h", "timestamp": 1.0}}
    path.write_bytes(shape.file_bytes({**flow, "response": {**flow["response"], "content": b'{"object": "chat.com'}}))
    (exchange,) = open_paths([str(path)]).exchanges
    assert ["[masked" in found.message for found in exchange.response.findings
            if found.rule == "transport.aborted"] == [True]


LONG = 200_000
BEGIN = "-----BEGIN PRIVATE KEY-----"


@pytest.mark.parametrize(("search", "text", "found"), [
    (redact.url, "http://h/" + "?" * LONG, None),
    (redact.masked_places, json.dumps({"a": "[masked: " * LONG}), ()),
    (is_mask, "-" * LONG + "a", False),
    (redact.text, "sk-" * LONG, None), (redact.text, "cookie: " * (LONG // 10), None),
    (redact.text, "api_key=" * (LONG // 10), None),
    (lambda text: len(redact.text(text)), f"{BEGIN}\n" * (LONG // 5), len(BEGIN) * (LONG // 5) + LONG // 5),
    (lambda text: _CACHE_MARK.sub("", text), '{"text": "' + " " * LONG + 'x"}', None),
    (lambda text: len(redact.text(text)), BEGIN + "\\" * LONG, len(BEGIN) + LONG),
    (lambda text: len(redact.text(text)), "-----END PRIVATE KEY-----\n" * (LONG // 5), LONG // 5 * 26),
    (redact.text, "curl -b 'a" * (LONG // 10), None), (redact.text, "curl -b 'a=b' " * (LONG // 14), None),
    (redact.text, "zip x -u me:$PASS " * (LONG // 20), None), (redact.text, "OPS_KEYS=a," * (LONG // 12), None),
], ids=["url", "masked places", "mask of a name", "key", "cookie", "word of names", "private keys",
        "cache mark", "escapes", "ends of keys", "commands", "cookies", "other commands", "variables"])
def test_a_long_run_of_what_a_pattern_begins_with_takes_no_longer_than_it_is(search, text, found):
    """A search from each of these characters to the end would take minutes."""
    begun = time.process_time()
    result = search(text)
    assert time.process_time() - begun < 5
    assert result == (text if found is None else found)


@pytest.mark.parametrize(("before", "value"), [("Cookie: ", "theme=dark; " * 40 + "sid=abc123def456ghi; x=y"),
                                               ("api_key=", "q1w2e3r4t5y6" * 40), ("password=", "hunter2" * 50)])
def test_a_long_value_is_masked_whole(before, value):
    masked = redact.text(f"{before}{value}\nafter")
    assert re.fullmatch(re.escape(before) + r"\[masked[^\]]*\]\**\nafter", masked)
    assert len(masked) == len(before + value + "\nafter")


def test_a_cache_mark_is_no_part_of_what_is_compared():
    plain = '{"type": "document", "data": "x"}'
    for mark in (', "cache_control": {"type": "ephemeral"}', ',"cachePoint":{}', ',\n  "cache_point" : {"a": 1}'):
        assert _CACHE_MARK.sub("", plain[:-1] + mark + "}") == plain


@each_row(("text", "is_one"), [
    ("", True), ("[REDACTED]", True), ("***", True), ("<masked>", True), ("redacted-1", False),
    ("masked removed", False),
])
def test_what_stands_for_a_name_that_was_taken_out(text, is_one):
    assert is_mask(text) is is_one


def test_a_request_that_is_nested_too_deeply_to_be_cleaned_is_left_out(load):
    deep = '{"authorization": ' + "[" * 900 + "]" * 900 + "}"
    source = entry(None, chat_body("x"), request={})
    source["request"]["postData"]["text"] = deep
    (exchange,) = load(har(source)).exchanges
    assert exchange.request is None or exchange.request.messages == ()


ENDS = ("password=", "password: ", "DB_PASSWORD='", "api_key=", "<password>", "IDENTIFIED BY '", "--password",
        "Cookie: ", "--password=", '"password": "', "curl -u me:", "sshpass -p", "mysql -u me -p", "https://u:",
        "auth=", "pass='", "authorization: Bearer ", "login me password ", "?token=", "Signature=",
        "curl -b 'a=", "API_KEYS=", "token = '", "--from-literal=a=", "rsa -passin pass:", "user: 'me', pass: '")
"""What a string may end in, as a piece of a stream does, before the credential that is to come."""


@each_row("end", ENDS)
@each_row("separators", [(", ", ": "), (",", ":")])
def test_json_stays_json_where_a_string_ends_before_its_credential(end, separators):
    for value in (
        {"a": end, "b": "it's <b> x@y here", "c": 1}, {"a": [end, None, 5, True, "x' y"]}, [end],
        {"a": {"d": {"content": end}, "index": 0, "finish": None}}, {"x": [{"text": end}]}, {end: 12345, "k": "v"},
        {end: True},
    ):
        written = json.dumps(value, separators=separators)
        given = f"data: {written}\n\ndata: {written}\n\n"
        masked = redact.body(given.encode()).decode()
        first, second = (json.loads(line.removeprefix("data: ")) for line in masked.split("\n\n")[:2])
        assert first == second
        assert type(first) is type(value)
        assert masked.replace("9" * 5, "12345") == given  # a number under such a name, and nothing else


@each_row("number", [12345, 0.5, -3, 12345678901234])
def test_a_number_as_a_password_is_masked_and_stays_a_number(number):
    given = json.dumps({"password": number, "arguments": json.dumps({"db_password": number})}).encode()
    masked = redact.body(given)
    assert len(masked) == len(given)
    assert str(number).encode() not in masked
    read = json.loads(masked)
    assert set(str(read["password"])) == set(str(json.loads(read["arguments"])["db_password"])) == {"9"}


@pytest.mark.parametrize(("given", "expected"), [
    ("see /login?next=https%3A%2F%2Fsvc%3AHq7vX2mZk9pL%40host%2Fx", "svc%3A[masked]****%40host"),
    ("see /login?next=https%3a%2f%2fHq7vX2mZk9pLw4Td%40host%2Fx", "%2f%2f[masked: token]*%40host"),
])
def test_addresses_in_addresses(given, expected):
    assert expected in redact.text(given)


@each_row("name", ["functions_key", "jsessionid", "phpsessid", "preshared_key", "rapidapi_key"])
def test_a_random_value_under_the_name_of_a_credential_is_masked(name):
    for text in (f"{name.upper()}=q1w2e3r4t5y6u7i8", json.dumps({name: "q1w2e3r4t5y6u7i8"})):
        assert "q1w2e3r4t5y6u7i8" not in redact.text(text)
    assert redact.text(f"{name} = load_the_value()") == f"{name} = load_the_value()"


@each_row("name", ["redis", "mail", "email", "ftp", "postgres", "pg", "mongo"])
def test_a_short_password_of_a_service_is_masked(name):
    for text in (f"{name.upper()}_PASS=hunter2", json.dumps({f"{name}_pass": "hunter2"})):
        assert "hunter2" not in redact.text(text)


def private_key(kind: str = "RSA PRIVATE KEY") -> list[str]:
    letters = random.Random(7)
    lines = ["".join(letters.choice(ALNUM + "+/") for _ in range(size)) for size in (64, 64, 64, 64, 64, 28)]
    return [f"-----BEGIN {kind}-----", *lines, f"-----END {kind}-----"]


@each_row("shape", [
    "{n:6}→{line}", "{n:6}\t{line}", "{n:05}| {line}", "{n} | {line}", "{n}: {line}", "deploy/server.pem-{n}-{line}",
    "deploy/server.pem:{n}:{line}", "-{line}", "> {line}", "│ {line} │", "# {line}", '"{line}",', '"{line}\\n" +',
    "2026-01-02T03:04:05.678Z server_1 | {line}", "\x1b[32m{line}\x1b[0m", "{n}#KZ:{line}",
])
@each_row("part", [slice(None), slice(0, -1), slice(3, None)])
def test_a_private_key_is_masked_where_each_line_has_other_text_around_it(shape, part):
    lines = private_key()[part]
    text = "\n".join(shape.format(n=number, line=line) for number, line in enumerate(lines, 9))
    once = json.dumps({"content": text, "id": "toolu_01Ab2Cd3Ef4Gh5Ij6Kl7Mn"})
    for masked in (redact.text(text), redact.body(once.encode()).decode(),
                   redact.body(json.dumps({"content": text}, ensure_ascii=False).encode()).decode(),
                   redact.body(json.dumps(once).encode()).decode()):
        assert not [line for line in lines if "-" not in line and line[10:24] in masked]
    read = json.loads(redact.body(once.encode()))
    assert read["id"] == "toolu_01Ab2Cd3Ef4Gh5Ij6Kl7Mn"
    assert json.loads(json.loads(redact.body(json.dumps(once).encode())))["id"] == read["id"]


def test_the_lines_of_a_private_key_in_a_json_array_are_masked():
    lines = private_key()
    read = json.loads(redact.body(json.dumps({"source": lines, "next": "deadbeef" * 8}).encode()))
    assert [line for line in lines[1:-1] if line in read["source"]] == []
    assert (len(read["source"]), read["next"]) == (len(lines), "deadbeef" * 8)


@pytest.mark.parametrize("kind", ["OPENSSH PRIVATE KEY", "ENCRYPTED PRIVATE KEY", "PGP PRIVATE KEY BLOCK"])
def test_headers_of_a_private_key_do_not_end_its_mask(kind):
    first, *lines = private_key(kind)
    text = "\n".join(f"  {number}→{line}" for number, line in enumerate(
        [first, "Proc-Type: 4,ENCRYPTED", "DEK-Info: AES-256-CBC,C2F6F8A1B3D49E0", "", *lines]))
    assert not [line for line in lines[:-1] if line[:12] in redact.text(text)]


@each_row("text", [
    "the header is `-----BEGIN RSA PRIVATE KEY-----`, and commit 3f2a9c8d7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a2b broke it",
    'if "-----BEGIN PRIVATE KEY-----" in text:\n    return load_private_key_from_text(text, backend=default_backend())',
    '{"a": "-----BEGIN PRIVATE KEY-----\\n", "id": "toolu_01Ab2Cd3Ef4Gh5Ij6Kl7Mn8Op9Qr0St1Uv2Wx3Yz4Ab5"}',
    "-----BEGIN PRIVATE KEY-----" + "; a word\n" * 30 + "3f2a9c8d7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a2b",
    "-----BEGIN CERTIFICATE-----\n1→MIIEowIBAAKCAQEAx8Zf3k2v9Q7w5T1b0mN4cR6yU8iO3pL2aS5dF7\n-----END CERTIFICATE-----",
])
def test_what_stands_behind_a_mention_of_a_private_key_is_not_masked(text):
    for masked in (redact.text(text), redact.body(text.encode()).decode()):
        assert re.sub(r"\[masked: private key\]\**", "", masked) == re.sub(
            r"-----BEGIN (?:RSA )?PRIVATE KEY-----(?:\s|\\n)*", "", text)


@each_row("before", [0, 50, 110])
@each_row(("format_name", "place"), [
    ("atif", ("continued_trajectory_ref",)), ("mini-swe-agent", ("info", "exit_status")), ("session", (7, "type")),
])
def test_no_notice_quotes_a_credential(tmp_path, format_name, place, before):
    shape = next(shape for shape in SHAPES if shape.format == format_name)
    path = tmp_path / shape.name
    path.write_bytes(shape.file_bytes(put(shape.value, place, f"{'x ' * (before // 2)}{KEY}")))
    (source,) = open_paths([str(path)]).inputs
    notices = " ".join(source.notices)
    assert "sk-proj-" not in notices + repr(source.statements), "nor in what it counts"
    assert "x x" in notices if before else "[masked" in notices


def test_a_path_without_its_slash_is_no_part_of_the_providers_name(tmp_path):
    shape = next(shape for shape in SHAPES if shape.format == "mitmproxy")
    path = tmp_path / shape.name
    path.write_bytes(shape.file_bytes(put(shape.value, ("request", "path"), KEY)))
    addresses = [exchange.url for exchange in open_paths([str(path)]).exchanges]
    assert addresses
    assert all(KEY not in str(each) and ".com/" in str(each) for each in addresses)


def test_a_key_where_an_entry_that_is_skipped_names_its_method_is_masked(tmp_path):
    key = "AKIA" + "Q7Z5M3X2W8V4T6R1"
    path = tmp_path / "a.har"
    path.write_text(json.dumps({"log": {"entries": [{
        "request": {"method": key, "url": "https://example.com/x", "headers": []},
        "response": {"status": 200, "headers": [], "content": {"text": "hi"}}}]}}))
    (skip,) = open_paths([str(path)]).inputs[0].skipped
    assert skip.why.startswith("no LLM traffic: ")
    assert key not in skip.why


def test_a_credential_that_is_escaped_in_json_inside_a_json_string_is_masked() -> None:
    """A tool's result that .NET wrote (`\\u002B` for `+`), or PHP (`\\/` for `/`), is JSON in a string of a body."""
    key = "Ab+cD/9eF0" * 7
    secret = f"ABSK{key}"
    for inner in (json.dumps({"key": secret}).replace("+", "\\u002B"), json.dumps({"key": secret}).replace("/", "\\/")):
        for outer in (json.dumps({"content": inner}), json.dumps({"content": json.dumps({"result": inner})})):
            masked = redact.body(outer.encode())
            shown = json.loads(masked)["content"]
            shown = json.loads(json.loads(shown).get("result", shown))["key"]
            assert len(masked) == len(outer)
            assert shown.startswith("[masked: Amazon Bedrock key]")
        assert "9eF0" not in redact.text(inner)


@each_row("place", ["text", "reasoning", "arguments"])
@each_row("size", [20, 30, 34])
def test_a_key_whose_first_piece_looks_whole_is_masked_to_its_end(place, size, tmp_path):
    """The first event's piece was masked as a key of its own, and the rest of the key stood in the next one."""
    key = "sk-proj-Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2Yz3"
    before, behind = ('{"a": "', '"}') if place == "arguments" else ("Use ", " now.")

    def delta(piece):
        if place == "arguments":
            return {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}
        return {{"text": "content", "reasoning": "reasoning_content"}[place]: piece}

    begun = {"tool_calls": [{"index": 0, "id": "call_1", "function": {"name": "look", "arguments": ""}}]}
    deltas = [begun if place == "arguments" else {"role": "assistant"}, delta(before + key[:size]),
              delta(key[size:] + behind), {}]
    chunks = [{"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": each}]} for each in deltas]
    chunks[-1]["choices"][0]["finish_reason"] = "stop"
    path = tmp_path / "answer.sse"
    path.write_text("".join(f"data: {json.dumps(each)}\n\n" for each in chunks) + "data: [DONE]\n\n")
    recording = open_paths([str(path)])
    (exchange,) = recording.exchanges
    shown = exchange.body.decode() + json.dumps([str(part) for part in exchange.response.parts])
    assert not re.search("|".join(key[at : at + 8] for at in range(len(key) - 7)), shown)
    assert behind in shown
    assert len(exchange.body) == path.stat().st_size


def test_a_key_whose_first_piece_looks_whole_is_masked_in_the_next_answer_too(tmp_path):
    """The first answer was cut inside the key, and the continuation began with the rest of it, which was readable."""
    key, hint = "sk-proj-Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2Yz3", "Continue exactly from where you left off."
    first = f"The key is {key[:30]}"
    history = [user("Which key?")]
    again = [*history, {"role": "assistant", "content": first}, user(hint)]
    path = tmp_path / "cut.har"
    rest = chat_body(f"{key[30:]}, and no other.")
    path.write_text(har(entry(history, chat_body(first, "length")), entry(again, rest)))
    recording = open_paths([str(path)])
    one, two = (exchange.response.text for exchange in recording.exchanges)
    assert key[30:38] not in two
    assert two.endswith(", and no other.")
    assert len(one + two) == len(first + key[30:] + ", and no other.")


@each_row("word", ["Afterwards, start it.", "Continuing where I stopped:\n", "follow-up steps", "============\n"])
def test_a_word_behind_a_whole_key_is_not_masked_in_the_next_answer(word, tmp_path):
    """The word was masked as the rest of the key, there and wherever else the requests hold it."""
    hint = "Continue exactly from where you left off."
    first = "The key is sk-proj-Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2Yz3"
    history = [user(f"Say {word}")]
    again = [*history, {"role": "assistant", "content": first}, user(hint)]
    path = tmp_path / "cut.har"
    path.write_text(har(entry(history, chat_body(first, "length")), entry(again, chat_body(word))))
    recording = open_paths([str(path)])
    assert recording.exchanges[1].response.text == word
    assert all(exchange.request.messages[0].text == f"Say {word}" for exchange in recording.exchanges)


def test_the_pieces_of_a_span_are_found_without_a_look_at_all_others():
    """An answer with 2,000 keys in 30,000 events took 48 seconds: each key was compared with each event."""
    class Watched(SpelledPiece):
        @property
        def plain(self):
            seen.append(self[0])
            return self[1]

    seen: list[int] = []
    pieces = [Watched(at * 4, b"abcd", list(range(at * 9, at * 9 + 5))) for at in range(1_000)]
    assert list(piece_spans(pieces, CredentialSpan(2_002, 2_009, "a key"))) == [
        (4502, 4504, "a key"), (4509, 4513, "a key"), (4518, 4519, "a key")]
    assert set(seen) == {2_000, 2_004, 2_008}


@pytest.mark.parametrize("frame", ["{}", "Authorization: Bearer {}", '{{"token": "{}", "refresh_in": 1500}}',
                                   "COPILOT_TOKEN={}", "curl -H 'Authorization: Bearer {}'"])
def test_the_token_of_a_copilot_session_is_masked_to_its_last_value(frame: str) -> None:
    """Its values are joined by semicolons, at which every other form of a credential ends."""
    token = (f"tid={'0f1e' * 8};exp=1760000000;sku=free_quota;proxy-ep=proxy.individual.example.com;st=dotcom;chat=1;"
             f"8kp=1;ip=192.0.2.1:{'9cdc' * 16}")
    masked = redact.text(frame.format(token))
    assert "sku" not in masked
    assert "9cdc" not in masked
    assert len(masked) == len(frame.format(token))


WORD = "Zx9Qm2Lp7Vr4Tn8Kw1Yb"


@pytest.mark.parametrize("given", [
    f'{{"openaiApiKey": "{WORD}"}}', f'{{"awsSecretAccessKey":"{WORD}"}}', f"config.openaiAPIKey = '{WORD}'",
    '{"dbPassword": "Zx9Qm2!"}', f'Content-Disposition: form-data; name="api_key"\r\n\r\n{WORD}\r\n--b',
    'dbPassword: "/Zx9Qm2/b"',
    'form-data; name="password"\n\nZx9Qm2!\n', json.dumps('form-data; name="password"\r\n\r\nZx9Qm2!\r\n--b'),
])
def test_a_name_at_the_end_of_a_word_and_a_field_of_a_form_are_names_of_credentials(given):
    masked = redact.text(given)
    assert "Zx9Qm2" not in masked
    assert len(masked) == len(given)
    assert redact.text(masked) == masked


@pytest.mark.parametrize("given", [
    '{"resetPassword": "Reset", "forgotPassword": "Forgot your password?", "minPassword": 8}',
    f'{{"continuationToken": "{WORD}", "nextPageToken": "{WORD}", "bypass": "{WORD}", "maxTokens": 12}}',
    "ForStorageKey: Storage.trackCacheStorageForStorageKeyReturnValue",
    'form-data; name="model"\r\n\r\ngpt-4o-2024-08-06\r\n',
    'newPassword: "{{new1}}"', '<Field showPassword="1" togglePassword="0"/>',
    '{"childSessionKey": "agent:main:subagent:3f2b8c1d-7e64-4a09-b5d2-90c1e7a4f683"}',
    'resetPassword: "/api/v1/auth/reset-password", forgotPassword: "https://api.example.com/v2/users/:id/forgot"',
])
def test_a_longer_word_over_prose_code_or_another_token_is_no_name_of_a_credential(given):
    assert redact.text(given) == given
