"""The typed module, against a host that is made of lists. Run with `python3 -m unittest` in `sdk/python/tests`."""

import sys
import unittest
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "fakes"), str(HERE.parent)]

from componentize_py_types import Err  # noqa: E402
from wit_world.imports import http_client, kv, log, objects, payload, secrets  # noqa: E402

import noetl  # noqa: E402


class Values(unittest.TestCase):
    def setUp(self):
        kv.values.clear()
        objects.stored.clear()

    def test_what_is_put_is_there(self):
        self.assertIsNone(noetl.kv.get("a"))
        noetl.kv.put("a", "text")
        noetl.kv.put_json("b", {"n": 1})
        self.assertEqual(noetl.kv.get("a"), b"text")
        self.assertEqual(noetl.kv.get_json("b"), {"n": 1})
        self.assertEqual(noetl.kv.get_json("c", 7), 7)
        self.assertTrue(noetl.kv.compare_and_swap("a", 1, b"new"))
        self.assertFalse(noetl.kv.compare_and_swap("a", 1, b"newer"))

    def test_keys_are_read_page_by_page(self):
        for key in ["p/3", "p/1", "q", "p/2", "p/4", "p/5"]:
            noetl.kv.put(key, "x")
        self.assertEqual(list(noetl.kv.keys("p/")), ["p/1", "p/2", "p/3", "p/4", "p/5"])

    def test_errors_of_the_host_are_failures_with_a_code(self):
        with self.assertRaises(noetl.Failure) as raised:
            noetl.kv.put("", "x")
        self.assertEqual((raised.exception.code, raised.exception.retryable), ("invalid_key", False))
        with self.assertRaises(noetl.Failure) as raised:
            noetl.kv.put("a", b"x" * (1 << 21))
        self.assertEqual(raised.exception.code, "too_large")

    def test_objects_are_named_payloads(self):
        for key in ["a", "b", "c"]:
            noetl.objects.put(key, noetl.payload.of(key, "text/plain"))
        self.assertEqual([info.key for info in noetl.objects.entries()], ["a", "b", "c"])
        self.assertEqual(noetl.objects.open("b").text(), "b")
        self.assertIsNone(noetl.objects.open("d"))


class Bulk(unittest.TestCase):
    def test_a_payload_is_read_in_pieces_and_put_together_without_reading(self):
        first = noetl.payload.of(b"x" * ((1 << 20) + 5))
        self.assertEqual(len(first.read()), (1 << 20) + 5)
        self.assertEqual([len(piece) for piece in first.chunks()], [1 << 20, 5])
        writer = noetl.payload.Writer("text/plain")
        writer.write("a")
        writer.splice(first, 0, 3)
        self.assertEqual(writer.finish().text(), "axxx")

    def test_a_payload_that_was_given_away_says_so(self):
        given = noetl.payload.of("x")
        given.give()
        with self.assertRaises(ValueError):
            given.read()


class Outside(unittest.TestCase):
    def setUp(self):
        http_client.sent.clear()

    def test_json_is_sent_with_its_type(self):
        http_client.answers.append(http_client.Response(200, [("A", "b")], payload.Payload(b'{"n": 1}')))
        answer = noetl.http.post("https://example.com", json={"q": 1}, timeout=0.5)
        sent = http_client.sent[0]
        self.assertEqual((sent.method, sent.timeout_ms, sent.body.data), ("POST", 500, b'{"q": 1}'))
        self.assertIn(("content-type", "application/json"), sent.headers)
        self.assertEqual((answer.ok().json(), answer.header("a")), ({"n": 1}, "b"))

    def test_a_status_is_a_failure_only_when_asked(self):
        http_client.answers.append(http_client.Response(503, [], payload.Payload(b"later")))
        answer = noetl.http.get("https://example.com")
        with self.assertRaises(noetl.Failure) as raised:
            answer.ok()
        self.assertTrue(raised.exception.retryable)

    def test_no_answer_is_a_failure_that_can_be_tried_again(self):
        http_client.answers.append(Err(http_client.HttpError_Timeout()))
        with self.assertRaises(noetl.Failure) as raised:
            noetl.http.get("https://example.com")
        self.assertEqual((raised.exception.code, raised.exception.retryable), ("timeout", True))

    def test_lines_have_fields(self):
        log.lines.clear()
        noetl.log.warn("slow", ms=12)
        self.assertEqual(log.lines, [("WARN", "slow", [("ms", "12")])])


class Secrets(unittest.TestCase):
    def setUp(self):
        secrets.known.clear()
        secrets.known.update(crm=[("authorization", "Bearer <crm.token>")], pg=[])

    def test_what_is_given_is_what_the_host_says(self):
        self.assertEqual(noetl.secrets.placeholder("crm", "token"), "<crm.token>")
        self.assertEqual(noetl.secrets.headers("crm"), {"authorization": "Bearer <crm.token>"})
        described = noetl.secrets.describe("crm")
        self.assertEqual((described.kind, described.fields), ("bearer", {"host": "h"}))

    def test_a_credential_that_cannot_be_used_is_a_failure_with_its_code(self):
        for alias, code in [("nobody", "unknown_credential"), ("pg", "unsupported_credential")]:
            with self.assertRaises(noetl.Failure) as raised:
                noetl.secrets.headers(alias)
            self.assertEqual((raised.exception.code, raised.exception.retryable), (code, False))
            self.assertIn(alias, raised.exception.message)


if __name__ == "__main__":
    unittest.main()
