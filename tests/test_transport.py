"""The integrations' HTTP transport, against a plain socket server that sees every byte."""

from __future__ import annotations

import datetime
import socket
import ssl
import tempfile
import threading
import unittest
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import requests
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from interlock_integrations import transport
from interlock_integrations.transport import NoRequest, NotASend, SecondRequest, mount, new_session, send_error, sending
from interlock_tools import NotSent, SendError, SendRevoked

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Server:
    """Answers every request on loopback with what ``answers`` yields; b"" cuts the connection instead."""

    def __init__(self, answer: bytes | Callable[[bytes], bytes] = OK, tls: ssl.SSLContext | None = None) -> None:
        self.answer = answer
        self.requests: list[bytes] = []
        self.connections: list[bytearray] = []
        self.ended = threading.Condition()
        self.open = 0
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://localhost:{self.port}"

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def wait_idle(self) -> None:
        """Wait until every connection has ended, so that what was received is all there is."""
        with self.ended:
            if not self.ended.wait_for(lambda: self.connections and not self.open, 10):
                raise AssertionError("a connection stays open")

    def _accept(self) -> None:
        while True:
            try:
                peer, _ = self._listener.accept()
            except OSError:
                return
            received = bytearray()
            with self.ended:
                self.connections.append(received)
                self.open += 1
            threading.Thread(target=self._serve, args=(peer, received), daemon=True).start()

    def _serve(self, peer: socket.socket, received: bytearray) -> None:
        try:
            if self._tls is not None:
                peer = self._tls.wrap_socket(peer, server_side=True)
            self._talk(peer, received)
        except OSError:
            pass
        finally:
            peer.close()
            with self.ended:
                self.open -= 1
                self.ended.notify_all()

    def _talk(self, peer: socket.socket, received: bytearray) -> None:
        start = 0
        while chunk := peer.recv(65536):
            received += chunk
            head, blank, body = bytes(received[start:]).partition(b"\r\n\r\n")
            if not blank or len(body) < _length(head):
                continue
            self.requests.append(bytes(received[start:]))
            start = len(received)
            answer = self.answer(head) if callable(self.answer) else self.answer
            if not answer:
                return
            peer.sendall(answer)


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0


class Hook:
    """Stands in for the gate's ``on_send``: notes that it was called, and may raise."""

    def __init__(self, raises: BaseException | None = None, then_raises: BaseException | None = None) -> None:
        self.calls: list[str] = []
        self._raises = raises
        self._then_raises = then_raises

    def __call__(self) -> None:
        self.calls.append("on_send")
        if self._raises is not None:
            raise self._raises

    def written(self) -> None:
        self.calls.append("written")
        if self._then_raises is not None:
            raise self._then_raises


class TransportCase(unittest.TestCase):
    def server(self, answer: bytes | Callable[[bytes], bytes] = OK, tls: ssl.SSLContext | None = None) -> Server:
        server = Server(answer, tls)
        self.addCleanup(server.close)
        return server

    def setUp(self) -> None:
        self.session = new_session()
        self.session.trust_env = False
        self.addCleanup(self.session.close)


