//! Requests with placeholders in them, and what is left of a secret in the answer.

use async_trait::async_trait;
use futures::stream;
use noetl_store::wallet::WalletError;

use super::*;

const TOKEN: &str = "t0ken/with \"all\" & ö";

/// Two credentials, bound to `api.example.com` alone.
struct Two;

#[async_trait]
impl Wallet for Two {
    async fn open(&self, using: &Use) -> Result<Arc<Credential>, WalletError> {
        let (kind, fields) = match using.alias.as_str() {
            "api" => ("bearer", vec![("token", TOKEN)]),
            "shop" => ("basic", vec![("user", "bob"), ("password", "pass:word")]),
            "gone" => return Err(WalletError::Unavailable("no answer".to_owned())),
            alias => return Err(WalletError::Unknown { alias: alias.to_owned() }),
        };
        Ok(Arc::new(Credential {
            alias: using.alias.clone(),
            kind: kind.to_owned(),
            fields: fields.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            hosts: vec![noetl_store::wallet::Binding::new("api.example.com").expect("a pattern")],
            revision: 1,
        }))
    }
}

fn using(alias: &str, target: &str) -> Use {
    Use {
        tenant: Tenant::main(),
        alias: alias.to_owned(),
        by: "main/a@1.0.0".to_owned(),
        call: "c".to_owned(),
        target: target.to_owned(),
    }
}

struct Request {
    url: String,
    headers: Vec<(String, String)>,
    body: Option<(String, Form)>,
}

impl Request {
    fn to(url: &str) -> Self {
        Self { url: url.to_owned(), headers: Vec::new(), body: None }
    }

    async fn inject(&mut self) -> Result<Option<Sent>, OutboundError> {
        let url = reqwest::Url::parse(&self.url).expect("an address");
        let (host, port) = (url.host_str().expect("a host").to_owned(), url.port_or_known_default().expect("a port"));
        let body = self.body.as_mut().map(|(text, form)| (text, *form));
        let to = Place::of(&self.url, &host, port);
        inject(&Two, using, &seal(), to, Parts { url: &mut self.url, headers: &mut self.headers, body }).await
    }
}

fn seal() -> Seal {
    Seal::of(b"a key", "main")
}

fn token() -> String {
    seal().write("api", "token")
}

#[tokio::test]
async fn each_place_gets_the_value_as_it_is_written_there() {
    let mut request = Request::to(&format!("https://api.example.com/a?t={}", token()));
    request.headers = vec![
        ("authorization".to_owned(), format!("Basic {}", seal().write("shop", "basic"))),
        ("Accept-Encoding".to_owned(), "gzip".to_owned()),
        ("x".to_owned(), "plain".to_owned()),
    ];
    request.body = Some((format!("{{\"t\":\"{}\"}}", token()), Form::Json));
    assert!(request.inject().await.expect("allowed").is_some());
    assert_eq!(request.url, "https://api.example.com/a?t=t0ken%2Fwith%20%22all%22%20%26%20%C3%B6");
    assert_eq!(request.headers[0].1, "Basic Ym9iOnBhc3M6d29yZA==");
    assert_eq!(request.headers.len(), 2, "an answer that can be read is asked for");
    let (body, _) = request.body.expect("a body");
    assert_eq!(serde_json::from_str::<serde_json::Value>(&body).expect("JSON")["t"], TOKEN);

    let mut form = Request::to("https://api.example.com/");
    form.body = Some((format!("a=1&t={}", token().replace('~', "%7E")), Form::Urlencoded));
    form.inject().await.expect("allowed");
    assert_eq!(form.body.expect("a body").0, "a=1&t=t0ken%2Fwith%20%22all%22%20%26%20%C3%B6");
}

#[tokio::test]
async fn a_request_without_placeholders_is_left_alone() {
    let mut request = Request::to("https://other.example.com/NOETL~SECRET~");
    request.headers = vec![("accept-encoding".to_owned(), "gzip".to_owned())];
    assert!(request.inject().await.expect("allowed").is_none());
    assert_eq!(request.headers.len(), 1);
}

