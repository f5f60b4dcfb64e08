//! The bytes of a component, in the process that looks at them and in the one that compiles them.
//!
//! That process is where parsers written by others meet bytes written by strangers. It may say no, and it may crash,
//! which is what it is there for; it must never take longer than its bounds, and it must never say yes to what the
//! next process then takes for granted. How often it crashed is told.

use std::process::{Command, Stdio};

use noetl_contract::inspect::{Inspection, import_names};
use noetl_contract::manifest::extract;
use noetl_tests::{guest, made, noetl_bin};

const WORDS: &[&[u8]] = &[
    b"\0asm",
    b"\x0d\0\x01\0",
    b"\x01\0\0\0",
    b"\x0enoetl:manifest",
    b"\x00",
    b"\xff\xff\xff\xff\x0f",
    b"noetl:kv/kv@0.1.0",
    b"wasi:sockets/tcp@0.2.0",
    b"run",
    b"memory",
    b"\x04\x08\0asm\x0d\0\x01\0",
    b"\x07\x05\x01B\x00\x00",
];
/// What a component that does not fit is answered with.
const REJECTED: i32 = 3;

/// Bounded as the server bounds it, and more tightly.
fn child(task: &str, component: &[u8]) -> (Option<i32>, Vec<u8>) {
    let folder = tempfile::tempdir().expect("a folder");
    let (input, output) = (folder.path().join("in"), folder.path().join("out"));
    std::fs::write(&input, component).expect("written");
    let status = Command::new(noetl_bin())
        .args(["compile", "--task", task, "--memory-bytes", "1073741824", "--cpu-seconds", "20"])
        .arg("--input")
        .arg(&input)
        .arg("--output")
        .arg(&output)
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("the binary runs");
    (status.code(), std::fs::read(output).unwrap_or_default())
}

#[test]
fn a_component_is_looked_at_and_compiled_or_refused() {
    let manifest = made::manifest("a/b", &[], "");
    let seeds = vec![
        made::any_answer(&manifest),
        made::any_arguments(&manifest),
        made::with_parts("(memory 1) (table 10 funcref)", "(i32.const 0)", &manifest),
        guest("echo"),
    ];
    let mut crashed = 0;
    super::fuzz("component", seeds, WORDS, |input| {
        // Our own readers, right here: they must not crash at all.
        let _ = extract(input);
        let _ = import_names(input);
        let (code, told) = child("inspect", input);
        match code {
            Some(0) => {
                let found: Inspection = serde_json::from_slice(&told).expect("what it tells can be read");
                assert_eq!(found.manifest_text, extract(input).expect("it is a component"));
                let (compiled, code) = child("guest", input);
                assert!(compiled != Some(0) || !code.is_empty(), "compiled to nothing");
                crashed += usize::from(!matches!(compiled, Some(0 | REJECTED)));
            }
            Some(REJECTED) => {}
            other => {
                assert_ne!(other, Some(4), "the process could not do its work");
                crashed += 1;
            }
        }
    });
    println!("component: {crashed} crashes, all of them in the process for it");
}
