//! Bytes that are not what they say, too many of them, or too slow.

use std::time::Duration;

use noetl_tests::{guest, made, with_manifest};
use reqwest::Method;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::scene::{HOSTILE, Scene, ended};

#[tokio::test]
async fn an_import_outside_the_ring_is_refused_by_name() {
    let scene = Scene::start().await;
    let component = guest("hostile");
    let push = || async {
        let answer = scene.mallory.push(component.clone(), "?ring=pure").await;
        assert!(answer.text().contains("noetl:"), "{}", answer.text());
        ended(answer, 422, "capability_denied")
    };
    scene.attack("import outside the ring", push).await;
}

#[tokio::test]
async fn wasi_sockets_and_unknown_imports_are_refused_in_every_ring() {
    let scene = Scene::start().await;
    let sockets = "package wasi:sockets@0.2.0; interface tcp { connect: func(to: string) -> bool; }";
    let tomorrow = sockets.replace("0.2.0", "9.0.0");
    let all = ["log", "metrics", "clock", "random", "kv", "payload", "objects", "http-client", "sql"];
    for (name, package, import, code) in [
        ("WASI sockets", sockets, "wasi:sockets/tcp@0.2.0", "capability_denied"),
        ("WASI sockets of tomorrow", tomorrow.as_str(), "wasi:sockets/tcp@9.0.0", "capability_denied"),
        (
            "import that nobody has",
            "package noetl:kernel@0.1.0; interface root { shell: func(); }",
            "noetl:kernel/root@0.1.0",
            "contract_skew",
        ),
    ] {
        let manifest = made::manifest("mallory/made", &all, "");
        let component = made::stub(&[package], &format!("import {import};"), &manifest);
        let push = || async {
            let answer = scene.mallory.push(component.clone(), "").await;
            assert!(answer.text().contains(import), "it is refused by name: {}", answer.text());
            ended(answer, 422, code)
        };
        scene.attack(name, push).await;
    }
}

#[tokio::test]
async fn a_forged_manifest_gains_nothing() {
    let scene = Scene::start().await;
    let forged = |text: &str| with_manifest(&guest("echo"), text);
    let usual = "version = \"1.0.0\"\nworld = \"transform\"\ncapabilities = []\n";
    for (name, manifest, status, code) in [
        (
            "manifest claims a ring",
            format!("path = \"mallory/x\"\nring = \"system\"\n{usual}"),
            422,
            "invalid_manifest",
        ),
        (
            "manifest claims a digest",
            format!("path = \"mallory/x\"\ndigest = \"sha256:00\"\n{usual}"),
            422,
            "invalid_manifest",
        ),
        ("manifest claims another tenant's path", format!("path = \"alice/echo\"\n{usual}"), 403, "forbidden_tenant"),
        (
            "manifest claims the platform's path",
            format!("path = \"system/orchestrate\"\n{usual}"),
            403,
            "reserved_path",
        ),
        (
            "manifest asks to be resident",
            format!("path = \"mallory/x\"\ninstance = \"resident\"\n{usual}"),
            422,
            "capability_denied",
        ),
    ] {
        let component = forged(&manifest);
        scene.attack(name, || async { ended(scene.mallory.push(component.clone(), "").await, status, code) }).await;
    }
    // Two manifests: readers could disagree on which one counts.
    let mut two = forged(&format!("path = \"mallory/x\"\n{usual}"));
    let section = [b"\x0enoetl:manifest".as_slice(), b"path = \"alice/echo\"\n"].concat();
    two.extend([0, u8::try_from(section.len()).expect("short")]);
    two.extend(section);
    scene
        .attack("two manifests", || async { ended(scene.mallory.push(two.clone(), "").await, 422, "not_a_component") })
        .await;
    assert_eq!(scene.mallory.get("/api/plugins?prefix=mallory").await.is(200).json()["plugins"], serde_json::json!([]));
}

#[tokio::test]
async fn bytes_that_are_no_component_are_told_so() {
    let scene = Scene::start().await;
    let whole = guest("hostile");
    let nested = (0..2_000).fold(Vec::new(), |inner, _| nested_in_a_component(&inner));
    for (name, bytes, code) in [
        ("no WebAssembly", b"MZ\x90\x00 this program cannot be run in DOS mode".to_vec(), "not_a_component"),
        ("nothing at all", Vec::new(), "not_a_component"),
        ("core module", b"\0asm\x01\0\0\0".to_vec(), "not_a_component"),
        ("component that is cut", whole[..whole.len() / 2].to_vec(), "not_a_component"),
        ("section longer than the file", [&whole[..8], &[2, 0xff, 0xff, 0xff, 0xff, 0x0f]].concat(), "not_a_component"),
        // Valid, and still nobody's plugin.
        ("2000 components inside each other", nested, "no_manifest"),
    ] {
        scene.attack(name, || async { ended(scene.mallory.push(bytes.clone(), "").await, 422, code) }).await;
    }
}

