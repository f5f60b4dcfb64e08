//! How one segment lies on disk.
//!
//! All numbers are little-endian; a frame is padded with zeros to a multiple of eight bytes.
//!
//! | bytes | what |
//! |---|---|
//! | 0..4 | length of the whole frame; 0 means nothing was written here |
//! | 4..8 | crc32c of bytes 8.., started with the volume's salt |
//! | 8..16 | position of this frame in the log |
//! | 16..24 | position at which the write that carried this frame began |
//! | 24..32 | version in the stream |
//! | 32..40 | time, milliseconds since 1970 |
//! | 40..48 | `back`: position of the stream's segment before this one, 0 for none |
//! | 48..56 | `jump`: position of an earlier segment of the stream (see `skips`), 0 for none |
//! | 56..60 | length of the body |
//! | 60..62 | how many segments of the same commit follow |
//! | 62 | length of the stream's name |
//! | 63 | length of the key plus one; 0 for no key |
//! | 64..96 | hash of the stream's segment before this one |
//! | 96..128 | hash of this segment |
//! | 128.. | stream, key, body |
//!
//! The position inside the frame and the salt in its checksum mean that bytes a client put into a body can
//! never pass for a frame: the client does not know the salt.

use noetl_contract::Digest;
use sha2::{Digest as _, Sha256};

/// Bytes before the stream's name.
pub const HEADER: usize = 128;
/// Frames start at multiples of this.
pub const ALIGN: usize = 8;

/// The fixed part of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    pub position: u64,
    pub batch: u64,
    pub version: u64,
    pub time_ms: u64,
    pub back: u64,
    pub jump: u64,
    pub remaining: u16,
    pub previous: [u8; 32],
    pub hash: [u8; 32],
    length: u32,
    body: u32,
    stream: u8,
    key: u8,
}

/// A whole frame, checked, borrowed from the bytes it was read from.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    pub header: Header,
    pub stream: &'a str,
    pub key: Option<&'a str>,
    pub body: &'a [u8],
}

/// Why there is no frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoFrame {
    /// Never written, or zeroed.
    Blank,
    Broken(&'static str),
}

/// What the writer knows about a segment before it is laid out.
pub struct NewFrame<'a> {
    pub position: u64,
    pub batch: u64,
    pub version: u64,
    pub time_ms: u64,
    pub back: u64,
    pub jump: u64,
    pub remaining: u16,
    pub previous: [u8; 32],
    pub stream: &'a str,
    pub key: Option<&'a str>,
    pub body: &'a [u8],
}

pub fn frame_len(stream: usize, key: Option<usize>, body: usize) -> usize {
    (HEADER + stream + key.unwrap_or(0) + body).next_multiple_of(ALIGN)
}

impl NewFrame<'_> {
    /// Appends the frame to `out` and answers its hash. Name, key and body have been checked against the
    /// limits by then.
    pub fn encode(&self, salt: u32, out: &mut Vec<u8>) -> [u8; 32] {
        let hash = self.hash();
        let start = out.len();
        let length = frame_len(self.stream.len(), self.key.map(str::len), self.body.len());
        out.extend_from_slice(&(length as u32).to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        for number in [self.position, self.batch, self.version, self.time_ms, self.back, self.jump] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&(self.body.len() as u32).to_le_bytes());
        out.extend_from_slice(&self.remaining.to_le_bytes());
        out.push(self.stream.len() as u8);
        out.push(self.key.map_or(0, |key| key.len() as u8 + 1));
        out.extend_from_slice(&self.previous);
        out.extend_from_slice(&hash);
        out.extend_from_slice(self.stream.as_bytes());
        out.extend_from_slice(self.key.unwrap_or_default().as_bytes());
        out.extend_from_slice(self.body);
        out.resize(start + length, 0);
        let crc = crc32c::crc32c_append(salt, &out[start + 8..]);
        out[start + 4..start + 8].copy_from_slice(&crc.to_le_bytes());
        hash
    }

    fn hash(&self) -> [u8; 32] {
        chain_hash(self.position, self.version, self.time_ms, self.stream, self.key, &self.previous, self.body)
    }
}

