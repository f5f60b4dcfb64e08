//! Bytes from nowhere at every edge where strangers' bytes come in.
//!
//! A target takes bytes and panics when something happened that must not. It is run first on what is kept in
//! `tests/fuzz/<target>/`, then on mutations of that and of its seeds, for `NOETL_FUZZ_SECONDS` (a few when nobody says).
//! An input that makes it panic is written to the same folder under its digest: whoever commits it has its regression
//! test. A run is repeated with the seed it prints (`NOETL_FUZZ_SEED`).
//!
//! This is plain code on the stable compiler: no coverage guides it. What it lacks in depth it makes up for by running
//! with every change, against the real binary, on seeds that are near what is accepted.

mod api;
mod component;
mod manifest;
mod mutate;
mod values;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use mutate::Mutator;
use noetl_contract::Digest;

/// Seconds a target runs when nobody says.
const FEW: u64 = 5;

fn number_in(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

fn folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz").join(target)
}

fn kept(target: &str) -> Vec<Vec<u8>> {
    let entries = std::fs::read_dir(folder(target)).into_iter().flatten().flatten();
    let mut files: Vec<_> = entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    files.sort();
    files.iter().filter_map(|file| std::fs::read(file).ok()).collect()
}

fn first_seed() -> u64 {
    number_in("NOETL_FUZZ_SEED").unwrap_or_else(|| u64::from(std::process::id()) ^ 0x9e37_79b9_7f4a_7c15)
}

/// Runs a target until its time is over.
fn fuzz(target: &str, seeds: Vec<Vec<u8>>, words: &'static [&'static [u8]], check: impl FnMut(&[u8])) {
    run(target, first_seed(), seeds, words, check);
}

/// Runs a target that mostly waits, many times at once; each run has a seed of its own.
fn fuzz_at_once(
    target: &str,
    runs: u64,
    seeds: &[Vec<u8>],
    words: &'static [&'static [u8]],
    check: impl Fn(&[u8]) + Sync,
) {
    let seed = first_seed();
    std::thread::scope(|scope| {
        for number in 0..runs {
            // The lowest bit of a seed does not count.
            let (seed, check) = (seed.wrapping_add(2 * number), &check);
            scope.spawn(move || run(target, seed, seeds.to_vec(), words, check));
        }
    });
}

fn run(target: &str, seed: u64, seeds: Vec<Vec<u8>>, words: &'static [&'static [u8]], mut check: impl FnMut(&[u8])) {
    let kept = kept(target);
    for input in kept.iter().chain(&seeds) {
        try_one(target, input, &mut check);
    }
    let mut mutator = Mutator::new(seed, seeds.into_iter().chain(kept).collect(), words);
    let until = Instant::now() + Duration::from_secs(number_in("NOETL_FUZZ_SECONDS").unwrap_or(FEW));
    let mut tried = 0_u64;
    while Instant::now() < until {
        try_one(target, &mutator.next(), &mut check);
        tried += 1;
    }
    println!("{target}: {tried} inputs with NOETL_FUZZ_SEED={seed}");
}

fn try_one(target: &str, input: &[u8], check: &mut impl FnMut(&[u8])) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| check(input))) {
        let file = folder(target).join(&Digest::of(input).hex()[..16]);
        let _ = std::fs::create_dir_all(folder(target));
        std::fs::write(&file, input).expect("the input can be kept");
        eprintln!("{target}: the input is kept in {}", file.display());
        std::panic::resume_unwind(panic);
    }
}