/// A component whose one section is a component of these sections.
fn nested_in_a_component(inner: &[u8]) -> Vec<u8> {
    const HEADER: [u8; 8] = *b"\0asm\x0d\0\x01\0";
    if inner.is_empty() {
        return HEADER.to_vec();
    }
    let mut length = Vec::new();
    let mut left = inner.len();
    while left >= 0x80 {
        length.push((left & 0x7f) as u8 | 0x80);
        left >>= 7;
    }
    length.push(left as u8);
    [&HEADER, [4].as_slice(), &length, inner].concat()
}

#[tokio::test]
async fn ten_thousand_exports_are_no_burden() {
    let scene = Scene::start().await;
    let exports: String =
        (0..10_000).map(|number| format!("export part{number}: func(a: string) -> list<string>;")).collect();
    let component = made::stub(&[], &exports, &made::manifest("mallory/made", &ALL, ""));
    // What nobody calls is nobody's business: it is compiled like anything else, and known from then on.
    let known = std::sync::atomic::AtomicBool::new(false);
    scene
        .attack("10,000 exports", || async {
            let status = if known.swap(true, std::sync::atomic::Ordering::Relaxed) { 200 } else { 201 };
            scene.mallory.push(component.clone(), "").await.is(status);
            "accepted".to_owned()
        })
        .await;
}

const ALL: [&str; 12] =
    ["log", "metrics", "clock", "random", "kv", "payload", "objects", "http-client", "secrets", "files", "sql", "nats"];

#[tokio::test]
async fn a_compile_bomb_ends_with_the_compilers_time_and_others_are_compiled_meanwhile() {
    let scene = Scene::start_with(&[("NOETL_HOST_COMPILE_TIMEOUT_SECS", "10")]).await;
    let bomb = made::compile_bomb(400, 8_000, &made::manifest("mallory/made", &[], ""));
    scene
        .attack("compile bomb", || async {
            let (bombed, pushed) = tokio::join!(scene.mallory.push(bomb.clone(), ""), async {
                let manifest = made::manifest("alice/other", &[], "");
                scene.alice.push(with_manifest(&guest("echo"), &manifest), "").await
            });
            assert!(matches!(pushed.status, 200 | 201), "{}", pushed.text());
            ended(bombed, 422, "compile_failed")
        })
        .await;
}

#[tokio::test]
async fn an_upload_of_a_gibibyte_is_refused_before_it_is_taken() {
    let scene = Scene::start_with(&[("NOETL_SERVER_MAX_COMPONENT_MB", "8"), ("NOETL_SERVER_MAX_CALL_MB", "8")]).await;
    scene.mallory.push(guest("hostile"), "").await.is(201);
    let announced = || async {
        let (status, text) = raw(&scene, "POST /api/plugins", "content-length: 1073741824", b"\0asm").await;
        assert_eq!(status, 413, "{text}");
        "component_too_large".to_owned()
    };
    scene.attack("1 GiB upload, announced", announced).await;
    for (name, path, code) in [
        ("1 GiB upload, in pieces", "/api/plugins", "component_too_large"),
        ("1 GiB input, in pieces", "/api/plugins/mallory/hostile:call", "call_too_large"),
    ] {
        let pieces = || async {
            let piece = bytes_of(1 << 20);
            let endless = futures::stream::iter((0..1024).map(move |_| Ok::<_, std::io::Error>(piece.clone())));
            let request = scene.mallory.request(Method::POST, path).body(reqwest::Body::wrap_stream(endless));
            // The server may close before all is sent; what it said is then lost to this client and not to others.
            match request.send().await {
                Ok(answer) => assert_eq!(answer.status().as_u16(), 413),
                Err(error) => assert!(error.is_request() || error.is_body(), "{error:?}"),
            }
            code.to_owned()
        };
        scene.attack(name, pieces).await;
    }
    assert_eq!(files(&scene), 0, "nothing of the refused uploads is left");
}

fn bytes_of(count: usize) -> Vec<u8> {
    vec![0; count]
}

/// Unfinished uploads in the payload store.
fn files(scene: &Scene) -> usize {
    let folder = scene.server.data().join("payloads").join("tmp");
    std::fs::read_dir(folder).map_or(0, Iterator::count)
}

#[tokio::test]
async fn an_upload_that_breaks_off_leaves_nothing() {
    let scene = Scene::start().await;
    let whole = guest("hostile");
    scene
        .attack("upload that breaks off", || async {
            let mut stream = connect(&scene).await;
            let head = head(&scene, "POST /api/plugins", &format!("content-length: {}", whole.len()));
            stream.write_all(head.as_bytes()).await.expect("sent");
            stream.write_all(&whole[..whole.len() / 2]).await.expect("sent");
            stream.shutdown().await.expect("closed");
            let mut said = Vec::new();
            let _ = stream.read_to_end(&mut said).await;
            "body_interrupted".to_owned()
        })
        .await;
    scene.mallory.get(&format!("/api/plugins/{HOSTILE}")).await.problem(404, "plugin_not_found");
    assert_eq!(files(&scene), 0);
}

