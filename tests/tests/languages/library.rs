//! Python's standard library in a sandbox: what is there works and not only imports, sockets are errors that can be
//! caught, and what is not there says why.

use serde_json::{Value, json};

use super::support::Desk;

/// Runs any code and answers with its `result`.
const RUNNER: &str = "def call(input):\n    space = {'__name__': 'runner'}\n    exec(input['code'], space)\n    \
                      return space['result']\n";

/// What imports another part of the library only when it is used, and what comes of it as JSON.
const USED: &[(&str, &str)] = &[
    (
        "from email.message import EmailMessage\nm = EmailMessage()\nm['Subject'] = 'ä'\nm.set_content('hi')\n\
         m.add_attachment(b'x', maintype='application', subtype='pdf', filename='a.pdf')\n\
         result = ['application/pdf' in m.as_string(), m.as_bytes().startswith(b'Subject: =?utf-8?')]",
        "[true, true]",
    ),
    (
        "from email.mime.application import MIMEApplication\nfrom email.mime.image import MIMEImage\n\
         from email.mime.multipart import MIMEMultipart\nfrom email.mime.text import MIMEText\n\
         m = MIMEMultipart()\nfor part in (MIMEText('ü'), MIMEApplication(b'a'), MIMEImage(b'b', 'png')):\n    \
         m.attach(part)\nresult = [w in m.as_bytes() for w in (b'text/plain', b'octet-stream', b'image/png')]",
        "[true, true, true]",
    ),
    (
        "import xml.dom.minidom as dom\nresult = dom.parseString('<a><b>c</b></a>').documentElement.toxml()",
        r#""<a><b>c</b></a>""#,
    ),
    (
        "import xml.sax\nclass Names(xml.sax.ContentHandler):\n    def startElement(self, name, attrs):\n        \
         result.append(name)\nresult = []\nxml.sax.parseString(b'<a><b/></a>', Names())",
        r#"["a", "b"]"#,
    ),
    (
        "import xml.dom.pulldom as pull\nresult = [n.nodeName for e, n in pull.parseString('<a/>') if 'START_E' in e]",
        r#"["a"]"#,
    ),
    (
        "import io, logging, logging.config\nresult = io.StringIO()\nlogging.config.dictConfig({'version': 1, \
         'handlers': {'h': {'class': 'logging.StreamHandler', 'stream': result}}, 'root': {'handlers': ['h']}})\n\
         logging.warning('told')\nresult = result.getvalue()",
        r#""told\n""#,
    ),
    (
        "from urllib.robotparser import RobotFileParser\np = RobotFileParser()\n\
         p.parse(['User-agent: *', 'Disallow: /a'])\nresult = [p.can_fetch('x', '/a/b'), p.can_fetch('x', '/c')]",
        "[false, true]",
    ),
    ("import ast\nresult = ast.unparse(ast.parse('a=[1,2 ]'))", r#""a = [1, 2]""#),
    (
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--n', type=int, default=1)\n\
         result = [p.prog, p.parse_args().n, p.parse_args(['--n', '2']).n]",
        r#"["runner.py", 1, 2]"#,
    ),
    (
        "import hashlib\nresult = [hashlib.pbkdf2_hmac('sha1', b'password', b'salt', 2).hex(), \
         hashlib.pbkdf2_hmac('sha256', b'passwordPASSWORDpassword', b'saltSALTsaltSALTsaltSALTsaltSALTsalt', 4096, \
         40).hex()]",
        r#"["ea6c014dc72d6f8ccd1ed92ace1d41f0d8de8957", "348c89dbcbd32b2f32d814b8116e84cf2b17347ebc1800181c4e2a1fb8dd53e1c635518c7dac47e9"]"#,
    ),
    ("import sys\nsys.set_int_max_str_digits(0)\nresult = len(str(10 ** 60_000))", "60001"),
    ("import uuid\nresult = uuid.uuid1().version", "1"),
    (
        "import io, tarfile\nresult = io.BytesIO()\nwith tarfile.open(fileobj=result, mode='w:gz') as t:\n    \
         t.addfile(tarfile.TarInfo('a'))\nresult.seek(0)\nresult = tarfile.open(fileobj=result).getnames()",
        r#"["a"]"#,
    ),
    (
        "import asyncio, unittest\nclass T(unittest.IsolatedAsyncioTestCase):\n    async def test_it(self):\n        \
         await asyncio.sleep(0)\nsuite = unittest.defaultTestLoader.loadTestsFromTestCase(T)\n\
         result = unittest.TextTestRunner().run(suite).wasSuccessful()",
        "true",
    ),
    ("import sched, time\ns = sched.scheduler()\nresult = []\ns.enter(0, 1, result.append, [1])\ns.run()", "[1]"),
    ("import concurrent.futures, compression.gzip as g\nresult = g.decompress(g.compress(b'a')).decode()", r#""a""#),
    ("import plistlib\nresult = plistlib.loads(plistlib.dumps({'a': 1}))", r#"{"a": 1}"#),
];

fn runner() -> Desk {
    let desk = Desk::new();
    desk.write("runner.py", RUNNER);
    desk.noetl(&["plugin", "push", "runner.py"]).ok();
    desk
}

#[track_caller]
fn gives(desk: &Desk, code: &str, wanted: &str) {
    let arguments = json!({ "code": code }).to_string();
    let ran = desk.noetl(&["plugin", "call", "main/runner", "--json-args", &arguments]);
    assert_eq!(ran.code, 0, "{code}\n{}", ran.stderr);
    let wanted: Value = serde_json::from_str(wanted).expect("JSON");
    assert_eq!(ran.json(), wanted, "{code}");
}

#[test]
fn parts_that_import_others_when_they_are_used_find_them() {
    let desk = runner();
    for (code, wanted) in USED {
        gives(&desk, code, wanted);
    }
}

#[test]
fn a_socket_is_an_error_that_the_author_can_catch() {
    let desk = runner();
    for (code, error) in [
        ("socket.socket()", "OSError"),
        ("_socket.socket()", "OSError"),
        ("socket.create_connection(('127.0.0.1', 80))", "OSError"),
        ("socket.create_server(('', 0))", "OSError"),
        ("socket.socketpair()", "OSError"),
        ("socket.getaddrinfo('example.com', 80)", "gaierror"),
        ("socket.gethostbyname('example.com')", "gaierror"),
        ("socket.gethostbyname_ex('example.com')", "gaierror"),
        ("socket.getnameinfo(('127.0.0.1', 80), 0)", "gaierror"),
        ("socket.gethostbyaddr('127.0.0.1')", "herror"),
        ("http.client.HTTPConnection('127.0.0.1').request('GET', '/')", "OSError"),
        ("asyncio.run(asyncio.open_connection('127.0.0.1', 80))", "OSError"),
        ("asyncio.run(asyncio.open_connection('example.com', 80))", "gaierror"),
        ("asyncio.run(asyncio.start_server(print, '127.0.0.1', 0))", "OSError"),
    ] {
        let code = format!(
            "import _socket, asyncio, http.client, socket\ntry:\n    {code}\nexcept OSError as error:\n    \
             result = [type(error).__name__, 'a sandbox has no sockets: use `noetl.http`' in str(error)]"
        );
        gives(&desk, &code, &json!([error, true]).to_string());
    }
    let probes = "import select, selectors, socket\nresult = [socket.gethostname(), socket.getfqdn(), socket.has_ipv6, \
                  socket.has_dualstack_ipv6(), socket.inet_pton(socket.AF_INET, '1.2.3.4').hex(), \
                  select.select([], [], [], 0.001), selectors.DefaultSelector().select(0.001)]";
    gives(&desk, probes, r#"["localhost", "localhost", false, false, "01020304", [[], [], []], []]"#);

    desk.write("caught.py", "import socket\n\n\ndef call(input):\n    return socket.create_connection(('a', 1))\n");
    desk.noetl(&["plugin", "push", "caught.py"]).ok();
    let failed = desk.noetl(&["plugin", "call", "main/caught", "--json-args", "{}"]).ends(7);
    failed.says("File \"caught.py\", line 5, in call").says("a sandbox has no sockets").says("noetl.http");
}

#[test]
fn what_is_not_of_a_sandbox_says_why() {
    let desk = runner();
    for (code, wanted) in [
        ("import smtplib", "no sockets"),
        ("import ssl", "no sockets"),
        ("import http.server", "no sockets"),
        ("import multiprocessing.pool", "no processes"),
        ("from concurrent.futures import ProcessPoolExecutor", "no processes"),
        ("import curses", "no terminal"),
        ("import sqlite3", "no files that stay"),
        ("import bz2", "machine code"),
        ("import tempfile\ntempfile.mkdtemp()", "A sandbox has no files"),
        ("open('/etc/hosts')", "A sandbox has no files"),
    ] {
        let arguments = json!({ "code": code }).to_string();
        desk.noetl(&["plugin", "call", "main/runner", "--json-args", &arguments]).ends(7).says(wanted);
    }
}
