"""The program on object stores, beside the same program on the same files here."""

import gzip
import json
import logging
import os
import random
import socket
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import boto3
from moto.server import ThreadedMotoServer

logging.getLogger("werkzeug").setLevel(logging.ERROR)

NEARSET = os.environ["NEARSET"]
# The stores are on this machine, where no proxy finds them.
PROXIES = {"http_proxy", "https_proxy", "all_proxy"}
for name in [name for name in os.environ if name.lower() in PROXIES]:
    del os.environ[name]
PLAIN = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "AZURE_", "GOOGLE_"))}
KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}


def corpus(documents, seed=7):
    """Lines of JSON, of which every third is an earlier one with one word changed."""
    draw = random.Random(seed)
    texts = []
    for i in range(documents):
        words = [f"w{draw.randrange(10000)}" for _ in range(100)]
        if i % 3 == 2:
            words = list(texts[i - 2])
            words[draw.randrange(100)] = "changed"
        texts.append(words)
    return [json.dumps({"id": i, "text": " ".join(words)}) + "\n" for i, words in enumerate(texts)]


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_nearset(self, *arguments, env=None, **more):
        return subprocess.run([NEARSET, *arguments], cwd=self.folder, env={**PLAIN, **(env if env is not None else self.env)}, capture_output=True, text=True, **more)

    def ok(self, *arguments, **more):
        ran = self.run_nearset(*arguments, **more)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return ran

    def fails(self, *arguments, **more):
        ran = self.run_nearset(*arguments, **more)
        self.assertNotEqual(ran.returncode, 0, ran.stderr)
        return ran.stderr

    def write_files(self):
        """Files in two folders, whose order is not that of their keys' bytes, with some that are passed over."""
        lines = corpus(6000)
        files = {
            "crawl/a/part-1.jsonl": "".join(lines[:2000]).encode(),
            "crawl/a.b.jsonl": "".join(lines[2000:3000]).encode(),
            "crawl/a-b/part-2.jsonl.gz": gzip.compress("".join(lines[3000:5000]).encode()),
            "crawl/b/part-3.jsonl": "".join(lines[5000:]).encode(),
            "crawl/_SUCCESS": b"",
            "crawl/.hidden/part-9.jsonl": b"not JSON\n",
        }
        for name, data in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return files

    def check_store(self, root, put, get):
        """What every store must do: `put` and `get` objects by their keys."""
        for name, data in self.write_files().items():
            put(name, data)
        self.ok("dedup", "crawl", "-o", "here.jsonl", "-q")
        here = (self.folder / "here.jsonl").read_bytes()
        # A folder with and without a slash, and patterns: as for files, and in their order.
        for inputs in [["crawl/"], ["crawl"], ["crawl/*.jsonl", "crawl/[ab]*/*"], ["cr*"], ["crawl/**/*.jsonl*"], ["crawl/{b,a,a-b,a.b.jsonl}"]]:
            self.ok("dedup", *inputs, "-o", "same.jsonl", "-q", "--force")
            self.ok("dedup", *(f"{root}/{name}" for name in inputs), "-o", "there.jsonl", "-q", "--force")
            self.assertEqual((self.folder / "there.jsonl").read_bytes(), (self.folder / "same.jsonl").read_bytes(), inputs)
        # Written in parts, and read back.
        self.ok("dedup", f"{root}/crawl/", "-o", f"{root}/out/kept.jsonl", "--removed", f"{root}/out/removed.jsonl.gz", "-q")
        self.assertEqual(get("out/kept.jsonl"), here)
        removed = [json.loads(line) for line in gzip.decompress(get("out/removed.jsonl.gz")).splitlines()]
        self.assertTrue(removed and all(one["near_file"].startswith(f"{root}/crawl/") for one in removed))
        self.assertIn("exists already", self.fails("dedup", f"{root}/crawl/", "-o", f"{root}/out/kept.jsonl", "-q"))
        self.ok("dedup", f"{root}/crawl/", "-o", f"{root}/out/kept.jsonl", "-q", "--force")
        scheme, rest = root.split("://")
        for name in [f"{root}/crawl/a.b.jsonl", f"{root}//crawl/a.b.jsonl", f"{scheme.upper()}://{rest}/crawl/a.b.jsonl"]:
            self.assertIn("is also an input", self.fails("dedup", f"{root}/crawl/a.b.jsonl", "-o", name, "-q", "--force"))
        self.assertIn("no file matches", self.fails("dedup", f"{root}/crawl/*.csv", "-o", "none.jsonl"))
        self.assertIn("404", self.fails("dedup", f"{root}/nothing.jsonl", "-o", "none.jsonl"))


