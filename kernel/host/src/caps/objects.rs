//! `noetl:objects`: named payloads of one (tenant, plugin).

use noetl_store::index::ObjectInfo;
use noetl_store::payloads::PayloadRef;
use serde_json::json;
use wasmtime::component::Resource;

use super::payload::Payload;
use crate::bindings::noetl::objects::objects as wit;
use crate::state::CallState;

const LONGEST_KEY: usize = 1024;
const MOST_KEYS: u32 = 1_000;

fn check_key(key: &str) -> Result<(), wit::ObjectError> {
    let bad_segment = key.split('/').any(|segment| matches!(segment, "" | "." | ".."));
    if bad_segment || key.len() > LONGEST_KEY {
        let shown: String = key.chars().take(80).collect();
        return Err(wit::ObjectError::InvalidKey(shown));
    }
    Ok(())
}

fn unavailable(error: impl std::fmt::Display) -> wit::ObjectError {
    wit::ObjectError::Unavailable(error.to_string())
}

fn info(object: ObjectInfo) -> wit::ObjectInfo {
    wit::ObjectInfo { key: object.key, size: object.size, digest: object.digest.hex(), media_type: object.media_type }
}

impl CallState {
    pub(crate) async fn open_live(
        &mut self,
        key: String,
    ) -> wasmtime::Result<Result<Option<Resource<Payload>>, wit::ObjectError>> {
        self.charge(key.len())?;
        if let Err(error) = check_key(&key) {
            return Ok(Err(error));
        }
        match self.drivers.index.object_get(&self.namespace(), &key) {
            Err(error) => Ok(Err(unavailable(error))),
            Ok(None) => Ok(Ok(None)),
            Ok(Some(object)) => {
                let stored = PayloadRef { digest: object.digest, size: object.size };
                Ok(Ok(Some(self.hand_out(Payload::stored(stored, object.media_type))?)))
            }
        }
    }

    pub(crate) async fn put_live(
        &mut self,
        key: String,
        content: Resource<Payload>,
    ) -> wasmtime::Result<Result<wit::ObjectInfo, wit::ObjectError>> {
        self.charge(key.len())?;
        if let Err(error) = check_key(&key) {
            return Ok(Err(error));
        }
        let payload = self.table.get(&content)?.clone();
        let kept = match payload.keep(&self.drivers.payloads).await {
            Ok(kept) => kept,
            Err(error) => return Ok(Err(unavailable(error))),
        };
        let object =
            ObjectInfo { key, size: kept.size, digest: kept.digest, media_type: payload.media_type().to_owned() };
        let put = self.drivers.index.object_put(&self.namespace(), object.clone()).await;
        Ok(put.map(|_| info(object)).map_err(unavailable))
    }

    pub(crate) async fn delete_live(&mut self, key: String) -> wasmtime::Result<Result<(), wit::ObjectError>> {
        self.charge(key.len())?;
        if let Err(error) = check_key(&key) {
            return Ok(Err(error));
        }
        Ok(self.drivers.index.object_delete(&self.namespace(), &key).await.map(|_| ()).map_err(unavailable))
    }
}

impl wit::Host for CallState {
    async fn open(&mut self, key: String) -> wasmtime::Result<Result<Option<Resource<Payload>>, wit::ObjectError>> {
        if self.tape.is_live() { self.open_live(key).await } else { self.open_taped(key).await }
    }

    async fn list_objects(
        &mut self,
        prefix: String,
        after: Option<String>,
        limit: u32,
    ) -> wasmtime::Result<Result<Vec<wit::ObjectInfo>, wit::ObjectError>> {
        self.charge(prefix.len() + after.as_ref().map_or(0, String::len))?;
        let with = || json!({ "prefix": prefix, "after": after, "limit": limit });
        let list = |state: &mut Self| {
            let limit = limit.min(MOST_KEYS) as usize;
            let listed = state.drivers.index.object_list(&state.namespace(), &prefix, after.as_deref(), limit);
            listed.map(|objects| objects.into_iter().map(info).collect()).map_err(unavailable)
        };
        Ok(self.taped("objects.list-objects", with, list)?)
    }

    async fn put(
        &mut self,
        key: String,
        content: Resource<Payload>,
    ) -> wasmtime::Result<Result<wit::ObjectInfo, wit::ObjectError>> {
        if self.tape.is_live() { self.put_live(key, content).await } else { self.put_taped(key, content).await }
    }

    async fn delete(&mut self, key: String) -> wasmtime::Result<Result<(), wit::ObjectError>> {
        if self.tape.is_live() { self.delete_live(key).await } else { self.delete_taped(key).await }
    }
}
