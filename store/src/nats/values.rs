//! Values in key-value buckets.

use async_nats::jetstream::kv::{Operation, Store};
use bytes::Bytes;
use futures::StreamExt as _;

use super::{Nats, NatsError};

/// About as many bytes as a key comes with.
const NAME: u64 = 1 << 10;

/// A value and its revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub value: Bytes,
    pub revision: u64,
}

impl Nats {
    async fn bucket(&self, bucket: &str) -> Result<Store, NatsError> {
        let opened = self.jetstream.get_key_value(bucket).await;
        opened.map_err(|error| NatsError::of(&format!("open the bucket `{bucket}`"), &error))
    }

    pub async fn kv_get(&self, bucket: &str, key: &str) -> Result<Option<Entry>, NatsError> {
        let entry = self.bucket(bucket).await?.entry(key).await;
        let entry = entry.map_err(|error| NatsError::of(&format!("read `{key}`"), &error))?;
        // What was deleted is there as a mark.
        let entry = entry.filter(|entry| entry.operation == Operation::Put);
        Ok(entry.map(|entry| Entry { value: entry.value, revision: entry.revision }))
    }

    pub async fn kv_put(&self, bucket: &str, key: &str, value: Bytes) -> Result<u64, NatsError> {
        let put = self.bucket(bucket).await?.put(key, value).await;
        put.map_err(|error| NatsError::of(&format!("write `{key}`"), &error))
    }

    pub async fn kv_delete(&self, bucket: &str, key: &str) -> Result<(), NatsError> {
        let deleted = self.bucket(bucket).await?.delete(key).await;
        deleted.map_err(|error| NatsError::of(&format!("delete `{key}`"), &error))
    }

    pub async fn kv_purge(&self, bucket: &str, key: &str) -> Result<(), NatsError> {
        let purged = self.bucket(bucket).await?.purge(key).await;
        purged.map_err(|error| NatsError::of(&format!("purge `{key}`"), &error))
    }

    /// In the order of their last change.
    pub async fn kv_keys(&self, bucket: &str, pattern: Option<&str>, limit: usize) -> Result<Vec<String>, NatsError> {
        let failed = |error: &dyn std::fmt::Display| NatsError::of(&format!("list the keys of `{bucket}`"), error);
        let keys = self.bucket(bucket).await?.keys().await.map_err(|error| failed(&error))?;
        let mut keys = std::pin::pin!(keys);
        let mut found = Vec::new();
        while let Some(key) = keys.next().await {
            let key = key.map_err(|error| failed(&error))?;
            self.relay.allowance.taken(NAME);
            if pattern.is_none_or(|pattern| matches(pattern, &key)) {
                found.push(key);
            }
            if found.len() == limit {
                break;
            }
        }
        Ok(found)
    }
}

/// Subjects as NATS compares them: `*` is one part, `>` is all that follow.
fn matches(pattern: &str, key: &str) -> bool {
    let (mut parts, mut found) = (pattern.split('.'), key.split('.'));
    loop {
        match (parts.next(), found.next()) {
            (None, None) => return true,
            (Some(">"), Some(_)) => return true,
            (Some(part), Some(text)) if part == "*" || part == text => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_are_those_of_subjects() {
        for (pattern, key, expected) in [
            ("a.b", "a.b", true),
            ("a.*", "a.b", true),
            ("a.*", "a.b.c", false),
            ("a.>", "a.b.c", true),
            ("a.>", "a", false),
            (">", "a", true),
            ("*.b", "a.b", true),
            ("a", "ab", false),
        ] {
            assert_eq!(matches(pattern, key), expected, "{pattern} {key}");
        }
    }
}
