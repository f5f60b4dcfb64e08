//! `noetl:payload`: bulk data by reference.
//!
//! A payload is a handle on bytes that live in the host: in memory while they are few, in a temporary
//! file of the payload store when they are many, or in the store itself. Moving one into another (an HTTP
//! answer into an object, an object into another) never copies it through a guest, and where the store
//! already has the bytes it does not copy at all. A temporary file that nothing keeps goes with its handle; how many bytes and
//! files a call has in them at once is bounded ([`temporary`](super::temporary)).

use std::io;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::stream::{self, BoxStream, StreamExt};
use noetl_contract::Digest;
use noetl_store::payloads::{PayloadRef, PayloadWriter, Payloads, SealedPayload};
use wasmtime::component::{Resource, ResourceTableError};

use super::temporary::{Counted, Temporary};
use crate::bindings::noetl::payload::payload as wit;
use crate::state::CallState;

/// Most bytes one read hands to a guest.
const LARGEST_READ: u32 = 16 << 20;
/// Up to this size a payload stays in memory.
const IN_MEMORY: usize = 256 << 10;
/// Step of a copy inside the host.
const CHUNK: u64 = 1 << 20;
const UNKNOWN_TYPE: &str = "application/octet-stream";

/// A guest's handle on bytes.
#[derive(Clone)]
pub struct Payload {
    place: Place,
    media_type: String,
    /// The file it is in, if it is one of the call's own.
    counted: Option<Arc<Counted>>,
}

#[derive(Clone)]
enum Place {
    Memory(Bytes),
    Sealed(Arc<SealedPayload>),
    Stored(PayloadRef),
}

impl Payload {
    fn at(place: Place, media_type: impl Into<String>) -> Self {
        Self { place, media_type: media_type.into(), counted: None }
    }

    pub fn memory(bytes: Bytes, media_type: impl Into<String>) -> Self {
        Self::at(Place::Memory(bytes), media_type)
    }

    pub fn sealed(payload: SealedPayload, media_type: impl Into<String>) -> Self {
        Self::at(Place::Sealed(Arc::new(payload)), media_type)
    }

    pub fn stored(payload: PayloadRef, media_type: impl Into<String>) -> Self {
        Self::at(Place::Stored(payload), media_type)
    }

    /// Counts the file it is in as one of the call's; an error says that there are too many.
    pub(crate) fn counted(mut self, temporary: &Temporary) -> Result<Self, String> {
        if let Place::Sealed(sealed) = &self.place {
            let mut counted = temporary.file()?;
            // It is there already, and was bounded when it was made.
            counted.grow(sealed.size().min(temporary.left()));
            self.counted = Some(Arc::new(counted));
        }
        Ok(self)
    }

    pub fn size(&self) -> u64 {
        match &self.place {
            Place::Memory(bytes) => bytes.len() as u64,
            Place::Sealed(sealed) => sealed.size(),
            Place::Stored(payload) => payload.size,
        }
    }

    pub fn media_type(&self) -> &str {
        &self.media_type
    }

    /// Bytes of it that are in the host's memory.
    fn in_memory(&self) -> u64 {
        match &self.place {
            Place::Memory(bytes) => bytes.len() as u64,
            Place::Sealed(_) | Place::Stored(_) => 0,
        }
    }

    pub fn digest(&self) -> Digest {
        match &self.place {
            Place::Memory(bytes) => Digest::of(bytes),
            Place::Sealed(sealed) => sealed.digest(),
            Place::Stored(payload) => payload.digest,
        }
    }

    /// A range, cut to what is there.
    pub async fn read(&self, payloads: &Payloads, offset: u64, length: u64) -> io::Result<Bytes> {
        let end = offset.saturating_add(length).min(self.size());
        let start = offset.min(end);
        match &self.place {
            Place::Memory(bytes) => Ok(bytes.slice(start as usize..end as usize)),
            Place::Sealed(sealed) => sealed.read_range(start, end - start).await,
            Place::Stored(payload) => {
                payloads.read_range(&payload.digest, start, end - start).await.map_err(io::Error::other)
            }
        }
    }

    /// Make the bytes durable.
    pub async fn keep(&self, payloads: &Payloads) -> io::Result<PayloadRef> {
        match &self.place {
            Place::Memory(bytes) => payloads.put_bytes(bytes.clone()).await,
            Place::Sealed(sealed) => sealed.keep().await,
            Place::Stored(payload) => Ok(*payload),
        }
    }

    /// All bytes, a step at a time.
    pub fn stream(self, payloads: Payloads) -> BoxStream<'static, io::Result<Bytes>> {
        let size = self.size();
        stream::unfold((self, payloads, 0), move |(payload, payloads, offset)| async move {
            if offset >= size {
                return None;
            }
            let read = payload.read(&payloads, offset, CHUNK).await;
            let next = match &read {
                Ok(bytes) if !bytes.is_empty() => offset + bytes.len() as u64,
                // An error, or a file shorter than its record, ends the stream after being told.
                _ => size,
            };
            Some((read, (payload, payloads, next)))
        })
        .boxed()
    }
}

