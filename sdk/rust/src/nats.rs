//! NATS, for plugins that hold `nats` (and `payload`, whose types it speaks in): values and objects in buckets, and
//! messages of JetStream.
//!
//! A [`Server`] says where and as whom; the host connects and keeps the connection. What a credential holds never enters
//! the guest.

use crate::Failure;
use crate::bindings::noetl::nats::nats::{self, NatsError};
pub use crate::bindings::noetl::nats::nats::{
    Entry, Message, ObjectDetails, Published, Server, Settlement, StreamState, Which,
};
use crate::payload::Payload;

/// Why NATS was not asked, or what it answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("not valid: {0}")]
    Invalid(String),
    #[error("{0}")]
    Credential(String),
    #[error("not permitted: {0}")]
    Denied(String),
    #[error("{0}")]
    NotFound(String),
    #[error("NATS did not answer in time")]
    Timeout,
    #[error("{0} bytes are too many")]
    TooLarge(u64),
    #[error("NATS cannot be reached: {0}")]
    Unavailable(String),
    #[error("NATS refused: {0}")]
    Refused(String),
}

impl From<NatsError> for Error {
    fn from(error: NatsError) -> Self {
        match error {
            NatsError::Invalid(text) => Self::Invalid(text),
            NatsError::Credential(text) => Self::Credential(text),
            NatsError::Denied(text) => Self::Denied(text),
            NatsError::NotFound(text) => Self::NotFound(text),
            NatsError::Timeout => Self::Timeout,
            NatsError::TooLarge(size) => Self::TooLarge(size),
            NatsError::Unavailable(text) => Self::Unavailable(text),
            NatsError::Refused(text) => Self::Refused(text),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Invalid(_) => Self::invalid_input(error),
            Error::Credential(_) => Self::new("credential", error),
            Error::Denied(_) => Self::new("denied", error),
            Error::NotFound(_) => Self::not_found(error),
            Error::Timeout => Self::retryable("timeout", error),
            Error::TooLarge(_) => Self::new("too_large", error),
            Error::Unavailable(_) => Self::retryable("connect", error),
            Error::Refused(_) => Self::new("nats", error),
        }
    }
}

pub fn kv_get(at: &Server, bucket: &str, key: &str) -> Result<Option<Entry>, Error> {
    Ok(nats::kv_get(at, bucket, key)?)
}

/// Keys that match a pattern with `*` and `>`, at most `limit`.
pub fn kv_keys(at: &Server, bucket: &str, pattern: Option<&str>, limit: u32) -> Result<Vec<String>, Error> {
    Ok(nats::kv_keys(at, bucket, pattern, limit)?)
}

/// Answers with the revision.
pub fn kv_put(at: &Server, bucket: &str, key: &str, value: &[u8]) -> Result<u64, Error> {
    Ok(nats::kv_put(at, bucket, key, value)?)
}

pub fn kv_delete(at: &Server, bucket: &str, key: &str) -> Result<(), Error> {
    Ok(nats::kv_delete(at, bucket, key)?)
}

/// Removes the key with its history.
pub fn kv_purge(at: &Server, bucket: &str, key: &str) -> Result<(), Error> {
    Ok(nats::kv_purge(at, bucket, key)?)
}

pub fn object_get(at: &Server, bucket: &str, name: &str) -> Result<Option<Payload>, Error> {
    Ok(nats::object_get(at, bucket, name)?)
}

pub fn object_info(at: &Server, bucket: &str, name: &str) -> Result<Option<ObjectDetails>, Error> {
    Ok(nats::object_info(at, bucket, name)?)
}

pub fn object_list(at: &Server, bucket: &str, limit: u32) -> Result<Vec<ObjectDetails>, Error> {
    Ok(nats::object_list(at, bucket, limit)?)
}

pub fn object_put(at: &Server, bucket: &str, name: &str, content: &Payload) -> Result<ObjectDetails, Error> {
    Ok(nats::object_put(at, bucket, name, content)?)
}

pub fn object_delete(at: &Server, bucket: &str, name: &str) -> Result<(), Error> {
    Ok(nats::object_delete(at, bucket, name)?)
}

/// Answers when the stream has the message.
pub fn publish(at: &Server, subject: &str, headers: &[(String, String)], data: &[u8]) -> Result<Published, Error> {
    Ok(nats::publish(at, subject, headers, data)?)
}

/// What comes within `timeout_ms`, at most `batch` messages.
pub fn fetch(at: &Server, stream: &str, consumer: &str, batch: u32, timeout_ms: u32) -> Result<Vec<Message>, Error> {
    Ok(nats::fetch(at, stream, consumer, batch, timeout_ms)?)
}

/// Answers when the server has noted all of them.
pub fn settle(at: &Server, ack_ids: &[String], how: Settlement) -> Result<(), Error> {
    Ok(nats::settle(at, ack_ids, how)?)
}

pub fn get_message(at: &Server, stream: &str, which: &Which) -> Result<Option<Message>, Error> {
    Ok(nats::get_message(at, stream, which)?)
}

pub fn stream_info(at: &Server, stream: &str) -> Result<StreamState, Error> {
    Ok(nats::stream_info(at, stream)?)
}
