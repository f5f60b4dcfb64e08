//! What the streams `kv/<tenant>` and `objects/<tenant>` hold.
//!
//! A kv segment is a length (u32, little-endian), that many bytes of JSON
//! (`{"path": ..., "writes": [[key, length of the value or null], ...]}`) and then the values one after the
//! other, as they are. An object segment is JSON. Fields may be added, never changed.

use bytes::{BufMut, Bytes, BytesMut};
use noetl_contract::PluginPath;
use serde::{Deserialize, Serialize};

use super::ObjectInfo;
use crate::log::StreamId;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    KvWritten { path: PluginPath, writes: Vec<(String, Option<Bytes>)> },
    ObjectPut { path: PluginPath, object: ObjectInfo },
    ObjectDeleted { path: PluginPath, key: String },
}

#[derive(Serialize, Deserialize)]
struct KvHeader {
    path: PluginPath,
    writes: Vec<(String, Option<usize>)>,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum ObjectEvent {
    ObjectPut { path: PluginPath, object: ObjectInfo },
    ObjectDeleted { path: PluginPath, key: String },
}

/// Which tenant's kv or objects a stream holds; nothing for streams that are not ours.
pub enum Kind<'a> {
    Kv(&'a str),
    Objects(&'a str),
}

pub fn kind_of(stream: &StreamId) -> Option<Kind<'_>> {
    let name = stream.as_str();
    name.strip_prefix("kv/").map(Kind::Kv).or_else(|| name.strip_prefix("objects/").map(Kind::Objects))
}

impl Event {
    pub fn encode(&self) -> Bytes {
        match self {
            Self::KvWritten { path, writes } => {
                let lengths = writes.iter().map(|(key, value)| (key.clone(), value.as_ref().map(Bytes::len)));
                let header = to_json(&KvHeader { path: path.clone(), writes: lengths.collect() });
                let values: usize = writes.iter().filter_map(|(_, value)| value.as_ref()).map(Bytes::len).sum();
                let mut body = BytesMut::with_capacity(4 + header.len() + values);
                body.put_u32_le(header.len() as u32);
                body.put_slice(&header);
                writes.iter().filter_map(|(_, value)| value.as_ref()).for_each(|value| body.put_slice(value));
                body.freeze()
            }
            Self::ObjectPut { path, object } => {
                to_json(&ObjectEvent::ObjectPut { path: path.clone(), object: object.clone() }).into()
            }
            Self::ObjectDeleted { path, key } => {
                to_json(&ObjectEvent::ObjectDeleted { path: path.clone(), key: key.clone() }).into()
            }
        }
    }

    pub fn decode_kv(body: &Bytes) -> Result<Self, String> {
        let length = body.get(..4).ok_or("it is too short")?;
        let length = u32::from_le_bytes(length.try_into().expect("four bytes")) as usize;
        let header = body.get(4..4 + length).ok_or("it ends inside its header")?;
        let header: KvHeader = serde_json::from_slice(header).map_err(|error| error.to_string())?;
        let mut at = 4 + length;
        let mut writes = Vec::with_capacity(header.writes.len());
        for (key, length) in header.writes {
            let value = match length {
                Some(length) if at.checked_add(length).is_some_and(|end| end <= body.len()) => {
                    at += length;
                    Some(body.slice(at - length..at))
                }
                Some(_) => return Err("it ends inside a value".to_owned()),
                None => None,
            };
            writes.push((key, value));
        }
        Ok(Self::KvWritten { path: header.path, writes })
    }

    pub fn decode_object(body: &Bytes) -> Result<Self, String> {
        let event: ObjectEvent = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        Ok(match event {
            ObjectEvent::ObjectPut { path, object } => Self::ObjectPut { path, object },
            ObjectEvent::ObjectDeleted { path, key } => Self::ObjectDeleted { path, key },
        })
    }
}

fn to_json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("names and numbers always have a JSON form")
}