/// The link of a stream's chain: everything a reader is told about a segment.
fn chain_hash(
    position: u64,
    version: u64,
    time_ms: u64,
    stream: &str,
    key: Option<&str>,
    previous: &[u8; 32],
    body: &[u8],
) -> [u8; 32] {
    let mut fixed = [0; 58];
    fixed[..8].copy_from_slice(&position.to_le_bytes());
    fixed[8..16].copy_from_slice(&version.to_le_bytes());
    fixed[16..24].copy_from_slice(&time_ms.to_le_bytes());
    fixed[24..56].copy_from_slice(previous);
    fixed[56] = stream.len() as u8;
    fixed[57] = key.map_or(0, |key| key.len() as u8 + 1);
    let mut hasher = Sha256::new();
    hasher.update(fixed);
    hasher.update(stream.as_bytes());
    hasher.update(key.unwrap_or_default().as_bytes());
    hasher.update(body);
    hasher.finalize().into()
}

impl Header {
    /// Reads the fixed part without judging it; `bytes` has at least [`HEADER`] of them.
    pub fn decode(bytes: &[u8]) -> Self {
        let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        Self {
            length: word(0),
            position: long(8),
            batch: long(16),
            version: long(24),
            time_ms: long(32),
            back: long(40),
            jump: long(48),
            body: word(56),
            remaining: u16::from_le_bytes([bytes[60], bytes[61]]),
            stream: bytes[62],
            key: bytes[63],
            previous: bytes[64..96].try_into().expect("32 bytes"),
            hash: bytes[96..128].try_into().expect("32 bytes"),
        }
    }

    /// Length of the whole frame.
    pub fn frame_len(&self) -> usize {
        self.length as usize
    }

    fn key_len(&self) -> Option<usize> {
        (self.key > 0).then(|| self.key as usize - 1)
    }

    /// The lengths agree with each other.
    pub fn is_sound(&self) -> bool {
        self.frame_len() == frame_len(self.stream as usize, self.key_len(), self.body as usize)
    }
}

impl<'a> Frame<'a> {
    /// The frame at the start of `bytes`, which was read from `position`.
    pub fn parse(bytes: &'a [u8], position: u64, salt: u32) -> Result<Self, NoFrame> {
        if bytes.len() < HEADER {
            let blank = bytes.iter().all(|byte| *byte == 0);
            return Err(if blank { NoFrame::Blank } else { NoFrame::Broken("the file ends inside a frame") });
        }
        if bytes[..4] == [0; 4] {
            return Err(NoFrame::Blank);
        }
        let header = Header::decode(bytes);
        if header.position != position {
            return Err(NoFrame::Broken("the frame says it belongs elsewhere"));
        }
        if !header.is_sound() || header.frame_len() > bytes.len() {
            return Err(NoFrame::Broken("the lengths in the frame do not agree"));
        }
        let bytes = &bytes[..header.frame_len()];
        let crc = u32::from_le_bytes(bytes[4..8].try_into().expect("four bytes"));
        if crc32c::crc32c_append(salt, &bytes[8..]) != crc {
            return Err(NoFrame::Broken("the checksum does not match"));
        }
        let (stream, rest) = bytes[HEADER..].split_at(header.stream as usize);
        let (key, rest) = rest.split_at(header.key_len().unwrap_or(0));
        let text = |raw| std::str::from_utf8(raw).map_err(|_| NoFrame::Broken("a name is not text"));
        Ok(Self {
            header,
            stream: text(stream)?,
            key: header.key_len().map(|_| text(key)).transpose()?,
            body: &rest[..header.body as usize],
        })
    }

    /// The hash over what the frame holds is the one it carries.
    pub fn hash_matches(&self) -> bool {
        let Header { position, version, time_ms, previous, hash, .. } = self.header;
        chain_hash(position, version, time_ms, self.stream, self.key, &previous, self.body) == hash
    }

    /// Where the body lies within the frame's bytes.
    pub fn body_range(&self) -> std::ops::Range<usize> {
        let start = HEADER + self.header.stream as usize + self.header.key_len().unwrap_or(0);
        start..start + self.body.len()
    }
}

/// What a stream's name is looked up by. 128 bits of sha256: nobody can make two names meet.
pub fn stream_hash(stream: &str) -> u128 {
    short(Sha256::new().chain_update([0]).chain_update(stream))
}

/// What an idempotency key is looked up by.
pub fn key_hash(stream: &str, key: &str) -> u128 {
    short(Sha256::new().chain_update([1, stream.len() as u8]).chain_update(stream).chain_update(key))
}

fn short(hasher: Sha256) -> u128 {
    let digest = Digest::from_bytes(hasher.finalize().into());
    u128::from_be_bytes(digest.as_bytes()[..16].try_into().expect("16 bytes"))
}
