//! What must be masked, what must survive, and the laws that hold for any text.

use std::borrow::Cow;

use noetl_scrub::{PLACEHOLDER, scrub_json, scrub_text};
use proptest::prelude::*;
use serde_json::json;

const JWT: &str = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U";
const OWN: &str = "noetl_Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmE";

/// Input and what must come out.
const MASKED: [(&str, &str); 37] = [
    ("Authorization: Bearer x", "Authorization: Bearer [REDACTED]"),
    ("authorization: Basic eDp5", "authorization: Basic [REDACTED]"),
    ("Authorization: 0123456789abcdef", "Authorization: [REDACTED]"),
    ("Authorization: Token abc", "Authorization: Token [REDACTED]"),
    ("-H 'Authorization: Bearer abc' https://x", "-H 'Authorization: Bearer [REDACTED]' https://x"),
    ("sent bearer abcdef0123456789, got 401", "sent bearer [REDACTED], got 401"),
    ("Basic dXNlcjpwYXNz was refused", "Basic [REDACTED] was refused"),
    ("key sk-abcdefgh1234 is bad", "key [REDACTED] is bad"),
    ("sk-ant-api03-aaaa_bbbb-cccc", "[REDACTED]"),
    ("(ghp_0123456789abcdefABCD)", "([REDACTED])"),
    ("github_pat_11ABCDEFG0abcdefghij_KLMN", "[REDACTED]"),
    ("xoxb-123456789012-abcdef", "[REDACTED]"),
    ("key=AIzaSyA-1234567890abcdef", "key=[REDACTED]"),
    ("ya29.a0AfH6SMBx-12345.yz", "[REDACTED]"),
    ("prefix_ghp_0123456789abcdef", "prefix_[REDACTED]"),
    ("{\"password\":\"hunter2\",\"n\":1}", "{\"password\":\"[REDACTED]\",\"n\":1}"),
    ("{\"apiKey\" : \"a\\\"b\", \"n\": 1}", "{\"apiKey\" : \"[REDACTED]\", \"n\": 1}"),
    ("{\\\"token\\\":\\\"abc\\\",\\\"n\\\":1}", "{\\\"token\\\":\\\"[REDACTED]\\\",\\\"n\\\":1}"),
    ("{\"pwd\":1234}", "{\"pwd\":[REDACTED]}"),
    ("{'secret': 'x'}", "{'secret': '[REDACTED]'}"),
    ("{\"Authorization\":\"Bearer x\"}", "{\"Authorization\":\"[REDACTED]\"}"),
    ("password=hunter2 user=bob", "password=[REDACTED] user=bob"),
    ("?access_token=abc&page=2", "?access_token=[REDACTED]&page=2"),
    ("config.client_secret=abc", "config.client_secret=[REDACTED]"),
    ("password=\"a b c\" next", "password=\"[REDACTED]\" next"),
    ("PGPASSWORD=x psql", "PGPASSWORD=[REDACTED] psql"),
    ("X-Api-Key: abc def", "X-Api-Key: [REDACTED] def"),
    ("Set-Cookie: a=b; Path=/\nok", "Set-Cookie: [REDACTED]\nok"),
    ("postgres://bob:s3cret@db:5432/x", "postgres://bob:[REDACTED]@db:5432/x"),
    ("postgres://bob:p@ss@db/x", "postgres://bob:[REDACTED]@db/x"),
    ("redis://:pw@h", "redis://:[REDACTED]@h"),
    ("{\"password\":\"cut of", "{\"password\":\"[REDACTED]"),
    ("a -----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY----- b", "a [REDACTED] b"),
    ("-----BEGIN PRIVATE KEY-----\nMIIE", "[REDACTED]"),
    ("-----BEGIN OPENSSH PRIVATE KEY-----\\nabc\\n-----END OPENSSH PRIVATE KEY-----\\n", "[REDACTED]\\n"),
    ("é sk-abcdefgh1234é", "é [REDACTED]é"),
    ("password=ünïcode next", "password=[REDACTED] next"),
];