/// Collects bytes for a new payload.
pub struct Writer {
    media_type: String,
    memory: BytesMut,
    spilled: Option<PayloadWriter>,
    size: u64,
    most: u64,
    temporary: Option<Temporary>,
    counted: Option<Counted>,
}

/// Why bytes could not be added.
#[derive(Debug)]
pub enum WriteError {
    TooLarge(u64),
    Io(io::Error),
}

impl Writer {
    pub fn new(media_type: impl Into<String>, most: u64) -> Self {
        // It ends up in headers, where a control character would break the answer that carries it.
        let visible = |text: &String| text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        let media_type = Some(media_type.into()).filter(|text| !text.is_empty() && text.len() <= 200 && visible(text));
        Self {
            media_type: media_type.unwrap_or_else(|| UNKNOWN_TYPE.to_owned()),
            memory: BytesMut::new(),
            spilled: None,
            size: 0,
            most,
            temporary: None,
            counted: None,
        }
    }

    /// As one of a call's own, whose files are counted.
    pub(crate) fn of(self, temporary: &Temporary) -> Self {
        Self { temporary: Some(temporary.clone()), ..self }
    }

    pub async fn write(&mut self, payloads: &Payloads, bytes: &[u8]) -> Result<(), WriteError> {
        self.size = self.size.saturating_add(bytes.len() as u64);
        if self.size > self.most {
            return Err(WriteError::TooLarge(self.size));
        }
        if self.spilled.is_none() && self.memory.len() + bytes.len() <= IN_MEMORY {
            self.memory.extend_from_slice(bytes);
            return Ok(());
        }
        if self.spilled.is_none() {
            let counted = self.temporary.as_ref().map(Temporary::file).transpose();
            self.counted = counted.map_err(|error| WriteError::Io(io::Error::other(error)))?;
            self.count(self.memory.len() as u64)?;
            let mut file = payloads.writer().await.map_err(WriteError::Io)?;
            file.write(&self.memory).await.map_err(WriteError::Io)?;
            self.memory = BytesMut::new();
            self.spilled = Some(file);
        }
        self.count(bytes.len() as u64)?;
        match &mut self.spilled {
            Some(file) => file.write(bytes).await.map_err(WriteError::Io),
            None => Ok(()),
        }
    }

    fn count(&mut self, bytes: u64) -> Result<(), WriteError> {
        let fits = self.counted.as_mut().is_none_or(|counted| counted.grow(bytes));
        if fits { Ok(()) } else { Err(WriteError::TooLarge(self.size)) }
    }

    pub async fn finish(self) -> io::Result<Payload> {
        let place = match self.spilled {
            Some(file) => Place::Sealed(Arc::new(file.seal().await?)),
            None => Place::Memory(self.memory.freeze()),
        };
        Ok(Payload { place, media_type: self.media_type, counted: self.counted.map(Arc::new) })
    }
}

impl CallState {
    /// Hands a payload to the guest.
    pub(crate) fn hand_out(&mut self, payload: Payload) -> wasmtime::Result<Resource<Payload>> {
        self.meter.hold(payload.in_memory())?;
        Ok(self.table.push(payload)?)
    }

    /// Takes one back for good.
    pub(crate) fn take_in(&mut self, handle: Resource<Payload>) -> Result<Payload, ResourceTableError> {
        let payload = self.table.delete(handle)?;
        self.meter.release(payload.in_memory());
        Ok(payload)
    }

    /// Counts what a writer has in memory now, after it had `before`.
    fn count_writer(&mut self, writer: &Resource<Writer>, before: usize) -> wasmtime::Result<()> {
        let after = self.table.get(writer)?.memory.len();
        self.meter.release(before.saturating_sub(after) as u64);
        Ok(self.meter.hold(after.saturating_sub(before) as u64)?)
    }
}

fn unavailable(error: io::Error) -> wit::PayloadError {
    wit::PayloadError::Unavailable(error.to_string())
}

async fn copy(
    writer: &mut Writer,
    payloads: &Payloads,
    source: &Payload,
    range: std::ops::Range<u64>,
) -> Result<(), wit::PayloadError> {
    let mut at = range.start;
    while at < range.end {
        let bytes = source.read(payloads, at, CHUNK.min(range.end - at)).await.map_err(unavailable)?;
        if bytes.is_empty() {
            return Err(wit::PayloadError::Unavailable("the payload ended early".into()));
        }
        writer.write(payloads, &bytes).await.map_err(write_error)?;
        at += bytes.len() as u64;
    }
    Ok(())
}

fn write_error(error: WriteError) -> wit::PayloadError {
    match error {
        WriteError::TooLarge(size) => wit::PayloadError::TooLarge(size),
        WriteError::Io(error) => unavailable(error),
    }
}

impl wit::HostPayload for CallState {
    async fn size(&mut self, this: Resource<Payload>) -> wasmtime::Result<u64> {
        self.charge(0)?;
        Ok(self.table.get(&this)?.size())
    }

