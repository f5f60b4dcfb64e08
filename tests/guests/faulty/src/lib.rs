//! Goes wrong in the way its input names, or answers `ok`.
//!
//! `panic:<message>` panics, `loop` never ends, `recurse` never returns, `alloc:<MiB>` takes memory, `output:<MiB>`
//! answers with that much, `hostcalls:<n>` calls the host that often, `fail:<code>` answers with a failure.

use std::hint::black_box;

use noetl_sdk::{Failure, log};

noetl_sdk::transform!(run);

const MIB: usize = 1 << 20;

fn run(input: Vec<u8>) -> Result<Vec<u8>, Failure> {
    let input = String::from_utf8(input)?;
    let (fault, detail) = input.split_once(':').unwrap_or((&input, ""));
    match fault {
        "ok" => Ok(b"ok".to_vec()),
        "panic" => panic!("{detail}"),
        "loop" => loop {
            black_box(());
        },
        "recurse" => Ok(descend(0).to_string().into_bytes()),
        "alloc" => Ok(allocate(detail.parse()?).to_string().into_bytes()),
        "output" => Ok(vec![b'x'; detail.parse::<usize>()? * MIB]),
        "hostcalls" => {
            for call in 0..detail.parse::<u64>()? {
                log::trace!("host call {call}");
            }
            Ok(b"ok".to_vec())
        }
        "fail" => Err(Failure::new(detail, "the input asked for this failure")),
        _ => Err(Failure::invalid_input(format_args!("`{fault}` is not a fault this guest knows"))),
    }
}

/// Never returns; the addition after the call keeps it from becoming a loop.
#[allow(unconditional_recursion)]
fn descend(depth: u64) -> u64 {
    let frame = black_box([depth; 16]);
    descend(depth + 1) + frame[0]
}

/// Takes memory MiB by MiB, touches it, and keeps it until the end.
fn allocate(mib: usize) -> usize {
    let blocks: Vec<Vec<u8>> = (0..mib).map(|at| black_box(vec![at as u8 | 1; MIB])).collect();
    black_box(&blocks).iter().map(Vec::len).sum()
}
