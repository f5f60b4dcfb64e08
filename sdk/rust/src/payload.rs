//! Bulk data by reference: read a part, write a new one, or pass it on without looking.
//!
//! [`Reader`] and [`Writer`] are the standard library's `Read` and `Write` over host calls. Both gather small pieces,
//! because every host call is counted and costs far more than a copy. Moving one payload into another is
//! [`Writer::splice`], which happens in the host.

use std::io;

use crate::Failure;
pub use crate::bindings::noetl::payload::payload::Payload;
use crate::bindings::noetl::payload::payload::{PayloadError, Writer as HostWriter};

/// What a reader fetches and a writer gathers for one host call.
const CHUNK: usize = 1 << 20;

/// The host gives at most this much in one read.
const MOST_AT_ONCE: u64 = 16 << 20;

/// Why bytes were not read or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("range is not valid: {0}")]
    InvalidRange(String),
    #[error("payload of {0} bytes is too large: raise `limits.host_mb` in plugin.toml or write less")]
    TooLarge(u64),
    #[error("the payload store did not answer: {0}; try again")]
    Unavailable(String),
}

impl From<PayloadError> for Error {
    fn from(error: PayloadError) -> Self {
        match error {
            PayloadError::InvalidRange(range) => Self::InvalidRange(range),
            PayloadError::TooLarge(size) => Self::TooLarge(size),
            PayloadError::Unavailable(reason) => Self::Unavailable(reason),
        }
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        io::Error::other(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::InvalidRange(_) => Self::new("invalid_range", error),
            Error::TooLarge(_) => Self::new("too_large", error),
            Error::Unavailable(_) => Self::unavailable(error),
        }
    }
}

impl Payload {
    /// Read from the start, a chunk at a time.
    pub fn reader(&self) -> Reader<'_> {
        Reader { payload: self, size: self.size(), offset: 0, chunk: Vec::new(), taken: 0 }
    }

    /// All of it, in the guest's memory. Mind `limits.memory_mb`.
    pub fn bytes(&self) -> Result<Vec<u8>, Error> {
        let size = self.size();
        if size <= MOST_AT_ONCE {
            return Ok(self.read(0, length(size))?);
        }
        let mut all = Vec::with_capacity(usize::try_from(size).map_err(|_| Error::TooLarge(size))?);
        let mut offset = 0;
        while offset < size {
            let part = self.read(offset, length((size - offset).min(MOST_AT_ONCE)))?;
            if part.is_empty() {
                return Err(Error::Unavailable(format!("the payload ended at {offset} of {size} bytes")));
            }
            offset += part.len() as u64;
            all.extend_from_slice(&part);
        }
        Ok(all)
    }
}

/// Make a payload of bytes that are in the guest's memory.
pub fn from_bytes(media_type: &str, bytes: &[u8]) -> Result<Payload, Error> {
    let mut writer = Writer::new(media_type);
    writer.append(bytes)?;
    writer.finish()
}

/// A payload read in order.
#[derive(Debug)]
pub struct Reader<'a> {
    payload: &'a Payload,
    size: u64,
    /// Where the next chunk begins.
    offset: u64,
    chunk: Vec<u8>,
    /// How much of the chunk was handed out.
    taken: usize,
}

impl io::BufRead for Reader<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.taken == self.chunk.len() && self.offset < self.size {
            let wanted = (self.size - self.offset).min(CHUNK as u64);
            self.chunk = self.payload.read(self.offset, length(wanted)).map_err(Error::from)?;
            self.taken = 0;
            self.offset += self.chunk.len() as u64;
            if self.chunk.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(&self.chunk[self.taken..])
    }

    fn consume(&mut self, amount: usize) {
        self.taken = (self.taken + amount).min(self.chunk.len());
    }
}

impl io::Read for Reader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let available = io::BufRead::fill_buf(self)?;
        let amount = available.len().min(buffer.len());
        buffer[..amount].copy_from_slice(&available[..amount]);
        io::BufRead::consume(self, amount);
        Ok(amount)
    }
}

/// A new payload being written. Dropped before [`finish`](Writer::finish) it leaves nothing behind.
#[derive(Debug)]
pub struct Writer {
    host: HostWriter,
    gathered: Vec<u8>,
}

impl Writer {
    pub fn new(media_type: &str) -> Self {
        Self { host: HostWriter::new(media_type), gathered: Vec::new() }
    }

    /// Append bytes.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if self.gathered.len() + bytes.len() > CHUNK {
            self.send_gathered()?;
        }
        if bytes.len() >= CHUNK {
            return Ok(self.host.write(bytes)?);
        }
        self.gathered.extend_from_slice(bytes);
        Ok(())
    }

    /// Append a range of another payload without it entering the guest.
    pub fn splice(&mut self, source: &Payload, offset: u64, length: u64) -> Result<(), Error> {
        self.send_gathered()?;
        Ok(self.host.splice(source, offset, length)?)
    }

    /// Seal what was written.
    pub fn finish(mut self) -> Result<Payload, Error> {
        self.send_gathered()?;
        Ok(HostWriter::finish(self.host)?)
    }

    fn send_gathered(&mut self) -> Result<(), Error> {
        if !self.gathered.is_empty() {
            self.host.write(&self.gathered)?;
            self.gathered.clear();
        }
        Ok(())
    }
}

impl io::Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.append(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(self.send_gathered()?)
    }
}

fn length(bytes: u64) -> u32 {
    u32::try_from(bytes).expect("a part is at most 16 MiB")
}
