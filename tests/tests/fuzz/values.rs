//! Values that guests hand to the host: answers and arguments whose places and lengths are any numbers.

use noetl_tests::{Server, made};

const ANSWER: &str = "main/answer";
const ARGUMENTS: &str = "main/arguments";
const REQUEST: &str = "main/request";
/// Nothing else is looked up or sent to, and this is out of reach.
const HTTP: &str = "[http]\nallow = [\"127.0.0.1\"]\n";
const EXTRA: &str = "[limits]\nmemory_mb = 16\noutput_mb = 4\ncpu_ms = 500\n[failure]\nquarantine_after = 0\n";

fn words(list: &[u32]) -> Vec<u8> {
    list.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Requests of all three kinds, each with its text behind it and an answer of it.
fn requests() -> impl Iterator<Item = Vec<u8>> {
    /// Where the guest's input begins in its memory, and the text in the input.
    const TEXT: u32 = 4096 + made::REQUEST as u32 + 12;
    let script = "insert into t values (%s); select %(a)s, :a, $1 -- ?\n";
    let sql = |parameters: &'static str| {
        let (long, more) = (script.len() as u32, parameters.len() as u32);
        let record = words(&[2, 0, 0, TEXT, long, 1, TEXT + long, more, 0, 0, 0, 0x0101, 1, 500, 1, 0]);
        (record, format!("{script}{parameters}"), 0_u8)
    };
    let url = "GEThttp://127.0.0.1:1/a?b=NOETL~SECRET~a~b~c~END";
    let http = words(&[TEXT, 3, TEXT + 3, url.len() as u32 - 3, 0, 0, 0, 0, 1, 100, 0, 0, 0, 0, 0, 0]);
    let range = words(&[8, 0, 16, 0, 4, 0, 60, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let all =
        [sql(r#"[1, "a", {"b": [null]}]"#), sql(r#"{"a": 1}"#), (http, url.to_owned(), 1), (range, String::new(), 2)];
    all.into_iter()
        .map(|(record, text, which)| [record, vec![which, 0, 0, 0], words(&[0, TEXT, 0]), text.into_bytes()].concat())
}

#[test]
fn a_value_of_a_guest_is_taken_or_traps_the_guest() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let server = Server::start();
    let api = server.admin();
    runtime.block_on(async {
        api.push(made::any_answer(&made::manifest(ANSWER, &[], EXTRA)), "").await.is(201);
        api.push(made::any_arguments(&made::manifest(ARGUMENTS, &["log", "kv"], EXTRA)), "").await.is(201);
        let manifest = made::manifest(REQUEST, &["sql", "http-client", "payload"], &format!("{EXTRA}{HTTP}"));
        api.push(made::any_request(&manifest), "").await.is(201);
    });
    // An answer of its own first bytes; a failure; a log line and a write with an answer behind.
    let mut seeds = vec![
        words(&[0, 4096, 16]),
        words(&[1, 4096, 4, 4096, 8, 1]),
        [words(&[2, 4096, 8, 4096, 1, 1, 0, 4096, 4]), b"some text".to_vec()].concat(),
        [words(&[0, 4096, 8, 4096, 8, 0, 0, 4096, 4]), b"\xff\xfe\xc0\x80".to_vec()].concat(),
    ];
    seeds.extend(requests());
    super::fuzz("values", seeds, &[b"\x00\x10\x00\x00", b"\xff\xff\xff\xff", b"\xff\xff\x00\x00"], |input| {
        for path in [ANSWER, ARGUMENTS, REQUEST] {
            let answer = runtime.block_on(api.post_bytes(&format!("/api/plugins/{path}:call"), input.to_vec()));
            let code = if answer.status == 200 { String::new() } else { answer.json()["code"].to_string() };
            let known = ["\"trap\"", "\"output\"", "\"quota\"", "\"memory\"", "\"plugin_failure\"", "\"timeout\""];
            assert!(answer.status == 200 || known.contains(&code.as_str()), "{path}: {}", answer.text());
        }
    });
    runtime.block_on(async { api.get("/health").await.is(200) });
}
