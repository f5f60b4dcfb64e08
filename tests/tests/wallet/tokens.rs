//! Tokens that the server fetches: once for all who need one, anew when one is not taken any more, and never a failure for
//! longer than it lasts. The issuer and the API are one server of the test.

use std::collections::VecDeque;
use std::sync::Mutex;

use noetl_tests::recorder::{Asked, Reply};
use noetl_tests::{Api, Recorder};
use serde_json::{Value, json};

use crate::support::{SECRET, failing, files_with, reaching, step};

/// Issues `token-1-of-the-issuer`, `token-2-...`; first it answers with these. The API takes those that `good` names.
async fn issuer(first: Vec<(u16, Value)>, good: impl Fn(&str) -> bool + Send + Sync + 'static) -> Recorder {
    let state = Mutex::new((VecDeque::from(first), 0));
    Recorder::start(move |asked| {
        if asked.target != "/token" {
            let status = if good(asked.header("authorization")) { 200 } else { 401 };
            return Reply::json(status, json!({"key": asked.header("idempotency-key")}));
        }
        let mut state = state.lock().expect("nobody panics here");
        if let Some((status, body)) = state.0.pop_front() {
            return Reply::json(status, body);
        }
        state.1 += 1;
        Reply::json(200, json!({"access_token": format!("token-{}-of-the-issuer", state.1), "expires_in": 3600}))
    })
    .await
}

async fn keep(api: &Api, issuer: &Recorder) {
    let data = json!({"token_url": format!("{}/token", issuer.url), "client_id": "me", "client_secret": SECRET,
                      "scope": "read"});
    api.post("/api/credentials", json!({"name": "crm", "type": "oauth2", "data": data})).await.is(201);
}

fn of<'a>(asked: &'a [Asked], path: &str) -> Vec<&'a Asked> {
    asked.iter().filter(|asked| asked.target == path).collect()
}

#[tokio::test]
async fn many_requests_at_once_need_one_token_and_the_clients_secret_goes_to_the_issuer_alone() {
    let (server, issuer) =
        (reaching().await, issuer(Vec::new(), |login| login == "Bearer token-1-of-the-issuer").await);
    let api = server.admin();
    keep(&api, &issuer).await;
    let call = json!({"url": format!("{}/orders", issuer.url), "auth": "crm"});
    let calls = (0..8).map(|_| api.post("/api/plugins/tools/http:call", call.clone()));
    for answer in futures::future::join_all(calls).await {
        assert_eq!(answer.is(200).json()["status_code"], 200);
    }
    let asked = issuer.asked();
    let (tokens, orders) = (of(&asked, "/token"), of(&asked, "/orders"));
    assert_eq!((tokens.len(), orders.len()), (1, 8));
    let form = tokens[0].text();
    assert!(form.contains("grant_type=client_credentials&scope=read&client_id=me"), "{form}");
    assert!(form.contains(SECRET));
    assert!(orders.iter().all(|asked| !asked.told().to_string().contains(SECRET)));
    let (data, said) = server.stop();
    for secret in [SECRET, "token-1-of-the-issuer"] {
        assert!(!said.contains(secret), "{said}");
        assert_eq!(files_with(data.path(), secret), Vec::<String>::new(), "{secret}");
    }
}

#[tokio::test]
async fn a_token_that_is_not_taken_any_more_is_fetched_anew_and_the_request_sent_once_more() {
    let (server, issuer) =
        (reaching().await, issuer(Vec::new(), |login| login.ends_with("token-2-of-the-issuer")).await);
    let api = server.admin();
    keep(&api, &issuer).await;
    let tool = json!({"kind": "http", "url": format!("{}/orders", issuer.url), "json": {"id": 7}, "auth": "crm"});
    let answer = step(&api, "tokens/anew", tool).await;
    assert_eq!(answer["status_code"], 200, "{answer}");
    let asked = issuer.asked();
    let orders = of(&asked, "/orders");
    assert_eq!((of(&asked, "/token").len(), orders.len()), (2, 2));
    assert_eq!(orders[0].header("authorization"), "Bearer token-1-of-the-issuer");
    assert_eq!(orders[1].header("authorization"), "Bearer token-2-of-the-issuer");
    for same in ["idempotency-key", "content-length"] {
        assert_eq!(orders[0].header(same), orders[1].header(same), "{same}");
    }
    assert_eq!(orders[1].text(), r#"{"id":7}"#, "with all of its body");
}

#[tokio::test]
async fn a_request_that_is_refused_with_a_new_token_too_is_not_sent_a_third_time() {
    let (server, issuer) = (reaching().await, issuer(Vec::new(), |_| false).await);
    let api = server.admin();
    keep(&api, &issuer).await;
    let tool = json!({"kind": "http", "url": format!("{}/orders", issuer.url), "auth": "crm"});
    assert_eq!(failing(&api, "tokens/never", tool).await.0, "auth");
    let asked = issuer.asked();
    assert_eq!((of(&asked, "/token").len(), of(&asked, "/orders").len()), (2, 2));
    // Nothing is fetched for a token that somebody keeps.
    let kept = json!({"name": "kept", "type": "bearer", "data": {"token": SECRET}, "hosts": [issuer.host]});
    api.post("/api/credentials", kept).await.is(201);
    let tool = json!({"kind": "http", "url": format!("{}/kept", issuer.url), "auth": "kept"});
    assert_eq!(failing(&api, "tokens/kept", tool).await.0, "auth");
    assert_eq!(of(&issuer.asked(), "/kept").len(), 1);
}

#[tokio::test]
async fn a_failure_of_the_issuer_has_its_kind_and_ends_with_its_cause() {
    let refused = json!({"error": "invalid_client", "error_description": format!("no {SECRET}")});
    let first = vec![(503, json!({})), (401, refused), (200, json!({"token": SECRET}))];
    let (server, issuer) = (reaching().await, issuer(first, |_| true).await);
    let api = server.admin();
    keep(&api, &issuer).await;
    let tool = || json!({"kind": "http", "url": format!("{}/orders", issuer.url), "auth": "crm"});
    for (name, wanted) in
        [("later", ("http_failed", "true")), ("refused", ("denied", "false")), ("no-token", ("denied", "false"))]
    {
        let (code, again) = failing(&api, &format!("tokens/{name}"), tool()).await;
        assert_eq!((code.as_str(), again.as_str()), wanted, "{name}");
    }
    assert!(of(&issuer.asked(), "/orders").is_empty(), "nothing is sent without a token");
    assert_eq!(step(&api, "tokens/at-last", tool()).await["status_code"], 200);
    assert_eq!(of(&issuer.asked(), "/token").len(), 4, "each asked once, and no failure was kept");
    let (_, said) = server.stop();
    assert!(!said.contains(SECRET), "{said}");
}