class S3(Case):
    @classmethod
    def setUpClass(cls):
        cls.server = ThreadedMotoServer(port=0, verbose=False)
        cls.server.start()
        cls.addClassCleanup(cls.server.stop)
        host, port = cls.server.get_host_and_port()
        cls.endpoint = f"http://127.0.0.1:{port}"
        cls.env = {**KEYS, "AWS_ENDPOINT_URL": cls.endpoint}
        cls.s3 = boto3.client("s3", endpoint_url=cls.endpoint, aws_access_key_id="test", aws_secret_access_key="test", region_name="us-east-1")

    def setUp(self):
        super().setUp()
        urllib.request.urlopen(urllib.request.Request(f"{self.endpoint}/moto-api/reset", method="POST")).read()
        self.s3.create_bucket(Bucket="bucket")

    def put(self, key, data, acl="private"):
        self.s3.put_object(Bucket="bucket", Key=key, Body=data, ACL=acl)

    def get(self, key):
        return self.s3.get_object(Bucket="bucket", Key=key)["Body"].read()

    def keys(self):
        return [one["Key"] for one in self.s3.list_objects_v2(Bucket="bucket").get("Contents", [])]

    def test_objects_are_read_and_written_as_files_are(self):
        self.check_store("s3://bucket", self.put, self.get)
        # No part of an upload is left behind.
        self.assertNotIn("Uploads", self.s3.list_multipart_uploads(Bucket="bucket"))

    def test_google_speaks_the_same_language(self):
        # Google's XML interface is that of S3, so moto can play it; what it does not play is Google's login.
        env = {"GOOGLE_BASE_URL": self.endpoint, "GOOGLE_SKIP_SIGNATURE": "true"}
        self.put("a.jsonl", "".join(corpus(300)).encode(), acl="public-read")
        self.ok("dedup", "gs://bucket/*.jsonl", "-o", "there.jsonl", "-q", env=env)
        (self.folder / "a.jsonl").write_bytes(self.get("a.jsonl"))
        self.ok("dedup", "a.jsonl", "-o", "here.jsonl", "-q")
        self.assertEqual((self.folder / "there.jsonl").read_bytes(), (self.folder / "here.jsonl").read_bytes())

    def test_an_upload_of_several_parts(self):
        lines = [line for seed in range(12) for line in corpus(3000, seed)]
        data = "".join(lines).encode()
        self.assertGreater(len(data), 17 << 20)
        self.put("large.jsonl", data)
        self.ok("dedup", "s3://bucket/large.jsonl", "-o", "s3://bucket/out.jsonl", "-q", "--no-verify", "--near", "1", "--capacity", "100000")
        self.ok("dedup", "s3://bucket/large.jsonl", "-o", "here.jsonl", "-q", "--no-verify", "--near", "1", "--capacity", "100000")
        self.assertEqual(self.get("out.jsonl"), (self.folder / "here.jsonl").read_bytes())

    def test_a_run_that_fails_leaves_nothing(self):
        self.put("broken.jsonl", "".join(corpus(300)).encode() + b"{broken\n")
        self.assertIn("broken.jsonl:301", self.fails("dedup", "s3://bucket/broken.jsonl", "-o", "s3://bucket/out.jsonl"))
        self.assertEqual(self.keys(), ["broken.jsonl"])
        self.assertNotIn("Uploads", self.s3.list_multipart_uploads(Bucket="bucket"))

    def test_a_run_that_was_killed_resumes(self):
        for name, data in self.write_files().items():
            self.put(name, data)
        command = ["dedup", "s3://bucket/crawl/", "-o", "out.jsonl", "-q", "--resume"]
        env = {**PLAIN, **self.env, "NEARSET_CHECKPOINT_BYTES": "20000"}
        self.ok("dedup", "s3://bucket/crawl/", "-o", "whole.jsonl", "-q", env=env)
        kills = 0
        while True:
            child = subprocess.Popen([NEARSET, *command], cwd=self.folder, env=env)
            # Until there is a checkpoint that was not there before.
            state = self.folder / "out.jsonl.resume" / "state.json"
            before = state.read_bytes() if state.exists() else b""
            while child.poll() is None and (kills >= 3 or not state.exists() or state.read_bytes() == before):
                time.sleep(0.002)
            if child.poll() is not None:
                self.assertEqual(child.returncode, 0)
                break
            child.kill()
            child.wait()
            kills += 1
        self.assertEqual((self.folder / "out.jsonl").read_bytes(), (self.folder / "whole.jsonl").read_bytes())
        self.assertGreater(kills, 0)

    def test_what_stands_for_a_folder_is_no_record(self):
        # As Hadoop leaves it: the folder is called like a file, and has an object of its own.
        for key in ["out.jsonl/", "out.jsonl/part/", "out.jsonl/_SUCCESS"]:
            self.put(key, b"")
        self.put("out.jsonl/part/a.jsonl", b'{"text": "one"}\n')
        for options in [[], ["--format", "text-file"]]:
            self.ok("dedup", "s3://bucket/out.jsonl/part/", "-o", "there.jsonl", "-q", "--force", *options)
            self.assertEqual((self.folder / "there.jsonl").read_text().count("\n"), 1)
        self.ok("dedup", "s3://bucket/out.jsonl/", "-o", "there.jsonl", "-q", "--force")
        self.assertEqual((self.folder / "there.jsonl").read_text(), '{"text": "one"}\n')

    def test_a_name_that_exists_is_no_pattern(self):
        self.put("a[1].jsonl", b'{"text": "one"}\n')
        self.put("a1.jsonl", b'{"text": "two"}\n')
        self.ok("dedup", "s3://bucket/a[1].jsonl", "-o", "there.jsonl", "-q")
        self.assertEqual((self.folder / "there.jsonl").read_text(), '{"text": "one"}\n')
        self.ok("dedup", "s3://bucket/a[12].jsonl", "-o", "there.jsonl", "-q", "--force")
        self.assertEqual((self.folder / "there.jsonl").read_text(), '{"text": "two"}\n')
        self.put("odd//b.jsonl", b'{"text": "three"}\n')
        self.assertIn("a name that is not supported", self.fails("dedup", "s3://bucket/odd/", "-o", "there.jsonl", "--force"))

    def test_an_upload_outlasts_a_store_that_is_away(self):
        self.put("a.jsonl", "".join(corpus(300)).encode())
        self.ok("dedup", "s3://bucket/a.jsonl", "-o", "here.jsonl", "-q")
        # Refuses some parts, and loses the first answer to the last request.
        refusals, losses = [5], [1]

        class Proxy(BaseHTTPRequestHandler):
            def answer(proxy):
                body = proxy.rfile.read(int(proxy.headers.get("Content-Length") or 0))
                if proxy.command == "PUT" and refusals[0]:
                    refusals[0] -= 1
                    proxy.send_response(503)
                    proxy.send_header("Content-Length", "0")
                    return proxy.end_headers()
                headers = {"Content-Type": "application/octet-stream", **{name: value for name, value in proxy.headers.items() if name.lower() != "host"}}
                request = urllib.request.Request(self.endpoint + proxy.path, data=body if proxy.command in ("PUT", "POST") else None, headers=headers, method=proxy.command)
                try:
                    got = urllib.request.urlopen(request)
                except urllib.error.HTTPError as error:
                    got = error
                data = got.read()
                if proxy.command == "POST" and "uploadId" in proxy.path and losses[0]:
                    losses[0] -= 1
                    return proxy.connection.close()
                proxy.send_response(got.status)
                for name, value in got.headers.items():
                    if name.lower() not in ("connection", "transfer-encoding", "server", "date"):
                        proxy.send_header(name, value)
                proxy.end_headers()
                if proxy.command != "HEAD":
                    proxy.wfile.write(data)

            do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = answer

            def log_message(self, *_):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(lambda: (server.shutdown(), server.server_close()))
        env = {**KEYS, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}"}
        self.ok("dedup", "s3://bucket/a.jsonl", "-o", "s3://bucket/out.jsonl", "-q", env=env)
        self.assertEqual((refusals, losses), ([0], [0]))
        self.assertEqual(self.get("out.jsonl"), (self.folder / "here.jsonl").read_bytes())

    def test_an_object_of_a_list_must_be_what_its_name_says(self):
        self.put("crawl/a.jsonl", gzip.compress(b'{"text": "packed"}\n'))
        self.assertIn("packed with gzip", self.fails("dedup", "s3://bucket/crawl/", "-o", "out.jsonl"))
        self.ok("dedup", "s3://bucket/crawl/a.jsonl", "-o", "out.jsonl", "-q")

    def test_errors_name_the_cure(self):
        self.put("a.jsonl", b'{"text": "one"}\n')
        bare = {"AWS_ENDPOINT_URL": self.endpoint}
        for said, arguments, env in [
            ("NoSuchBucket", ["s3://nowhere/", "-o", "o.jsonl"], self.env),
            ("404", ["s3://nowhere/a.jsonl", "-o", "o.jsonl"], self.env),
            ("NoSuchBucket", ["s3://bucket/a.jsonl", "-o", "s3://nowhere/o.jsonl"], self.env),
            ("set AWS_ACCESS_KEY_ID", ["s3://bucket/a.jsonl", "-o", "o.jsonl"], {**bare, "AWS_METADATA_ENDPOINT": "http://metadata"}),
            ("refused", ["s3://bucket/a.jsonl", "-o", "o.jsonl"], {**KEYS, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{free_port()}"}),
        ]:
            error = self.fails("dedup", *arguments, env=env)
            self.assertIn(said, error)
            self.assertIn("s3://", error)
        self.assertIn("403", self.fails("dedup", "s3://bucket/a.jsonl", "-o", "o.jsonl", env={**bare, "AWS_SKIP_SIGNATURE": "true"}))
        self.put("a.jsonl", b'{"text": "one"}\n', acl="public-read")
        self.ok("dedup", "s3://bucket/a.jsonl", "-o", "o.jsonl", env={**bare, "AWS_SKIP_SIGNATURE": "true"})


@unittest.skipUnless(os.environ.get("AZURITE"), "there is no azurite")
class Azure(Case):
    KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

    @classmethod
    def setUpClass(cls):
        port, folder = free_port(), tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        child = subprocess.Popen([os.environ["AZURITE"], "--silent", "--disableTelemetry", "--skipApiVersionCheck", "--blobPort", str(port), "--location", folder.name], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        cls.addClassCleanup(lambda: (child.kill(), child.wait()))
        cls.url = f"http://127.0.0.1:{port}/devstoreaccount1"
        cls.env = {"AZURE_STORAGE_USE_EMULATOR": "true", "AZURITE_BLOB_STORAGE_URL": f"http://127.0.0.1:{port}", "AZURE_STORAGE_ACCOUNT_NAME": "devstoreaccount1", "AZURE_STORAGE_ACCOUNT_KEY": cls.KEY}
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)

    def test_objects_are_read_and_written_as_files_are(self):
        from azure_requests import create_container, get_blob, put_blob
        # Nothing is sent before the first part is full, so what is wrong is found out by looking.
        (self.folder / "a.jsonl").write_text('{"text": "one"}\n')
        for options in [[], ["--force"]]:
            self.assertIn("ContainerNotFound", self.fails("dedup", "a.jsonl", "-o", "az://container/out.jsonl", *options))
        create_container(self.url, self.KEY, "container")
        self.check_store("az://container", lambda key, data: put_blob(self.url, self.KEY, "container", key, data), lambda key: get_blob(self.url, self.KEY, "container", key))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


if __name__ == "__main__":
    unittest.main()
