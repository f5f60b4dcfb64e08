//! A guest that attacks: its input names the attack, and after a colon how much of it.
//!
//! What an honest compiler cannot be made to emit (answers with lengths that are lies, many memories, ten thousand
//! exports) is made by hand in the suite; this is everything a hostile author can write in plain Rust.

use std::hint::black_box;

use noetl_sdk::{Failure, http, kv, log, metrics, objects, payload};

noetl_sdk::transform!(run);

const MIB: usize = 1 << 20;

fn run(input: Vec<u8>) -> Result<Vec<u8>, Failure> {
    let input = String::from_utf8(input)?;
    let (attack, detail) = input.split_once(':').unwrap_or((&input, ""));
    match attack {
        "ok" => Ok(b"ok".to_vec()),
        "loop" => loop {
            black_box(());
        },
        "spin" => Ok(spin(detail.parse()?).to_string().into_bytes()),
        "recurse" => Ok(descend(0).to_string().into_bytes()),
        "memory" => Ok(fill(detail.parse()?).to_string().into_bytes()),
        "output" => Ok(vec![b'x'; detail.parse::<usize>()? * MIB]),
        "panic" => panic!("{}", "p".repeat(detail.parse::<usize>()? * MIB)),
        "calls" => calls(detail.parse()?),
        "argument" => argument(detail.parse()?),
        "staged" => staged(detail.parse()?),
        "payloads" => payloads(detail.parse()?),
        "log" => flood(detail.parse()?),
        "series" => series(detail.parse()?),
        "fetch" => fetch(http::get(detail)),
        "follow" => fetch(http::get(detail).header("authorization", "Bearer of-the-first-host").follow(5)),
        "put" => put(detail),
        "get" => get(detail),
        _ => Err(Failure::invalid_input(format_args!("`{attack}` is not an attack this guest knows"))),
    }
}

/// Computes for a while without ever calling the host.
fn spin(millions: u64) -> u64 {
    (0..millions * 1_000_000).fold(1, |sum, step| black_box(sum ^ step).wrapping_mul(31))
}

/// Never returns; the addition after the call keeps it from becoming a loop.
#[allow(unconditional_recursion)]
fn descend(depth: u64) -> u64 {
    let frame = black_box([depth; 16]);
    descend(depth + 1) + frame[0]
}

/// Takes memory MiB by MiB and touches it.
fn fill(mib: usize) -> usize {
    let blocks: Vec<Vec<u8>> = (0..mib).map(|at| black_box(vec![at as u8 | 1; MIB])).collect();
    black_box(&blocks).iter().map(Vec::len).sum()
}

fn calls(count: u64) -> Result<Vec<u8>, Failure> {
    for _ in 0..count {
        kv::get("nothing")?;
    }
    Ok(b"ok".to_vec())
}

/// One argument of that many MiB, which the host has to take in before it can refuse it.
fn argument(mib: usize) -> Result<Vec<u8>, Failure> {
    let large = vec![b'x'; mib * MIB];
    let mut taken = Vec::new();
    // Again and again: each alone is within the guest's memory, all together are not within what it may hand over.
    for _ in 0..64 {
        taken.push(kv::put("large", &large).is_ok());
    }
    Ok(format!("{taken:?}").into_bytes())
}

/// Writes that the host has to keep until the call ends, from the same few bytes of the guest's own memory.
fn staged(mib: usize) -> Result<Vec<u8>, Failure> {
    let value = vec![b'x'; MIB];
    for key in 0..mib {
        kv::put(&format!("staged-{key}"), &value)?;
    }
    Ok(b"ok".to_vec())
}

/// Payloads small enough to stay in the host's memory, and many of them.
fn payloads(count: usize) -> Result<Vec<u8>, Failure> {
    let content = vec![b'x'; 250 << 10];
    let held: Result<Vec<_>, _> = (0..count).map(|_| payload::from_bytes("text/plain", &content)).collect();
    Ok(held?.len().to_string().into_bytes())
}

fn flood(lines: u64) -> Result<Vec<u8>, Failure> {
    let text = "x".repeat(8 << 10);
    for line in 0..lines {
        log::info!("{text}"; line = line, more = text);
    }
    Ok(b"ok".to_vec())
}

fn series(count: u64) -> Result<Vec<u8>, Failure> {
    let refused = (0..count).filter(|at| metrics::gauge(&format!("hostile_{at}"), &[], 1.0).is_err()).count();
    Ok(refused.to_string().into_bytes())
}

fn fetch(request: http::Request) -> Result<Vec<u8>, Failure> {
    let answer = request.send()?;
    let mut shown = format!("{} ", answer.status).into_bytes();
    shown.extend(answer.bytes()?);
    Ok(shown)
}

/// Leaves something in every place a plugin can keep things.
fn put(value: &str) -> Result<Vec<u8>, Failure> {
    kv::put("secret", value)?;
    objects::put_bytes("secret", "text/plain", value.as_bytes())?;
    log::info!("keeping {value}");
    Ok(b"ok".to_vec())
}

/// What can be found under a name and by listing, in every place.
fn get(name: &str) -> Result<Vec<u8>, Failure> {
    let mut found = Vec::new();
    for key in [name, "secret", "../secret", "victim/secret", "victim/hostile/secret"] {
        if let Ok(Some(entry)) = kv::get(key) {
            found.push(format!("kv {key}: {}", String::from_utf8_lossy(&entry.value)));
        }
        if let Ok(Some(object)) = objects::open(key) {
            found.push(format!("object {key}: {}", String::from_utf8_lossy(&object.bytes()?)));
        }
    }
    found.extend(kv::list_keys("", None, 1_000)?.into_iter().map(|key| format!("kv key {key}")));
    found.extend(objects::list("", None, 1_000)?.into_iter().map(|info| format!("object key {}", info.key)));
    Ok(found.join("\n").into_bytes())
}
