//! Values that guests hand to the host: answers and arguments whose places and lengths are any numbers.

use noetl_tests::{Server, made};

const ANSWER: &str = "main/answer";
const ARGUMENTS: &str = "main/arguments";
const EXTRA: &str = "[limits]\nmemory_mb = 16\noutput_mb = 4\ncpu_ms = 500\n[failure]\nquarantine_after = 0\n";

fn words(list: &[u32]) -> Vec<u8> {
    list.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[test]
fn a_value_of_a_guest_is_taken_or_traps_the_guest() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let server = Server::start();
    let api = server.admin();
    runtime.block_on(async {
        api.push(made::any_answer(&made::manifest(ANSWER, &[], EXTRA)), "").await.is(201);
        api.push(made::any_arguments(&made::manifest(ARGUMENTS, &["log", "kv"], EXTRA)), "").await.is(201);
    });
    // An answer of its own first bytes; a failure; a log line and a write with an answer behind.
    let seeds = vec![
        words(&[0, 4096, 16]),
        words(&[1, 4096, 4, 4096, 8, 1]),
        [words(&[2, 4096, 8, 4096, 1, 1, 0, 4096, 4]), b"some text".to_vec()].concat(),
        [words(&[0, 4096, 8, 4096, 8, 0, 0, 4096, 4]), b"\xff\xfe\xc0\x80".to_vec()].concat(),
    ];
    super::fuzz("values", seeds, &[b"\x00\x10\x00\x00", b"\xff\xff\xff\xff", b"\xff\xff\x00\x00"], |input| {
        for path in [ANSWER, ARGUMENTS] {
            let answer = runtime.block_on(api.post_bytes(&format!("/api/plugins/{path}:call"), input.to_vec()));
            let code = if answer.status == 200 { String::new() } else { answer.json()["code"].to_string() };
            let known = ["\"trap\"", "\"output\"", "\"quota\"", "\"memory\"", "\"plugin_failure\"", "\"timeout\""];
            assert!(answer.status == 200 || known.contains(&code.as_str()), "{path}: {}", answer.text());
        }
    });
    runtime.block_on(async { api.get("/health").await.is(200) });
}