#[tokio::test]
async fn what_is_tried_or_refused_leaves_no_machine_code() {
    let scene = Scene::start().await;
    let cache = scene.server.data().join("cache");
    // Files whose name is the digest of a component.
    let code_of = |component: &[u8]| {
        let digest = noetl_contract::Digest::of(component).hex();
        let folders = std::fs::read_dir(&cache).expect("a cache").filter_map(|folder| folder.ok());
        let files = folders.flat_map(|folder| std::fs::read_dir(folder.path()).into_iter().flatten());
        files
            .filter_map(|file| file.ok())
            .filter(|file| file.file_name().to_string_lossy().starts_with(&digest))
            .count()
    };
    let tried = with_manifest(&guest("echo"), &made::manifest("mallory/tried", &[], ""));
    scene
        .attack("push on trial", || async {
            scene.mallory.push(tried.clone(), "?dry_run=true").await.is(200);
            "nothing left".to_owned()
        })
        .await;
    assert_eq!(code_of(&tried), 0);
    scene.mallory.push(tried.clone(), "").await.is(201);
    assert_eq!(code_of(&tried), 2, "the code and its digest");
    scene.mallory.push(tried.clone(), "?dry_run=true").await.is(200);
    assert_eq!(code_of(&tried), 2, "a version has these bytes");
    assert_eq!(scene.mallory.call("mallory/tried", "still here").await.is(200).text(), "still here");
    // Found out when the component is asked what it does, after it was compiled.
    let parts = "(data (i32.const 64) \"no JSON\") (func (export \"noetl:describe/describing@0.1.0#describe\") (result i32) \
                 (i32.store (i32.const 32) (i32.const 64)) (i32.store (i32.const 36) (i32.const 7)) (i32.const 32))";
    let refused = made::described(parts, "(i32.const 0)", &made::manifest("mallory/refused", &[], ""));
    assert_ne!(scene.mallory.push(refused.clone(), "").await.status, 201);
    assert_eq!(code_of(&refused), 0);
}

#[tokio::test]
async fn heads_and_bodies_that_drip_are_given_up() {
    let scene = Scene::start_with(&[
        ("NOETL_SERVER_HEADER_TIMEOUT_SECS", "1"),
        ("NOETL_SERVER_BODY_IDLE_SECS", "1"),
        ("NOETL_SERVER_BODY_MIN_RATE", "100000"),
    ])
    .await;
    let head_drips = || async {
        let mut stream = connect(&scene).await;
        stream.write_all(b"POST /api/plugins HTTP/1.1\r\nhost: x\r\nx-drip: ").await.expect("sent");
        drip(stream).await;
        "connection closed".to_owned()
    };
    scene.attack("head that drips", head_drips).await;
    let body_drips = || async {
        let mut stream = connect(&scene).await;
        let head = head(&scene, "POST /api/plugins", "content-length: 1000000");
        stream.write_all(head.as_bytes()).await.expect("sent");
        let said = drip(stream).await;
        assert!(said.contains(" 408 ") && said.contains("body_timeout"), "{said}");
        "body_timeout".to_owned()
    };
    scene.attack("body that drips", body_drips).await;
    let body_stops = || async {
        let (status, said) = raw(&scene, "POST /api/plugins", "content-length: 1000000", b"\0asm").await;
        assert_eq!(status, 408, "{said}");
        "body_timeout".to_owned()
    };
    scene.attack("body that stops", body_stops).await;
    assert_eq!(files(&scene), 0);
}

/// Sends a byte now and then until the other side has had enough, and gives what it said.
async fn drip(stream: TcpStream) -> String {
    let (mut reading, mut writing) = stream.into_split();
    let dripping = tokio::spawn(async move {
        while writing.write_all(b"x").await.is_ok() {
            // The pace of the attack, not a wait for anything.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let mut said = Vec::new();
    let _ = reading.read_to_end(&mut said).await;
    dripping.abort();
    String::from_utf8_lossy(&said).into_owned()
}

async fn connect(scene: &Scene) -> TcpStream {
    let address = scene.server.url.trim_start_matches("http://").to_owned();
    TcpStream::connect(address).await.expect("the server accepts")
}

fn head(scene: &Scene, line: &str, header: &str) -> String {
    let token = scene.server.admin_token();
    format!("{line} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\nconnection: close\r\n{header}\r\n\r\n")
}

/// A request written by hand, left open, and what came back.
async fn raw(scene: &Scene, line: &str, header: &str, body: &[u8]) -> (u16, String) {
    let mut stream = connect(scene).await;
    stream.write_all(head(scene, line, header).as_bytes()).await.expect("sent");
    stream.write_all(body).await.expect("sent");
    let mut said = [0; 4096];
    let count = stream.read(&mut said).await.expect("an answer");
    let said = String::from_utf8_lossy(&said[..count]).into_owned();
    let status = said.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    (status, said)
}
