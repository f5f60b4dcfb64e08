//! What goes out and what comes back.

use serde_json::json;

use crate::support::{call, failure, server};
use crate::upstream::Upstream;

#[tokio::test]
async fn every_method_and_body_arrives_as_it_was_meant() {
    let (server, upstream) = (server().await, Upstream::start().await);
    let api = server.admin();
    let url = format!("{}/echo", upstream.url);
    let form = "application/x-www-form-urlencoded";
    for (number, (options, method, media_type, body)) in [
        (json!({}), "GET", None, ""),
        (json!({"method": "delete"}), "DELETE", None, ""),
        (json!({"json": {"a": [1, null]}}), "POST", Some("application/json"), r#"{"a":[1,null]}"#),
        (json!({"method": "PUT", "body": {"a": 1}}), "PUT", Some("application/json"), r#"{"a":1}"#),
        (json!({"method": "PATCH", "text": "x"}), "PATCH", Some("text/plain; charset=utf-8"), "x"),
        (json!({"form": {"a": "b c", "l": [1, 2]}}), "POST", Some(form), "a=b%20c&l=1&l=2"),
        (json!({"method": "POST", "data": {"a": 1}}), "POST", Some("application/json"), r#"{"a":1}"#),
        (json!({"method": "POST", "payload": {"a": 1}}), "POST", Some("application/json"), r#"{"a":1}"#),
        (json!({"method": "POST", "data": {"a": 1}, "headers": {"Content-Type": form}}), "POST", Some(form), "a=1"),
    ]
    .into_iter()
    .enumerate()
    {
        let mut tool = json!({"kind": "http", "url": url});
        tool.as_object_mut().expect("an object").extend(options.as_object().cloned().expect("an object"));
        let answer = call(&api, &format!("send/{number}"), tool).await;
        assert_eq!(answer["status_code"], 200);
        let said = &answer["data"];
        assert_eq!((&said["method"], &said["body"]), (&json!(method), &json!(body)), "{options}");
        assert_eq!(said["headers"]["content-type"].as_str(), media_type, "{options}");
        assert_eq!(answer["body"], answer["data"]);
    }
}

#[tokio::test]
async fn parameters_and_templates_become_the_query() {
    let (server, upstream) = (server().await, Upstream::start().await);
    let tool = json!({
        "kind": "http", "endpoint": format!("{}/echo?a=1", upstream.url), "input": {"page": 2},
        "params": {"page": "{{ page }}", "none": null, "tag": ["x", "y&z"]}, "timeout": 20, "verify_ssl": true,
        "headers": {"X-Page": "{{ page }}"},
    });
    let answer = call(&server.admin(), "send/query", tool).await;
    assert_eq!(answer["data"]["target"], "/echo?a=1&page=2&tag=x&tag=y%26z");
    assert_eq!(answer["data"]["headers"]["x-page"], "2");
}

#[tokio::test]
async fn an_answer_is_shown_as_it_is_asked_for() {
    let (server, upstream) = (server().await, Upstream::start().await);
    let api = server.admin();
    let text = format!("{}/text", upstream.url);
    let shown = |wanted: &'static str, text: String| json!({"kind": "http", "url": text, "response_type": wanted});
    let auto = call(&api, "show/auto", shown("auto", text.clone())).await;
    assert_eq!(auto["data"], "{\"looks\": \"like JSON\"}");
    let parsed = call(&api, "show/json", shown("json", text.clone())).await;
    assert_eq!(parsed["data"]["looks"], "like JSON");
    let binary = call(&api, "show/binary", shown("binary", text)).await;
    assert!(
        binary.get("data").is_none() && binary["_ref"].as_str().is_some_and(|at| at.starts_with("noetl://payload/"))
    );
    assert_eq!((&binary["_bytes"], &binary["size"]), (&json!(22), &json!(22)));
    let head = json!({"kind": "http", "url": format!("{}/echo", upstream.url), "method": "HEAD"});
    assert_eq!(call(&api, "show/head", head).await["data"], json!(null));
}

#[tokio::test]
async fn redirects_are_followed_unless_the_step_wants_to_see_them() {
    let (server, upstream) = (server().await, Upstream::start().await);
    let api = server.admin();
    let url = format!("{}/redirect/redirect/echo", upstream.url);
    let stays = call(&api, "redirect/no", json!({"kind": "http", "url": url, "follow_redirects": false})).await;
    assert_eq!((&stays["status_code"], &stays["headers"]["location"]), (&json!(302), &json!("/redirect/echo")));
    let goes = call(&api, "redirect/yes", json!({"kind": "http", "url": url})).await;
    assert_eq!((&goes["status_code"], &goes["data"]["target"]), (&json!(200), &json!("/echo")));
    let moved = format!("{}/moved/echo", upstream.url);
    let sent = call(&api, "redirect/sent", json!({"kind": "http", "url": moved, "json": {"n": 1}})).await;
    let told = (&sent["data"]["method"], &sent["data"]["body"], &sent["data"]["headers"]["content-type"]);
    assert_eq!(told, (&json!("POST"), &json!("{\"n\":1}"), &json!("application/json")), "{sent}");
    // A body that would go on without being sent, and a redirect to nowhere.
    let put = json!({"kind": "http", "url": url, "method": "PUT", "json": {}});
    assert_eq!(failure(&api, "redirect/put", put).await, "redirect");
    let nowhere = json!({"kind": "http", "url": format!("{}/status/301", upstream.url)});
    assert_eq!(failure(&api, "redirect/nowhere", nowhere).await, "redirect");
    let fresh = json!({"kind": "http", "url": format!("{}/status/304", upstream.url)});
    assert_eq!(call(&api, "redirect/fresh", fresh).await["status_code"], 304);
}

#[tokio::test]
async fn a_body_is_read_as_what_it_is_whatever_its_server_calls_it() {
    let (server, upstream) = (server().await, Upstream::start().await);
    let api = server.admin();
    for (what, expected) in [
        ("untyped", json!({"n": 1})),
        ("latin", json!("caf\u{e9}")),
        ("marked", json!({"n": 1})),
        ("text", json!("{\"looks\": \"like JSON\"}")),
    ] {
        let tool =
            json!({"kind": "http", "url": format!("{}/{what}", upstream.url), "headers": {"Accept-Encoding": "gzip"}});
        assert_eq!(call(&api, &format!("read/{what}"), tool).await["data"], expected, "{what}");
    }
    assert!(
        upstream.asked().iter().all(|asked| asked.headers.get("accept-encoding").is_none_or(|said| said != "gzip"))
    );
}

/// Peak memory of a process, in MiB.
fn peak(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().expect("a number") / 1024
}

#[tokio::test]
async fn a_large_answer_goes_to_a_payload_and_on_from_there_in_bounded_memory() {
    const MIB: usize = 256;
    let (server, upstream) = (server().await, Upstream::start().await);
    let api = server.admin();
    call(&api, "large/first", json!({"kind": "http", "url": format!("{}/echo", upstream.url)})).await;
    let before = peak(server.pid());
    let workflow = json!([
        {"step": "start", "tool": {"kind": "http", "url": format!("{}/bytes/{MIB}", upstream.url)},
         "next": {"arcs": [{"step": "end"}]}},
        {"step": "end", "tool": {"kind": "http", "url": format!("{}/echo", upstream.url), "method": "PUT",
         "body_ref": "{{ start._ref }}", "response_type": "binary"}},
    ]);
    let ended = crate::support::run(&api, "large/through", workflow).await;
    assert_eq!(ended["status"], "completed", "{ended}");
    let sent = upstream.asked().into_iter().rfind(|asked| asked.method == "PUT").expect("it was sent on");
    assert_eq!(sent.body.len(), MIB << 20);
    let grown = peak(server.pid()).saturating_sub(before);
    assert!(grown < (MIB / 2) as u64, "the server took {grown} MiB for {MIB} MiB that passed through");
}
