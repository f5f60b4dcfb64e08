//! The text of a manifest, which the server parses itself.

use noetl_contract::Manifest;
use noetl_contract::manifest::{embed, extract, replace};

const WORDS: &[&[u8]] = &[
    b"path = ",
    b"version = ",
    b"[limits]\n",
    b"[http]\nallow = [",
    b"\"*\"",
    b"[[",
    b"]]",
    b"{",
    b"}",
    b"\"\"\"",
    b"capabilities = [",
    b"999999999999999999999",
    b"-1",
    b"1e400",
    b"nan",
    b"0x",
    b"\xff\xfe",
    b"a.b.c = 1\n",
    b"system/",
    b"../",
    b"instance = \"resident\"\n",
    b"[failure]\n",
    b"[requires]\n",
    b"\xe2\x80\xae",
];

#[test]
fn a_manifest_is_read_or_refused() {
    let component = b"\0asm\x0d\0\x01\0".to_vec();
    let seeds = ["hostile", "faulty", "wasi", "echo"]
        .map(|name| extract(&noetl_tests::guest(name)).expect("a component").expect("a manifest").into_bytes());
    super::fuzz("manifest", seeds.to_vec(), WORDS, |input| {
        let text = String::from_utf8_lossy(input);
        match Manifest::parse(&text) {
            // What is accepted holds what it promises: a path and a version that can be written down again.
            Ok(manifest) => {
                assert!(noetl_contract::PluginPath::new(manifest.path.as_str()).is_ok());
                assert!(noetl_contract::Version::parse(&manifest.version.to_string()).is_ok());
            }
            Err(errors) => assert!(!errors.to_string().is_empty()),
        }
        // And in its section it is found again as it was put there.
        if let Ok(with) = embed(&component, &text) {
            assert_eq!(extract(&with).expect("its own work").as_deref(), Some(&*text));
            assert!(replace(&with, "path = \"a/b\"").is_ok());
        }
    });
}