/// Text that looks a little like a secret and must not be touched.
const KEPT: [&str; 36] = [
    "",
    "author=bob max_tokens=200 certainty=0.9 tokens=12 authors: 3",
    "{\"author\":\"bob\",\"max_tokens\":200,\"certainty\":1,\"cert_expiry\":\"2027-01-01\"}",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "{\"digest\":\"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\"}",
    "etag=9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "unexpected token: `}` at line 3",
    "authorization: required",
    "Authorization header is missing",
    "Bearer authentication is needed",
    "the bearer of this letter",
    "Basic authentication failed",
    "basic training",
    "task-1234567890ABCDEF",
    "scikit: sk-learn-pipelines-and-more",
    "sk-short1",
    "noetl_http_request_duration_seconds_bucket_of_all_routes",
    "noetl_http_requests_total{route=\"/api/plugins\",status=\"2xx\"} 5",
    "next_page_token=abc",
    "credential=prod-db auth=prod-db",
    "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\nMIIE\n-----END PUBLIC KEY-----",
    "----- a line -----",
    "eyJ is how they start",
    "eyJ.eyJ.x",
    "password=[REDACTED] {\"token\":\"[REDACTED]\"} Authorization: Bearer [REDACTED]",
    "eyJhbGciOiJIUzI1NiJ9.notclaims.x",
    "https://example.org:8080/path?x=1",
    "http://bob@example.org/",
    "call 01890a5d-ac96-774b-bcce-b302099a8057 took 12 ms",
    "{\"password\":null,\"token\":false,\"secret\":\"\"}",
    "password is wrong",
    "the secret of success",
    "ghp_ and xoxb- and AIza are prefixes",
    "plugin acme/orders/enrich 1.2.3 from channel stable",
    "naïve café — 日本語のテキスト",
];

#[test]
fn secrets_are_masked_and_the_text_around_them_stays() {
    for (given, wanted) in MASKED {
        assert_eq!(scrub_text(given), wanted, "given {given:?}");
    }
    assert_eq!(scrub_text(&format!("jwt {JWT}.")), format!("jwt {PLACEHOLDER}."));
    assert_eq!(scrub_text(&format!("token {OWN}, ok")), format!("token {PLACEHOLDER}, ok"));
}

#[test]
fn text_that_only_resembles_a_secret_comes_back_borrowed() {
    for given in KEPT {
        assert!(
            matches!(scrub_text(given), Cow::Borrowed(same) if same == given),
            "{given:?} became {:?}",
            scrub_text(given)
        );
    }
}

#[test]
fn json_is_masked_by_whole_key_names_and_by_the_shape_of_values() {
    let mut value = json!({
        "password": "x", "apiKey": 12, "Client-Secret": {"a": 1}, "token": null, "secret": true, "jwt": "",
        "author": "bob", "max_tokens": 10, "certainty": 0.5, "digest": "sha256:00", "auth": "prod-db", "credential": "x",
        "list": [{"access_token": ["a"]}, "Authorization: Bearer abc"],
        (OWN): "session",
    });
    scrub_json(&mut value);
    let wanted = json!({
        "password": PLACEHOLDER, "apiKey": PLACEHOLDER, "Client-Secret": PLACEHOLDER, "token": null, "secret": true, "jwt": "",
        "author": "bob", "max_tokens": 10, "certainty": 0.5, "digest": "sha256:00", "auth": "prod-db", "credential": "x",
        "list": [{"access_token": PLACEHOLDER}, "Authorization: Bearer [REDACTED]"],
        (PLACEHOLDER): "session",
    });
    assert_eq!(value, wanted);
}