class TheMark(TransportCase):
    def test_a_read_that_came_too_soon_is_made_again(self) -> None:
        limited = b"HTTP/1.1 %d Too soon\r\nContent-Length: 0\r\nRetry-After: 0\r\n\r\n"
        for status in (429, 403):
            answers = [limited % status, limited % status]
            server = self.server(lambda head, answers=answers: answers.pop() if answers else OK)  # type: ignore[misc]
            self.assertEqual(new_session().get(server.url, timeout=5).status_code, 200)
            self.assertEqual(len(server.requests), 3)

    def test_a_read_is_not_made_again_for_ever_nor_after_a_long_wait_nor_for_a_plain_refusal(self) -> None:
        tries = transport.READ_TRIES
        for answer, count in (
            (b"HTTP/1.1 429 Too soon\r\nContent-Length: 0\r\nRetry-After: 0\r\n\r\n", tries),
            (b"HTTP/1.1 429 Too soon\r\nContent-Length: 0\r\nRetry-After: 600\r\n\r\n", 1),
            (b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", 1),
            (b"HTTP/1.1 500 Error\r\nContent-Length: 0\r\nRetry-After: 0\r\n\r\n", 1),
        ):
            with self.subTest(answer):
                server = self.server(answer)
                self.assertEqual(new_session().get(server.url, timeout=5).status_code, int(answer[9:12]))
                self.assertEqual(len(server.requests), count)

    def test_it_is_set_before_the_first_byte(self) -> None:
        server = self.server()
        hook = Hook(raises=SendRevoked("not any more"))
        with self.assertRaises(SendRevoked), sending(hook):
            self.session.post(server.url, data=b"body")
        server.wait_idle()
        self.assertEqual([bytes(c) for c in server.connections], [b""], "connected, and not one byte was sent")
        self.assertEqual(hook.calls, ["on_send"])

    def test_written_comes_after_the_last_byte(self) -> None:
        server = self.server()
        body = b"x" * 300_000
        with self.assertRaises(KeyError), sending(Hook(then_raises=KeyError("died here"))):
            self.session.post(server.url, data=body)
        server.wait_idle()
        self.assertEqual(len(server.requests), 1)
        self.assertTrue(server.requests[0].endswith(body), "the request had left whole")

    def test_a_send_in_pieces_is_marked_once(self) -> None:
        server = self.server()
        hook = Hook()
        with sending(hook):
            answer = self.session.put(server.url, data=iter([b"one", b"two"]), headers={"Content-Length": "6"})
        self.assertEqual((answer.text, hook.calls), ("ok", ["on_send", "written"]))

    def test_reads_are_not_marked(self) -> None:
        server = self.server()
        self.assertEqual(self.session.get(server.url).text, "ok")
        hook = Hook()
        with sending(hook):
            self.session.post(server.url)
        self.assertEqual(self.session.get(server.url).text, "ok")
        self.assertEqual(hook.calls, ["on_send", "written"])

    def test_threads_do_not_share_a_send(self) -> None:
        server = self.server()
        hook, results = Hook(), []
        with sending(hook):
            reader = threading.Thread(target=lambda: results.append(self.session.get(server.url).text))
            reader.start()
            reader.join()
            self.assertEqual(hook.calls, [])
            self.session.post(server.url)
        self.assertEqual((results, hook.calls), (["ok"], ["on_send", "written"]))


class BeforeTheFirstByte(TransportCase):
    def assert_not_sent(self, url: str, words: str = "", **options: object) -> None:
        hook = Hook()
        with self.assertRaises(NotSent) as caught, sending(hook):
            self.session.post(url, data=b"body", **options)  # type: ignore[arg-type]
        self.assertEqual(hook.calls, [])
        self.assertIn(words, str(caught.exception))

    def test_a_refused_connection(self) -> None:
        listener = socket.create_server(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        listener.close()
        self.assert_not_sent(f"http://127.0.0.1:{port}", "refused")

    def test_a_name_that_is_not_known(self) -> None:
        failure = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        with mock.patch("socket.getaddrinfo", side_effect=failure):
            self.assert_not_sent("http://api.example.test", "Failed to resolve")

    def test_a_connection_that_does_not_come_about(self) -> None:
        listener = socket.socket()
        self.addCleanup(listener.close)
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            self.addCleanup(one.close)
            one.setblocking(False)
            one.connect_ex(listener.getsockname())
        self.assert_not_sent(f"http://127.0.0.1:{listener.getsockname()[1]}", "timed out", timeout=0.3)

    def test_a_proxy_that_refuses_the_tunnel(self) -> None:
        proxy = self.server(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
        self.assert_not_sent("https://api.example.test", "403", proxies={"https": f"http://127.0.0.1:{proxy.port}"})
        self.assertTrue(proxy.requests[0].startswith(b"CONNECT"))

    def test_a_socks_proxy(self) -> None:
        self.assert_not_sent("https://api.example.test", "SOCKS", proxies={"https": "socks5://127.0.0.1:1"})

    def test_a_read_keeps_the_errors_of_requests(self) -> None:
        with mock.patch("socket.getaddrinfo", side_effect=socket.gaierror(socket.EAI_NONAME, "not known")):
            self.assertRaises(requests.ConnectionError, self.session.get, "http://api.example.test")


class Tls(TransportCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.trusted = _certificate(Path(cls.folder.name) / "trusted.pem")
        cls.other = _certificate(Path(cls.folder.name) / "other.pem")

    def context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.trusted)
        return context

    def test_a_send(self) -> None:
        server = self.server(tls=self.context())
        hook = Hook()
        with sending(hook):
            self.assertEqual(self.session.post(server.url, data=b"body", verify=str(self.trusted)).text, "ok")
        self.assertEqual((hook.calls, len(server.requests)), (["on_send", "written"], 1))

    def test_the_mark_comes_after_the_handshake_and_before_the_request(self) -> None:
        server = self.server(tls=self.context())
        with self.assertRaises(SendRevoked), sending(Hook(raises=SendRevoked("no"))):
            self.session.post(server.url, data=b"body", verify=str(self.trusted))
        server.wait_idle()
        self.assertEqual([bytes(c) for c in server.connections], [b""])

    def test_a_certificate_that_is_not_trusted(self) -> None:
        server = self.server(tls=self.context())
        hook = Hook()
        with self.assertRaises(NotSent) as caught, sending(hook):
            self.session.post(server.url, data=b"body", verify=str(self.other))
        self.assertIn("certificate verify failed", str(caught.exception))
        self.assertEqual((hook.calls, server.requests), ([], []))

    def test_a_server_that_speaks_no_tls(self) -> None:
        server = self.server(lambda head: b"")
        hook = Hook()
        with self.assertRaises(NotSent), sending(hook):
            self.session.post(server.url.replace("http://", "https://"), data=b"body", timeout=2)
        self.assertEqual(hook.calls, [])


class OnlyOnce(TransportCase):
    def test_a_cut_connection_is_not_tried_again(self) -> None:
        server = self.server(b"")
        hook = Hook()
        with self.assertRaises(requests.ConnectionError), sending(hook):
            self.session.post(server.url, data=b"body")
        self.assertEqual((len(server.requests), hook.calls), (1, ["on_send", "written"]))

    def test_a_second_request_fails_unsent(self) -> None:
        server = self.server()
        hook = Hook()
        with self.assertRaises(SecondRequest) as caught, sending(hook):
            self.session.post(server.url)
            self.session.get(server.url)
        self.assertNotIsInstance(caught.exception, NotSent)
        self.assertEqual((len(server.requests), hook.calls), (1, ["on_send", "written"]))

    def test_a_redirect_is_a_second_request(self) -> None:
        server = self.server(b"HTTP/1.1 307 Temporary Redirect\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n")
        with self.assertRaises(SecondRequest), sending(Hook()):
            self.session.post(server.url, data=b"body")
        self.assertEqual(len(server.requests), 1)

    def test_a_send_never_uses_an_idle_connection(self) -> None:
        server = self.server()
        self.session.get(server.url)
        self.session.get(server.url)
        self.assertEqual(len(server.connections), 1, "reads share one")
        with sending(Hook()):
            self.session.post(server.url)
        self.assertEqual(len(server.connections), 2)

    def test_within_another_send(self) -> None:
        with self.assertRaisesRegex(SendError, "within"), sending(Hook()), sending(Hook()):
            self.fail("not reached")

    def test_a_change_outside_a_send(self) -> None:
        server = self.server()
        self.assertRaises(NotASend, self.session.post, server.url)
        self.assertEqual(server.connections, [])

    def test_a_client_that_is_elsewhere(self) -> None:
        server = self.server()
        hook = Hook()
        with self.assertRaises(NoRequest) as caught, sending(hook), requests.Session() as elsewhere:
            elsewhere.post(server.url)
        self.assertNotIsInstance(caught.exception, NotSent)
        self.assertEqual(hook.calls, ["on_send"], "it must not pass for unsent")


class Limits(TransportCase):
    def test_bytes_that_nobody_acknowledges_are_given_up(self) -> None:
        server = self.server()
        pool = self.session.get_adapter(server.url).poolmanager.connection_from_url(server.url)  # type: ignore[attr-defined]
        connection = pool.ConnectionCls("127.0.0.1", server.port, **pool.conn_kw)
        connection.connect()
        self.addCleanup(connection.close)
        found = connection.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
        self.assertEqual(found, transport.TCP_USER_TIMEOUT_S * 1000)

    def test_an_answer_is_not_waited_for_for_ever(self) -> None:
        over = threading.Event()
        self.addCleanup(over.set)
        server = self.server(lambda head: OK if over.wait(30) else b"")
        hook = Hook()
        with (
            mock.patch.object(transport, "READ_TIMEOUT_S", 0.1),
            self.assertRaises(requests.ReadTimeout),
            sending(hook),
        ):
            self.session.post(server.url)
        self.assertEqual(hook.calls, ["on_send", "written"])

    def test_credentials_are_the_sdk_s(self) -> None:
        server = self.server()
        with tempfile.TemporaryDirectory() as folder:
            netrc = Path(folder) / "netrc"
            netrc.write_text("machine localhost login other password secret\n", encoding="utf-8")
            self.session.trust_env = True
            with mock.patch.dict("os.environ", {"NETRC": str(netrc), "NO_PROXY": "*"}):
                self.session.get(server.url, headers={"Authorization": "Bearer mine"})
        self.assertIn(b"Authorization: Bearer mine", server.requests[0])


class Sdks(TransportCase):
    """How the SDKs that rest on requests get onto it, and that their retries stay one request."""

    def test_stripe_with_its_retries_on(self) -> None:
        import stripe

        server = self.server(b"HTTP/1.1 500 Oops\r\nContent-Length: 2\r\n\r\n{}")
        http = stripe.RequestsClient(session=self.session)
        client = stripe.StripeClient(
            "sk_test_x", base_addresses={"api": server.url}, max_network_retries=2, http_client=http
        )
        with self.assertRaises(stripe.APIConnectionError) as caught, sending(Hook()):
            client.v1.refunds.create({"payment_intent": "pi_1"})
        self.assertIsInstance(send_error(caught.exception), SecondRequest)
        self.assertEqual(len(server.requests), 1)

    def test_stripe_that_cannot_connect(self) -> None:
        import stripe

        http = stripe.RequestsClient(session=self.session)
        client = stripe.StripeClient("sk_test_x", base_addresses={"api": "http://127.0.0.1:1"}, http_client=http)
        with self.assertRaises(stripe.APIConnectionError) as caught, sending(Hook()):
            client.v1.refunds.create({"payment_intent": "pi_1"})
        self.assertIsInstance(send_error(caught.exception), NotSent)

    def test_google_s_authorized_session(self) -> None:
        from google.auth.credentials import AnonymousCredentials
        from google.auth.transport.requests import AuthorizedSession

        server = self.server()
        session = mount(AuthorizedSession(AnonymousCredentials()))
        self.addCleanup(session.close)
        hook = Hook()
        with sending(hook):
            session.post(server.url, data=b"body")
        self.assertEqual((hook.calls, len(server.requests)), (["on_send", "written"], 1))

    def test_errors_that_wrap_nothing_of_ours(self) -> None:
        self.assertIsNone(send_error(ValueError("x")))


def _certificate(path: Path) -> Path:
    """Write a self-signed certificate for localhost, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.timezone.utc)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
    return path


if __name__ == "__main__":
    unittest.main()
