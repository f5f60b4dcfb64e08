//! A plugin's own files as a library of Python expects to find them: its modules listed, its data read, and a word for
//! whoever opens it as if it lay on a disk.

use serde_json::json;

use super::support::Desk;

const MANIFEST: &str = "path = \"main/p\"\nversion = \"1.0.0\"\nworld = \"tool\"\ncapabilities = [\"log\", \
                        \"payload\"]\n[source]\nlanguage = \"python\"\nentry = \"main.py\"\n";

/// A plugin with a library that has parts and data; its function is these lines, after its imports in line 1.
fn with_library(lines: &str) -> Desk {
    let desk = Desk::new();
    desk.write("p/plugin.toml", MANIFEST);
    let imports = "import importlib.resources as resources, os, pathlib, pkgutil, sys, words";
    desk.write("p/main.py", &format!("{imports}\n\n\ndef call(input):\n    {lines}\n"));
    desk.write("p/beside.txt", "daneben");
    desk.write("p/more/extra.py", "EXTRA = 5\n");
    desk.write(
        "p/vendor/words/__init__.py",
        "import os\n\nFILE = os.path.join(os.path.dirname(__file__), 'data', 'one.txt')\n",
    );
    desk.write("p/vendor/words/one.py", "");
    desk.write("p/vendor/words/deep/__init__.py", "");
    desk.write("p/vendor/words/deep/two.py", "");
    desk.write("p/vendor/words/data/one.txt", "eins");
    desk.noetl(&["plugin", "push", "p"]).ok();
    desk
}

#[test]
fn a_library_lists_its_own_modules() {
    let desk = with_library(
        "top = [(m.name, m.ispkg) for m in pkgutil.iter_modules(words.__path__)]\n    \
         all_ = [m.name for m in pkgutil.walk_packages(words.__path__, 'words.')]\n    \
         own = {m.name for m in pkgutil.iter_modules()} & {'main', 'words', 'json'}\n    \
         spec = next(pkgutil.iter_modules(words.__path__)).module_finder.find_spec('words.one')\n    \
         sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'more'))\n    import extra\n    \
         return [top, all_, sorted(own), spec.origin, extra.EXTRA]",
    );
    let found = json!([
        [["deep", true], ["one", false]],
        ["words.deep", "words.deep.two", "words.one"],
        ["main", "words"],
        "vendor/words/one.py",
        5,
    ]);
    assert_eq!(desk.call("main/p", "{}"), found);
}

#[test]
fn a_file_of_the_plugin_is_read_and_who_opens_it_is_told_how() {
    let desk = with_library(
        "match input['do']:\n        case 'as_file':\n            \
         with resources.as_file(resources.files('words') / 'data/one.txt') as file:\n                \
         return [file.read_text(), str(file), resources.files(__name__).joinpath('beside.txt').read_text()]\n        \
         case 'open':\n            return open(words.FILE).read()\n        \
         case 'path':\n            return (pathlib.Path(__file__).resolve().parent / 'beside.txt').read_text()\n        \
         case 'list':\n            return os.listdir(os.path.dirname(words.__file__))",
    );
    let read = desk.call("main/p", r#"{"do": "as_file"}"#);
    assert_eq!(read, json!(["eins", "vendor/words/data/one.txt", "daneben"]));
    for (what, wanted) in [
        ("open", r#"importlib.resources.files("words").joinpath("data/one.txt").read_text()"#),
        ("path", r#"importlib.resources.files(__name__).joinpath("beside.txt").read_text()"#),
        ("list", r#"importlib.resources.files("words").iterdir()"#),
    ] {
        let arguments = json!({ "do": what }).to_string();
        let failed = desk.noetl(&["plugin", "call", "main/p", "--json-args", &arguments]).ends(7);
        failed.says("FileNotFoundError").says("The plugin brings it").says(wanted);
    }
}

#[test]
fn a_library_that_would_use_sockets_loads_and_its_failure_is_explained() {
    let desk = with_library("import requests\n    return requests.get(input['url'])");
    desk.write("p/vendor/requests/__init__.py", "from .probe import HAS_IPV6\nfrom .api import get\n");
    desk.write(
        "p/vendor/requests/probe.py",
        "import socket\n\ntry:\n    with socket.socket(socket.AF_INET6) as tried:\n        tried.bind(('::1', 0))\n    \
         HAS_IPV6 = True\nexcept Exception:\n    HAS_IPV6 = False\n",
    );
    desk.write(
        "p/vendor/requests/api.py",
        "import socket\n\n\ndef get(url):\n    if url.startswith('https:'):\n        \
         raise ImportError('the SSL module is not available')\n    return socket.getaddrinfo(url, 80)\n",
    );
    desk.write("p/plugin.toml", &MANIFEST.replace("1.0.0", "1.0.1"));
    desk.noetl(&["plugin", "push", "p"]).ok();
    for url in ["https://example.com", "http://example.com"] {
        let arguments = json!({ "url": url }).to_string();
        let failed = desk.noetl(&["plugin", "call", "main/p", "--json-args", &arguments]).ends(7);
        failed.says("File \"main.py\", line 6, in call").says("a sandbox has no sockets: use `noetl.http`");
    }
}
