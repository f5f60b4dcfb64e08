"""`urllib.request` over the host, and `asyncio` without sockets."""

import asyncio
import json
import sys
import unittest
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "fakes"), str(HERE.parent), str(HERE.parents[2] / "plugins/interpreters/python")]

from componentize_py_types import Err  # noqa: E402
from wit_world.imports import http_client, payload  # noqa: E402

import _noetl_waiting as waiting  # noqa: E402
import _noetl_web as web  # noqa: E402

web.install()


def says(status, body=b"", *headers):
    http_client.answers.append(http_client.Response(status, list(headers), payload.Payload(body)))


class Web(unittest.TestCase):
    def setUp(self):
        http_client.sent.clear()
        http_client.answers.clear()

    def test_a_request_is_sent_by_the_host(self):
        says(200, b'{"n": 1}\nmore', ("Content-Type", "application/json"), ("X-A", "b"))
        with urllib.request.urlopen("https://example.com/a?b=c#there", timeout=2) as answer:
            self.assertEqual((answer.status, answer.getcode(), answer.headers["x-a"]), (200, 200, "b"))
            self.assertEqual((answer.readline(), answer.read()), (b'{"n": 1}\n', b"more"))
            self.assertEqual(answer.geturl(), "https://example.com/a?b=c")
        sent = http_client.sent[0]
        self.assertEqual((sent.method, sent.url, sent.timeout_ms, sent.body), ("GET", "https://example.com/a?b=c", 2000, None))
        self.assertNotIn("host", [name.lower() for name, _ in sent.headers])

    def test_data_and_headers_go_along(self):
        says(201)
        data = urllib.parse.urlencode({"a": "b c"}).encode()
        urllib.request.urlopen(urllib.request.Request("http://h/", data=data, headers={"X-Key": "k"}))
        says(200)
        request = urllib.request.Request("http://h/", data=json.dumps([1]).encode(), method="PUT")
        request.add_header("Content-Type", "application/json")
        urllib.request.urlopen(request)
        form, put = http_client.sent
        fields = {name.lower(): value for name, value in form.headers}
        self.assertEqual((form.method, form.body.data, fields["x-key"]), ("POST", b"a=b+c", "k"))
        self.assertEqual(fields["content-type"], "application/x-www-form-urlencoded")
        self.assertEqual((put.method, dict(put.headers)["Content-type"]), ("PUT", "application/json"))

    def test_a_status_is_an_error_with_a_body_and_a_redirect_is_followed(self):
        says(404, b"nothing here")
        with self.assertRaises(urllib.error.HTTPError) as raised:
            urllib.request.urlopen("http://h/x")
        self.assertEqual((raised.exception.code, raised.exception.reason, raised.exception.read()), (404, "Not Found", b"nothing here"))
        says(302, b"", ("Location", "/there"))
        says(200, b"here")
        self.assertEqual(urllib.request.urlopen("http://h/x").read(), b"here")
        self.assertEqual(http_client.sent[-1].url, "http://h/there")

    def test_a_login_does_not_follow_to_another_origin(self):
        for there, kept in [("/y", True), ("http://h:80/y", True), ("http://h:81/y", False), ("https://h/y", False), ("http://o/y", False)]:
            says(302, b"", ("Location", there))
            says(200)
            request = urllib.request.Request("http://h/x", headers={"Authorization": "Bearer k", "X-Key": "k", "Accept": "a"})
            urllib.request.urlopen(request)
            names = {name.lower() for name, _ in http_client.sent[-1].headers}
            self.assertEqual(names & {"authorization", "x-key", "accept"}, {"authorization", "x-key", "accept"} if kept else {"accept"}, there)

    def test_no_answer_is_an_error_of_its_kind(self):
        http_client.answers.append(Err(http_client.HttpError_Timeout()))
        with self.assertRaises(urllib.error.URLError) as raised:
            urllib.request.urlopen("http://h/", timeout=1)
        self.assertIsInstance(raised.exception.reason, TimeoutError)

    def test_large_bodies_are_read_in_pieces(self):
        says(200, b"x" * 3_000_000)
        answer = urllib.request.urlopen("http://h/")
        self.assertEqual((len(answer.read(10)), len(answer.read())), (10, 2_999_990))


class Waiting(unittest.TestCase):
    def test_tasks_wait_for_time_and_for_each_other(self):
        async def step(log, name, seconds):
            await asyncio.sleep(seconds)
            log.append(name)
            return name

        async def main():
            log = []
            got = await asyncio.gather(step(log, "late", 0.02), step(log, "soon", 0.001))
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(asyncio.sleep(5), 0.001)
            return got, log

        loop = waiting.Loop()
        self.assertEqual(loop.run_until_complete(main()), (["late", "soon"], ["soon", "late"]))
        loop.close()

    def test_what_can_never_come_is_not_waited_for(self):
        async def forever():
            await asyncio.get_running_loop().create_future()

        loop = waiting.Loop()
        with self.assertRaisesRegex(RuntimeError, "cannot come"):
            loop.run_until_complete(forever())


if __name__ == "__main__":
    unittest.main()
