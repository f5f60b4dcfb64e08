//! A segment of an execution's chain, as the kernel sees it.
//!
//! The body of a segment is a header of the kernel's own and the event lines of the orchestrator. The kernel reads
//! no event; what it must know without asking a component (whose execution it is, whether it opens or ends, who
//! decided) is in the header:
//!
//! ```text
//! format (1 byte, 1) · flags (1 byte: 1 opens, 2 ends) · root execution (8 bytes, little-endian) ·
//! sha256 of the deciding component (32 bytes) · length of the tenant's name (1 byte) · tenant · event lines
//! ```

use bytes::{BufMut, Bytes, BytesMut};
use noetl_contract::{Digest, Tenant};
use noetl_host::services::chain;
use noetl_store::log::{Segment, StreamId};

use super::ids::ExecutionId;

const FORMAT: u8 = 1;
const OPENS: u8 = 1;
const ENDS: u8 = 2;
const FIXED: usize = 1 + 1 + 8 + 32 + 1;
const PREFIX: &str = "x/";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    pub opens: bool,
    pub ends: bool,
    /// First execution of the tree, which decides the shard.
    pub root: ExecutionId,
    pub decided_by: Digest,
    pub tenant: Tenant,
}

impl Header {
    pub fn encode(&self, events: &[u8]) -> Bytes {
        let tenant = self.tenant.as_str().as_bytes();
        let mut body = BytesMut::with_capacity(FIXED + tenant.len() + events.len());
        body.put_u8(FORMAT);
        body.put_u8(u8::from(self.opens) * OPENS + u8::from(self.ends) * ENDS);
        body.put_u64_le(self.root.0);
        body.put_slice(self.decided_by.as_bytes());
        // Names of tenants are at most 63 bytes.
        body.put_u8(tenant.len() as u8);
        body.put_slice(tenant);
        body.put_slice(events);
        body.freeze()
    }

    /// The header and the event lines; nothing for a body this program did not write.
    pub fn decode(body: &Bytes) -> Option<(Self, Bytes)> {
        let fixed = body.get(..FIXED)?;
        if fixed[0] != FORMAT {
            return None;
        }
        let root = u64::from_le_bytes(fixed[2..10].try_into().ok()?);
        let decided_by = Digest::from_bytes(fixed[10..42].try_into().ok()?);
        let end = FIXED + usize::from(fixed[42]);
        let tenant = Tenant::new(std::str::from_utf8(body.get(FIXED..end)?).ok()?).ok()?;
        let header = Self {
            opens: fixed[1] & OPENS != 0,
            ends: fixed[1] & ENDS != 0,
            root: ExecutionId(root),
            decided_by,
            tenant,
        };
        Some((header, body.slice(end..)))
    }
}

/// The stream that holds an execution's chain.
pub fn stream_of(execution: ExecutionId) -> StreamId {
    StreamId::new(format!("{PREFIX}{execution}"))
}

/// The execution whose chain a stream holds; nothing for streams of others.
pub fn execution_of(stream: &StreamId) -> Option<ExecutionId> {
    stream.as_str().strip_prefix(PREFIX)?.parse().ok()
}

/// A segment as services read it.
pub fn for_services(segment: &Segment) -> Option<chain::Segment> {
    let execution = execution_of(&segment.stream)?;
    let (header, events) = Header::decode(&segment.body)?;
    Some(chain::Segment {
        execution: execution.0,
        tenant: header.tenant.to_string(),
        version: segment.version,
        position: segment.position,
        time_ms: segment.time_ms,
        decided_by: header.decided_by.hex(),
        events: events.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_reads_back_and_nothing_else_is_taken_for_one() {
        let header = Header {
            opens: true,
            ends: false,
            root: ExecutionId(77),
            decided_by: Digest::of(b"component"),
            tenant: Tenant::new("acme").expect("a name"),
        };
        let body = header.encode(b"{}\n");
        let (read, events) = Header::decode(&body).expect("our own");
        assert_eq!((read, &events[..]), (header, &b"{}\n"[..]));
        for cut in 0..FIXED + 4 {
            assert!(Header::decode(&body.slice(..cut)).is_none(), "{cut}");
        }
        assert!(Header::decode(&Bytes::from_static(b"{\"type\":\"pushed\"}")).is_none());
    }
}