#[tokio::test]
async fn what_has_not_the_tenants_seal_is_sent_as_the_text_it_is() {
    let tag = placeholder::find(&token()).remove(0).tag;
    for forged in [
        "NOETL~SECRET~api~token~END".to_owned(),
        format!("NOETL~SECRET~api~token~{}~END", "0".repeat(tag.len())),
        format!("NOETL~SECRET~shop~password~{tag}~END"),
        Seal::of(b"a key", "acme").write("api", "token"),
    ] {
        let mut request = Request::to(&format!("https://api.example.com/?t={forged}"));
        request.body = Some((format!("{forged} "), Form::Text));
        assert!(request.inject().await.expect("nothing to open").is_none(), "{forged}");
        assert!(request.url.ends_with(&forged));
        // Beside one that is good it stays what it is too.
        request.body = Some((format!("{forged} {}", token()), Form::Text));
        assert!(request.inject().await.expect("allowed").is_some());
        assert_eq!(request.body.expect("a body").0, format!("{forged} {TOKEN}"));
    }
}

#[tokio::test]
async fn a_credential_goes_to_its_own_hosts_alone_and_the_refusal_names_both() {
    for url in [
        "https://evil.example/",
        "https://api.example.com.evil.example/",
        "http://[::1]:8080/",
        "http://api.example.com/",
        "https://api.example.com:8443/",
    ] {
        let mut request = Request::to(url);
        request.headers = vec![("authorization".to_owned(), format!("Bearer {}", token()))];
        match request.inject().await {
            Err(OutboundError::Denied(text)) => {
                assert!(text.contains("`api`") && !text.contains(TOKEN), "{text}");
            }
            other => panic!("{url}: {other:?}"),
        }
        assert!(request.headers[0].1.contains("NOETL~"), "nothing was put in");
    }
}

#[tokio::test]
async fn a_secret_cannot_become_the_host() {
    let mut request = Request::to("https://api.example.com/");
    request.url = format!("https://{}@api.example.com/", token());
    request.inject().await.expect("before the host it is as good as in a header");
    let mut parts_url = format!("https://{}.api.example.com/", token());
    let parts = Parts { url: &mut parts_url, headers: &mut Vec::new(), body: None };
    let refused = inject(&Two, using, &seal(), Place::of("https://", "api.example.com", 443), parts).await;
    assert!(matches!(refused, Err(OutboundError::Invalid(_))), "{refused:?}");
}

#[tokio::test]
async fn what_cannot_be_opened_is_refused_with_its_reason() {
    let with = |alias: &str, field: &str| {
        let mut request = Request::to("https://api.example.com/");
        request.headers = vec![("x".to_owned(), seal().write(alias, field))];
        async move { request.inject().await.expect_err("refused") }
    };
    assert!(matches!(with("nobody", "token").await, OutboundError::Denied(text) if text.contains("`nobody`")));
    assert!(matches!(with("api", "nothing").await, OutboundError::Denied(text) if text.contains("`nothing`")));
    assert!(matches!(with("gone", "token").await, OutboundError::Failed(_)));
}

fn answer(headers: &[(&str, &str)], pieces: Vec<String>) -> OutboundResponse {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let pieces = pieces.into_iter().map(|piece| Ok(Bytes::from(piece)));
    OutboundResponse { status: 200, headers, body: stream::iter(pieces.collect::<Vec<_>>()).boxed() }
}

async fn sent() -> Sent {
    let mut request = Request::to(&format!("https://api.example.com/?t={}", token()));
    request.headers = vec![("authorization".to_owned(), format!("Basic {}", seal().write("shop", "basic")))];
    request.inject().await.expect("allowed").expect("with secrets")
}

#[tokio::test]
async fn what_comes_back_is_masked_across_pieces_and_in_every_form() {
    let echo = format!("a {TOKEN} b t0ken%2Fwith%20%22all%22%20%26%20%C3%B6 c {} d", serde_json::json!(TOKEN));
    let echo = format!("{echo} Ym9iOnBhc3M6d29yZA== pass:word e");
    let letters: Vec<String> = echo.chars().map(String::from).collect();
    let to = "https://api.example.com/b?t=t0ken%2Fwith%20%22all%22%20%26%20%C3%B6";
    let (sent, answer) = (sent().await, answer(&[("x-echo", TOKEN), ("Location", to)], letters));
    let masked = mask(&[Secrets::of(&Tenant::main(), Vec::new())], Some(&sent), answer);
    assert_eq!(masked.headers[0].1, "[REDACTED]");
    assert_eq!(masked.headers[1].1, format!("https://api.example.com/b?t={}", token()));
    let body: Vec<Bytes> = masked.body.map(|piece| piece.expect("whole")).collect().await;
    let body = String::from_utf8(body.concat()).expect("text");
    assert_eq!(body, "a [REDACTED] b [REDACTED] c \"[REDACTED]\" d [REDACTED] [REDACTED] e");
}

