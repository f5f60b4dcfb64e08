//! `urllib.request` and the SDK's `http` from code of a step, against a server of the test.

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::support::Desk;

/// Answers `/echo` with the request, `/moved` with a redirect there, `/never` not at all, and anything else with 404.
async fn upstream() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    url
}

async fn serve(mut stream: TcpStream) {
    let mut request = Vec::new();
    let mut piece = [0; 4096];
    let (head, body) = loop {
        let text = String::from_utf8_lossy(&request).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let lower = head.to_ascii_lowercase();
            let length = lower.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                break (head.to_owned(), body.to_owned());
            }
        }
        match stream.read(&mut piece).await {
            Ok(count) if count > 0 => request.extend_from_slice(&piece[..count]),
            _ => return,
        }
    };
    let mut words = head.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (status, more, answer) = match path {
        "/never" => std::future::pending().await,
        "/moved" => ("302 Found", "location: /echo\r\n", String::new()),
        path if path.starts_with("/echo") => {
            let key = head.to_ascii_lowercase().contains("x-key: k");
            ("200 OK", "", json!({"method": method, "path": path, "body": body, "key": key}).to_string())
        }
        _ => ("404 Not Found", "", "nothing here".to_owned()),
    };
    let length = answer.len();
    let text = format!("HTTP/1.1 {status}\r\n{more}content-length: {length}\r\nconnection: close\r\n\r\n{answer}");
    // The guest may be gone by now.
    let _ = stream.write_all(text.as_bytes()).await;
}

#[tokio::test]
async fn urllib_goes_over_the_hosts_client() {
    let desk = Desk::start().await;
    let url = upstream().await;
    let get = "import json, urllib.request\n\
               with urllib.request.urlopen(url + '/echo?a=b', timeout=20) as r:\n    \
               result = [r.status, json.loads(r.read())['path']]";
    assert_eq!(desk.python(get, json!({"url": url})).await, json!([200, "/echo?a=b"]));
    let post = "import json\nfrom urllib import request, parse\n\
                data = parse.urlencode({'a': 'b c'}).encode()\n\
                r = request.urlopen(request.Request(url + '/echo', data=data, headers={'X-Key': 'k'}))\n\
                said = json.load(r)\nresult = [said['method'], said['body'], said['key']]";
    assert_eq!(desk.python(post, json!({"url": url})).await, json!(["POST", "a=b+c", true]));
    let moved = "import urllib.request\nresult = urllib.request.urlopen(url + '/moved').geturl()";
    assert_eq!(desk.python(moved, json!({"url": url})).await, json!(format!("{url}/echo")));
    let missing = "import urllib.request, urllib.error\ntry:\n    urllib.request.urlopen(url + '/none')\n\
                   except urllib.error.HTTPError as error:\n    result = [error.code, error.read().decode()]";
    assert_eq!(desk.python(missing, json!({"url": url})).await, json!([404, "nothing here"]));
    let never = "import urllib.request, urllib.error\ntry:\n    urllib.request.urlopen(url + '/never', timeout=0.2)\n\
                 except urllib.error.URLError as error:\n    result = type(error.reason).__name__";
    assert_eq!(desk.python(never, json!({"url": url})).await, json!("TimeoutError"));
    let code = "return noetl.http.get(input.url + '/echo').json().method;";
    let answer = desk.call("javascript", json!({"code": code, "input": {"url": url}})).await.is(200).json();
    assert_eq!(answer, json!("GET"));
}

#[tokio::test]
async fn a_socket_is_an_error_of_the_step_at_its_line() {
    let desk = Desk::start().await;
    let caught = "import http.client, socket\nresult = []\n\
                  for ask in (socket.socket, lambda: socket.getaddrinfo('example.com', 80),\n            \
                  lambda: http.client.HTTPConnection('127.0.0.1').request('GET', '/')):\n    try:\n        ask()\n    \
                  except OSError as error:\n        result.append(type(error).__name__)";
    assert_eq!(desk.python(caught, json!({})).await, json!(["OSError", "gaierror", "OSError"]));
    let code = "import socket\nsocket.create_connection(('127.0.0.1', 80))";
    let failed = desk.call("python", json!({ "code": code })).await.is(200).json();
    assert_eq!((&failed["py"]["exception"], &failed["py"]["line"]), (&json!("OSError"), &json!(2)), "{failed}");
    let said = failed["_failure"]["message"].as_str().unwrap_or_default();
    assert!(said.contains("a sandbox has no sockets: use `noetl.http`"), "{failed}");
    assert!(!failed["py"]["traceback"].to_string().contains("_noetl_"), "lines of the step alone: {failed}");
}

#[tokio::test]
async fn a_script_is_fetched_and_the_operators_policy_holds_for_it() {
    let desk = Desk::start_with(&[("NOETL_POLICY_HTTP_PRIVATE_ADDRESSES", "false")]).await;
    let url = upstream().await;
    let code = "import urllib.request, urllib.error\ntry:\n    urllib.request.urlopen(url + '/echo')\n\
                except urllib.error.URLError as error:\n    result = str(error.reason)";
    let said = desk.python(code, json!({"url": url})).await;
    assert!(said.as_str().is_some_and(|said| said.contains("not a public address")), "{said}");
    let script = json!({"script": {"uri": format!("{url}/echo"), "source": {"type": "http"}}});
    desk.call("python", script).await.problem(422, "plugin_failure");
}
