//! Cryptographically strong randomness, for plugins that hold the capability `random`.

use crate::bindings::noetl::random::random;

/// The host gives at most this much in one call.
const MOST_AT_ONCE: usize = 64 << 10;

/// Fill `buffer`, in as many host calls as its length takes.
pub fn fill(buffer: &mut [u8]) {
    for part in buffer.chunks_mut(MOST_AT_ONCE) {
        let length = u32::try_from(part.len()).expect("a part is at most 64 KiB");
        part.copy_from_slice(&random::bytes(length));
    }
}

/// `N` random bytes.
pub fn bytes<const N: usize>() -> [u8; N] {
    let mut buffer = [0; N];
    fill(&mut buffer);
    buffer
}

/// A random 64-bit number.
pub fn number() -> u64 {
    random::number()
}