#[test]
fn what_the_wallet_knows_is_masked_whatever_it_looks_like() {
    noetl_scrub::known::learn_for("corpus", "just some words");
    assert_eq!(scrub_text("they said just some words."), "they said [REDACTED].");
    assert_eq!(scrub_text("?q=just+some+words&password=x"), "?q=[REDACTED]&password=[REDACTED]");
    let mut value = json!({ "said": ["just some words"], "just some words": 1 });
    scrub_json(&mut value);
    assert_eq!(value, json!({ "said": [PLACEHOLDER], (PLACEHOLDER): 1 }));
}

#[test]
fn a_tree_too_deep_to_look_into_is_masked_below_the_limit() {
    let mut value = json!("unread");
    for _ in 0..300 {
        value = json!([value]);
    }
    scrub_json(&mut value);
    assert!(!value.to_string().contains("unread"));
    assert!(value.to_string().contains(PLACEHOLDER));
}

/// Words and separators from which harmless text is made.
fn harmless() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("author".to_owned()),
        Just("max_tokens".to_owned()),
        Just("bearer".to_owned()),
        Just("basic".to_owned()),
        Just("authorization".to_owned()),
        Just("noetl_calls_total".to_owned()),
        "[a-z]{1,9}",
        "[0-9]{1,9}",
        "[0-9a-f]{64}",
        "sha256:[0-9a-f]{64}",
        "[a-zà-ü]{1,5}",
    ];
    let separator = prop_oneof![Just(" "), Just(", "), Just("\n"), Just(" ("), Just(") "), Just("; ")];
    proptest::collection::vec((word, separator), 0..30)
        .prop_map(|parts| parts.into_iter().map(|(word, separator)| word + separator).collect())
        // A digest is a fair bearer token, so the two side by side are not harmless.
        .prop_filter("no scheme before a digest", |text: &String| !text.contains("bearer ") && !text.contains("basic "))
}

fn secret() -> impl Strategy<Value = String> {
    prop_oneof![
        "noetl_[A-Z][a-z][A-Za-z0-9_-]{41}",
        "noetl_[0-9a-f]{64}",
        "sk-[0-9][A-Za-z0-9]{20,40}",
        "gh[pousr]_[0-9][A-Za-z0-9]{20,40}",
        "github_pat_[0-9][A-Za-z0-9_]{20,60}",
        "xox[bpars]-[0-9]{12}-[a-zA-Z0-9]{12}",
        "AIza[0-9][A-Za-z0-9_-]{34}",
        "ya29\\.[0-9][A-Za-z0-9_-]{30}",
        "eyJ[A-Za-z0-9_-]{10,40}\\.eyJ[A-Za-z0-9_-]{10,40}\\.[A-Za-z0-9_-]{10,40}",
    ]
}

proptest! {
    #[test]
    fn harmless_text_is_unchanged(text in harmless()) {
        prop_assert!(matches!(scrub_text(&text), Cow::Borrowed(_)), "{:?}", scrub_text(&text));
    }

    #[test]
    fn a_secret_is_masked_wherever_it_stands(before in harmless(), secret in secret(), after in harmless()) {
        let text = format!("{before} {secret} {after}");
        let clean = scrub_text(&text);
        prop_assert_eq!(clean, format!("{before} {PLACEHOLDER} {after}"));
    }

    #[test]
    fn any_text_is_survived_and_masking_twice_changes_nothing(text in any::<String>()) {
        let once = scrub_text(&text).into_owned();
        prop_assert_eq!(scrub_text(&once), once.as_str());
    }

    #[test]
    fn text_full_of_marks_is_survived_and_masking_twice_changes_nothing(
        text in "(password|token|secret|Bearer|Basic|Authorization|cookie|://|sk-1|eyJ|-----BEGIN PRIVATE KEY|[\"'\\\\:=@. {}\\[\\],é\na1A_-]){0,24}"
    ) {
        let once = scrub_text(&text).into_owned();
        prop_assert_eq!(scrub_text(&once), once.as_str(), "from {:?}", text);
    }
}