    async fn media_type(&mut self, this: Resource<Payload>) -> wasmtime::Result<String> {
        self.charge(0)?;
        Ok(self.table.get(&this)?.media_type().to_owned())
    }

    async fn digest(&mut self, this: Resource<Payload>) -> wasmtime::Result<String> {
        self.charge(0)?;
        Ok(self.table.get(&this)?.digest().hex())
    }

    async fn read(
        &mut self,
        this: Resource<Payload>,
        offset: u64,
        length: u32,
    ) -> wasmtime::Result<Result<Vec<u8>, wit::PayloadError>> {
        self.charge(0)?;
        if length > LARGEST_READ {
            let text = format!("{length} bytes at once; the most is {LARGEST_READ}");
            return Ok(Err(wit::PayloadError::InvalidRange(text)));
        }
        let payload = self.table.get(&this)?;
        if offset > payload.size() {
            let text = format!("offset {offset} is beyond the end at {}", payload.size());
            return Ok(Err(wit::PayloadError::InvalidRange(text)));
        }
        let read = payload.read(&self.drivers.payloads, offset, u64::from(length)).await;
        Ok(read.map(|bytes| bytes.to_vec()).map_err(unavailable))
    }

    async fn drop(&mut self, this: Resource<Payload>) -> wasmtime::Result<()> {
        self.take_in(this)?;
        Ok(())
    }
}

impl wit::HostWriter for CallState {
    async fn new(&mut self, media_type: String) -> wasmtime::Result<Resource<Writer>> {
        self.charge(media_type.len())?;
        Ok(self.table.push(Writer::new(media_type, self.drivers.max_payload).of(&self.temporary))?)
    }

    async fn write(
        &mut self,
        this: Resource<Writer>,
        bytes: Vec<u8>,
    ) -> wasmtime::Result<Result<(), wit::PayloadError>> {
        // Bytes on their way to a payload are bounded by the payload's own limit, not by `host_mb`.
        self.charge(0)?;
        let writer = self.table.get_mut(&this)?;
        let before = writer.memory.len();
        let written = writer.write(&self.drivers.payloads, &bytes).await.map_err(write_error);
        self.count_writer(&this, before)?;
        Ok(written)
    }

    async fn splice(
        &mut self,
        this: Resource<Writer>,
        source: Resource<Payload>,
        offset: u64,
        length: u64,
    ) -> wasmtime::Result<Result<(), wit::PayloadError>> {
        self.charge(0)?;
        let source = self.table.get(&source)?.clone();
        let end = offset.saturating_add(length).min(source.size());
        let drivers = self.drivers.clone();
        let writer = self.table.get_mut(&this)?;
        let before = writer.memory.len();
        let copied = copy(writer, &drivers.payloads, &source, offset..end).await;
        self.count_writer(&this, before)?;
        Ok(copied)
    }

    async fn finish(
        &mut self,
        this: Resource<Writer>,
    ) -> wasmtime::Result<Result<Resource<Payload>, wit::PayloadError>> {
        self.charge(0)?;
        let writer = self.table.delete(this)?;
        self.meter.release(writer.memory.len() as u64);
        match writer.finish().await {
            Ok(payload) => Ok(Ok(self.hand_out(payload)?)),
            Err(error) => Ok(Err(unavailable(error))),
        }
    }

    async fn drop(&mut self, this: Resource<Writer>) -> wasmtime::Result<()> {
        let writer = self.table.delete(this)?;
        self.meter.release(writer.memory.len() as u64);
        Ok(())
    }
}

impl wit::Host for CallState {}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn files_of_a_call_are_bounded_together_and_given_back_with_their_handles() {
        let folder = tempfile::tempdir().expect("a folder");
        let payloads = Payloads::open(folder.path()).expect("a store");
        let temporary = Temporary::new(1 << 20);
        let write = async |size: usize| {
            let mut writer = Writer::new("text/plain", u64::MAX).of(&temporary);
            for piece in vec![b'x'; size].chunks(100_000) {
                writer.write(&payloads, piece).await?;
            }
            writer.finish().await.map_err(WriteError::Io)
        };
        let first = write(600_000).await.expect("there is room");
        assert!(matches!(write(600_000).await, Err(WriteError::TooLarge(_))));
        let copy = first.clone();
        drop(first);
        assert!(write(600_000).await.is_err(), "a handle of it is still there");
        drop(copy);
        write(600_000).await.expect("there is room again");
        // What is small is memory, which is counted as that.
        let small: Vec<Payload> = futures::future::join_all((0..100).map(|_| write(1_000)))
            .await
            .into_iter()
            .map(|written| written.expect("no file"))
            .collect();
        let files = futures::future::join_all((0..3).map(|_| write(300_000))).await;
        assert!(files.iter().all(Result::is_ok) && small.len() == 100);
        assert!(matches!(write(300_000).await, Err(WriteError::TooLarge(_))));
    }
}