/// A body with this encoding, as far as it can be read.
async fn read(sent: Option<&Sent>, encoding: &str, body: &[&str]) -> Result<Vec<u8>, String> {
    let body = body.iter().map(|piece| (*piece).to_owned()).collect();
    let secrets = Secrets::of(&Tenant::main(), Vec::new());
    let masked = mask(&[secrets], sent, answer(&[("content-encoding", encoding)], body));
    let pieces: Vec<io::Result<Bytes>> = masked.body.collect().await;
    let whole: io::Result<Vec<Bytes>> = pieces.into_iter().collect();
    whole.map(|pieces| pieces.concat()).map_err(|error| error.to_string())
}

#[tokio::test]
async fn a_body_that_cannot_be_read_is_refused_and_errors_are_masked() {
    let (sent, secrets) = (sent().await, Secrets::of(&Tenant::main(), Vec::new()));
    for packed in ["gzip", "aws-chunked, gzip"] {
        let refused = read(Some(&sent), packed, &["a", "b"]).await.expect_err("it cannot be masked");
        assert!(refused.contains(packed), "{refused}");
        assert_eq!(read(Some(&sent), packed, &[]).await, Ok(Vec::new()), "there is nothing to mask");
    }
    for plain in ["", "identity", "Identity", "aws-chunked"] {
        assert_eq!(read(Some(&sent), plain, &["a ", TOKEN]).await, Ok(b"a [REDACTED]".to_vec()));
    }
    assert!(read(None, "gzip", &["a"]).await.is_err(), "a host can have kept what an earlier request sent");
    let nobodys = Secrets::of(&Tenant::new("packed").expect("valid"), Vec::new());
    let passed = mask(&[nobodys], None, answer(&[("content-encoding", "gzip")], vec!["a".to_owned()]));
    let passed: Vec<io::Result<Bytes>> = passed.body.collect().await;
    assert!(passed.iter().all(Result::is_ok), "who has no secrets has nothing to look for");
    let error = mask_error(&secrets, OutboundError::Failed(format!("connect to ?t={TOKEN}")));
    assert_eq!(error, OutboundError::Failed("connect to ?t=[REDACTED]".to_owned()));
}

#[tokio::test]
async fn what_an_earlier_request_sent_is_masked_in_every_later_answer() {
    sent().await;
    let kept = format!("kept: {TOKEN}, &#246; is no secret");
    let kept = answer(&[("x-kept", TOKEN), ("Location", "https://api.example.com/?t=t0ken%2Fwith")], vec![kept]);
    let masked = mask(&[Secrets::of(&Tenant::main(), Vec::new())], None, kept);
    assert_eq!(masked.headers[0].1, "[REDACTED]");
    let body: Vec<Bytes> = masked.body.map(|piece| piece.expect("whole")).collect().await;
    assert_eq!(body.concat(), b"kept: [REDACTED], &#246; is no secret");
}

#[tokio::test]
async fn what_went_out_is_not_written_down() {
    let sent = sent().await;
    let shown = format!("{sent:?}");
    assert!(shown.contains("placeholders") && !shown.contains("t0ken") && !shown.contains("pass:word"), "{shown}");
}

#[test]
fn a_body_is_looked_at_where_it_is_text() {
    for (media_type, form) in [
        ("application/json; charset=utf-8", Some(Form::Json)),
        ("application/ld+json", Some(Form::Json)),
        ("application/x-www-form-urlencoded", Some(Form::Urlencoded)),
        ("text/csv", Some(Form::Text)),
        ("image/svg+xml", Some(Form::Text)),
        ("multipart/form-data; boundary=x", Some(Form::Text)),
        ("application/octet-stream", None),
        ("image/png", None),
        ("", None),
    ] {
        assert_eq!(Form::of(media_type), form, "{media_type}");
    }
}
