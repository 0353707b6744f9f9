"""What looks like a credential never comes through, and what does not is left alone."""

from __future__ import annotations

import string
import time
import unittest

from hypothesis import given, settings
from hypothesis import strategies as st

from interlock_tools.redaction import BLOT, clean, names_a_secret, redact

WORD = string.ascii_letters + string.digits


def tail(least: int, most: int = 40, alphabet: str = WORD) -> st.SearchStrategy[str]:
    return st.text(alphabet, min_size=least, max_size=most)


SHAPED = st.one_of(
    st.tuples(st.sampled_from(["sk_test_", "sk_live_", "rk_live_", "rk_test_", "whsec_"]), tail(4)),
    st.tuples(st.sampled_from(["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-"]), tail(10)),
    st.tuples(st.just("re_"), tail(8, 8), st.just("_"), tail(20)),
    st.tuples(st.sampled_from(["ya29.", "AIza", "GOCSPX-", "sk-proj-", "sk-ant-", "xoxb-"]), tail(24)),
    st.tuples(st.sampled_from(["AKIA", "ASIA"]), tail(16, 16, string.ascii_uppercase + string.digits)),
    st.tuples(st.just("eyJ"), tail(20), st.just("."), tail(20), st.just("."), tail(20)),
).map("".join)
"""Credentials that are known by their shape alone."""

NAMES = st.sampled_from(
    ["password", "api_key", "api-key", "X-Api-Key", "client_secret", "Authorization", "access_token", "token", "Cookie"]
)
VALUES = st.text(WORD + "-._~+/", min_size=1, max_size=40)
PROSE = st.text(string.ascii_letters + " ,.()", max_size=60)


class Known(unittest.TestCase):
    def test_examples(self) -> None:
        cases = {
            "Invalid API Key provided: sk_test_****1234": "sk_test",
            "Authorization: Bearer abcdefgh12345": "abcdefgh12345",
            "Authorization: Basic dXNlcjpwYXNz": "dXNlcjpwYXNz",
            "{'Authorization': 'Bearer abc def'}": "abc def",
            "headers={b'Authorization': b'Bearer abc'}": "abc",
            "Authorization: token hunter2hunter2": "hunter2hunter2",
            "sent with Bearer dG9rZW4tMTIz": "dG9rZW4tMTIz",
            "GET /?client_secret=abc&page=1": "abc",
            "password: 'hunter two'": "hunter two",
            '{"password": "a\\"bc"}': "bc",
            "could not connect to postgresql://agent:p@ss@db/refunds": "p@ss",
            "redis://:hunter2@cache": "hunter2",
            "Set-Cookie: session=abcdef; Path=/": "abcdef",
            "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----": "MIIE",
            "-----BEGIN PRIVATE KEY-----\nMIIE": "MIIE",
        }
        for text, secret in cases.items():
            with self.subTest(text):
                self.assertNotIn(secret, redact(text))
                self.assertIn(BLOT, redact(text))

    def test_names_stay_readable(self) -> None:
        self.assertEqual(redact("password=hunter2&page=1"), f"password={BLOT}&page=1")
        self.assertEqual(redact("Authorization: Bearer abc12345x"), f"Authorization: {BLOT}")

    def test_identifiers_and_prose_are_left_alone(self) -> None:
        for text in (
            "refund re_3NxYzAbCdEfGhIjKlMnOpQr1 of pi_3MtwBwLkdIwHu7ix28a3tqPa",
            "effect 1f6e2a0cbb6a4ddfb95b8b9b0ce1b0f4 at 2026-12-01T05:00:00Z",
            "Your card was declined.",
            "the token expired, basic authentication is not enough, Bearer tokens are required",
            "https://api.example.com:8443/v1/refunds?limit=100",
            "mail to someone@example.com: 550 no such user",
        ):
            with self.subTest(text):
                self.assertEqual(redact(text), text)

    def test_field_names(self) -> None:
        for name in ("client_secret", "password", "Authorization", "x-api-key", "accessToken", "access_token"):
            with self.subTest(name):
                self.assertTrue(names_a_secret(name))
        for name in ("id", "amount", "payment_intent", "secretary", "tokens_used", "status", "token_count"):
            with self.subTest(name):
                self.assertFalse(names_a_secret(name))


class Properties(unittest.TestCase):
    @given(SHAPED, PROSE, PROSE)
    @settings(deadline=None, max_examples=80)
    def test_a_credential_known_by_its_shape_is_blotted_anywhere(self, secret: str, before: str, after: str) -> None:
        for text in (f"{before} {secret} {after}", f"{before}={secret}", f"{before}'{secret}'{after}", f"({secret})"):
            self.assertNotIn(secret, redact(text))

    @given(NAMES, VALUES, st.sampled_from(["{n}={v}", "{n}: {v}", '"{n}": "{v}"', "'{n}': '{v}'", "{n}=Bearer {v}"]))
    @settings(deadline=None, max_examples=80)
    def test_a_value_known_by_its_name_is_blotted(self, name: str, value: str, form: str) -> None:
        marked = f"q{value}q"
        self.assertNotIn(marked, redact("GET /x " + form.format(n=name, v=marked) + " HTTP/1.1"))

    @given(st.text(WORD, min_size=1), st.text(WORD + "@!:", min_size=1))
    @settings(deadline=None, max_examples=60)
    def test_a_password_in_a_url_is_blotted(self, user: str, password: str) -> None:
        marked = f"q{password}q"
        self.assertNotIn(marked, redact(f"cannot reach postgresql://{user}:{marked}@db.example/refunds now"))

    @given(st.one_of(st.text(), st.tuples(PROSE, SHAPED, NAMES, VALUES).map(" = ".join)))
    @settings(deadline=None, max_examples=120)
    def test_twice_is_once(self, text: str) -> None:
        self.assertEqual(redact(redact(text)), redact(text))

    @given(st.text(st.characters(codec=None, categories=None), max_size=400), st.integers(1, 400))
    @settings(deadline=None, max_examples=120)
    def test_cleaned_words_are_one_short_printable_line(self, text: str, most: int) -> None:
        found = clean(text, most)
        self.assertLessEqual(len(found), most)
        self.assertTrue(found.isprintable())
        found.encode("utf-8")

    @given(SHAPED, st.integers(7900, 8050))
    @settings(deadline=None, max_examples=60)
    def test_a_cut_leaves_no_half_of_a_credential(self, secret: str, where: int) -> None:
        text = "password=" + "x" * (where - 9) + " " + secret
        self.assertNotIn(secret[:8], clean(text))

    def test_the_time_grows_with_the_length_and_not_its_square(self) -> None:
        for unit in ("a", "sk-", "password ", "token=", "://", "eyJ", 'token="', "bearer ", "-----BEGIN PRIVATE KEY"):
            with self.subTest(unit):
                short, long = (_seconds(unit * (size // len(unit))) for size in (2_000, 32_000))
                self.assertLess(long, 100 * short + 0.2)  # 16 times the text; its square would be 256 times


def _seconds(text: str) -> float:
    best = float("inf")
    for _ in range(2):
        began = time.perf_counter()
        redact(text)
        best = min(best, time.perf_counter() - began)
    return best


if __name__ == "__main__":
    unittest.main()
