//! Objects, streamed in both directions.

use std::io;

use async_nats::jetstream::object_store::{InfoErrorKind, ObjectInfo, ObjectStore};
use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use tokio_util::io::{ReaderStream, StreamReader};

use super::messages::milliseconds;
use super::{Nats, NatsError};

/// About as many bytes as come around a piece of an object, and as say what an object is.
const AROUND: u64 = 512;
const DETAILS: u64 = 4 << 10;

/// The bytes of an object on their way.
pub type Bytestream = BoxStream<'static, io::Result<Bytes>>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectDetails {
    pub name: String,
    pub size: u64,
    pub chunks: u64,
    pub digest: Option<String>,
    /// Milliseconds since 1970.
    pub modified_ms: Option<u64>,
}

impl From<ObjectInfo> for ObjectDetails {
    fn from(info: ObjectInfo) -> Self {
        Self {
            name: info.name,
            size: info.size as u64,
            chunks: info.chunks as u64,
            digest: info.digest,
            modified_ms: info.modified.map(milliseconds),
        }
    }
}

impl Nats {
    async fn object_bucket(&self, bucket: &str) -> Result<ObjectStore, NatsError> {
        let opened = self.jetstream.get_object_store(bucket).await;
        opened.map_err(|error| NatsError::of(&format!("open the bucket `{bucket}`"), &error))
    }

    pub async fn object_info(&self, bucket: &str, name: &str) -> Result<Option<ObjectDetails>, NatsError> {
        match self.object_bucket(bucket).await?.info(name).await {
            Ok(info) => Ok(Some(info).filter(|info| !info.deleted).map(ObjectDetails::from)),
            Err(error) if error.kind() == InfoErrorKind::NotFound => Ok(None),
            Err(error) => Err(NatsError::of(&format!("look at `{name}`"), &error)),
        }
    }

    /// The bytes, and a failure at the end if they are not those that were written.
    pub async fn object_get(&self, bucket: &str, name: &str) -> Result<Option<Bytestream>, NatsError> {
        if self.object_info(bucket, name).await?.is_none() {
            return Ok(None);
        }
        let object = self.object_bucket(bucket).await?.get(name).await;
        let object = object.map_err(|error| NatsError::of(&format!("read `{name}`"), &error))?;
        let allowance = self.relay.allowance.clone();
        let counted = ReaderStream::new(object).inspect_ok(move |piece| allowance.taken(piece.len() as u64 + AROUND));
        Ok(Some(counted.boxed()))
    }

    pub async fn object_put(&self, bucket: &str, name: &str, bytes: Bytestream) -> Result<ObjectDetails, NatsError> {
        let store = self.object_bucket(bucket).await?;
        let put = store.put(name, &mut StreamReader::new(bytes)).await;
        put.map(ObjectDetails::from).map_err(|error| NatsError::of(&format!("write `{name}`"), &error))
    }

    /// Deleting what is not there is no error.
    pub async fn object_delete(&self, bucket: &str, name: &str) -> Result<(), NatsError> {
        if self.object_info(bucket, name).await?.is_none() {
            return Ok(());
        }
        let deleted = self.object_bucket(bucket).await?.delete(name).await;
        deleted.map_err(|error| NatsError::of(&format!("delete `{name}`"), &error))
    }

    pub async fn object_list(&self, bucket: &str, limit: usize) -> Result<Vec<ObjectDetails>, NatsError> {
        let failed = |error: &dyn std::fmt::Display| NatsError::of(&format!("list the objects of `{bucket}`"), error);
        let mut list = self.object_bucket(bucket).await?.list().await.map_err(|error| failed(&error))?;
        let mut found = Vec::new();
        while let Some(info) = list.next().await {
            let info = info.map_err(|error| failed(&error))?;
            self.relay.allowance.taken(DETAILS);
            if !info.deleted {
                found.push(info.into());
            }
            if found.len() == limit {
                break;
            }
        }
        Ok(found)
    }
}
