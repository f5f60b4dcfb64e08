//! `noetl:nats`: values, objects and messages of NATS.
//!
//! The guest says which server and as whom; the host opens the credential, checks where it leads and keeps the connection
//! ([`connections`]). Every function ends with the call's own time at the latest, and sooner if the server does not answer.
//! Objects are streamed between the server and payloads; how much else of a server's is kept in memory is bounded for each
//! function, and functions have slots that tenants share. Whatever comes is without the secrets of the tenant.
//!
//! Calls with messages of others in them are not written to case files: such a call cannot be recorded.

mod connections;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use noetl_store::nats::{Entry, Message, Nats, NatsError, ObjectDetails, Published, Settlement, StreamState, Which};
use wasmtime::component::Resource;

use super::filling::{self, Filling, Refused};
use super::masking::Secrets;
use super::payload::{Payload, WriteError, Writer};
use crate::bindings::noetl::nats::nats as wit;
use crate::state::CallState;

pub use connections::Connections;
use connections::told;

/// Longest time for one function.
const LONGEST: Duration = Duration::from_secs(30);
const MOST_MESSAGES: u32 = 1_000;
const LONGEST_WAIT_MS: u32 = 5_000;
const MOST_NAMES: u32 = 10_000;
const OBJECT_TYPE: &str = "application/octet-stream";
/// By this header a stream finds out that it has a message already.
const MESSAGE_ID: &str = "Nats-Msg-Id";

type Answer<T> = wasmtime::Result<Result<T, wit::NatsError>>;

impl CallState {
    /// Connects and does the work, within the time there is.
    async fn with_nats<T: Send, Work>(
        &mut self,
        function: &str,
        bytes: usize,
        at: wit::Server,
        work: impl FnOnce(Arc<Nats>) -> Work + Send,
    ) -> Answer<T>
    where
        Work: Future<Output = Result<T, NatsError>> + Send,
    {
        self.write_nats(function, bytes, at, Vec::new(), |nats, _| work(nats)).await
    }

    /// The same for work that writes something: placeholders in it are replaced first, or nothing is written.
    async fn write_nats<T: Send, Work>(
        &mut self,
        function: &str,
        bytes: usize,
        at: wit::Server,
        mut written: Vec<Bytes>,
        work: impl FnOnce(Arc<Nats>, Vec<Bytes>) -> Work + Send,
    ) -> Answer<T>
    where
        Work: Future<Output = Result<T, NatsError>> + Send,
    {
        self.charge(bytes)?;
        self.not_taped(function)?;
        let drivers = self.drivers.clone();
        let (who, using, seal) = (self.identity.clone(), self.identity.using("", ""), self.seal());
        let asking = async {
            let _slot = drivers.nats.slot(&using.tenant).await;
            let (nats, place) = drivers.nats.get(&*drivers.wallet, at, using).await?;
            let mut filling = Filling::new(&*drivers.wallet, &who, seal, place);
            for one in &mut written {
                *one = filling.bytes(std::mem::take(one)).await.map_err(refused)?;
            }
            nats.clone().within(work(nats, written)).await.map_err(told)
        };
        let time = self.time_left().min(LONGEST);
        let answered = tokio::time::timeout(time, asking).await.unwrap_or(Err(wit::NatsError::Timeout));
        Ok(answered.map_err(|error| masked(&self.secrets(), error)))
    }

    /// The tenant's secrets. What a server gives is asked for first: then the credential it took is known.
    fn secrets(&self) -> Secrets {
        Secrets::of(&self.identity.tenant, Vec::new())
    }

    /// The same, for data of the server that this credential is for.
    fn secrets_at(&self, credential: Option<String>) -> Secrets {
        Secrets::of(&self.identity.tenant, credential.into_iter().collect())
    }
}

fn refused(refused: Refused) -> wit::NatsError {
    match refused {
        Refused::Denied(text) => wit::NatsError::Denied(text),
        Refused::Unavailable(text) => wit::NatsError::Unavailable(text),
    }
}

/// What was text and is text still.
fn text(bytes: &Bytes) -> Result<String, NatsError> {
    String::from_utf8(bytes.to_vec()).map_err(|error| NatsError::Invalid(error.to_string()))
}

fn masked(secrets: &Secrets, error: wit::NatsError) -> wit::NatsError {
    use wit::NatsError::{Credential, Denied, Invalid, NotFound, Refused, Timeout, TooLarge, Unavailable};
    match error {
        Invalid(text) => Invalid(secrets.masked(text)),
        Credential(text) => Credential(secrets.masked(text)),
        Denied(text) => Denied(secrets.masked(text)),
        NotFound(text) => NotFound(secrets.masked(text)),
        Unavailable(text) => Unavailable(secrets.masked(text)),
        Refused(text) => Refused(secrets.masked(text)),
        error @ (Timeout | TooLarge(_)) => error,
    }
}

impl wit::Host for CallState {
    async fn kv_get(&mut self, at: wit::Server, bucket: String, key: String) -> Answer<Option<wit::Entry>> {
        let (length, credential) = (key.len(), at.credential.clone());
        let get = |nats: Arc<Nats>| async move { nats.kv_get(&bucket, &key).await };
        let found = self.with_nats("nats.kv-get", length, at, get).await?;
        let secrets = self.secrets_at(credential);
        let entry = |entry: Entry| {
            let mut value: Vec<u8> = entry.value.into();
            secrets.stand_in_bytes(&mut value);
            wit::Entry { value, revision: entry.revision }
        };
        Ok(found.map(|found| found.map(entry)))
    }

    async fn kv_keys(
        &mut self,
        at: wit::Server,
        bucket: String,
        pattern: Option<String>,
        limit: u32,
    ) -> Answer<Vec<String>> {
        let limit = limit.min(MOST_NAMES) as usize;
        let length = bucket.len();
        let list = |nats: Arc<Nats>| async move { nats.kv_keys(&bucket, pattern.as_deref(), limit).await };
        let mut keys = self.with_nats("nats.kv-keys", length, at, list).await?;
        let secrets = self.secrets();
        keys.iter_mut().flatten().for_each(|key| secrets.stand_in(key));
        Ok(keys)
    }

    async fn kv_put(&mut self, at: wit::Server, bucket: String, key: String, value: Vec<u8>) -> Answer<u64> {
        let (bytes, value) = (key.len() + value.len(), Bytes::from(value));
        let put = |nats: Arc<Nats>, written: Vec<Bytes>| async move {
            nats.kv_put(&bucket, &key, written.into_iter().next().unwrap_or_default()).await
        };
        self.write_nats("nats.kv-put", bytes, at, vec![value], put).await
    }

    async fn kv_delete(&mut self, at: wit::Server, bucket: String, key: String) -> Answer<()> {
        let length = key.len();
        let delete = |nats: Arc<Nats>| async move { nats.kv_delete(&bucket, &key).await };
        self.with_nats("nats.kv-delete", length, at, delete).await
    }

    async fn kv_purge(&mut self, at: wit::Server, bucket: String, key: String) -> Answer<()> {
        let length = key.len();
        let purge = |nats: Arc<Nats>| async move { nats.kv_purge(&bucket, &key).await };
        self.with_nats("nats.kv-purge", length, at, purge).await
    }

    async fn object_get(&mut self, at: wit::Server, bucket: String, name: String) -> Answer<Option<Resource<Payload>>> {
        let (payloads, most) = (self.drivers.payloads.clone(), self.drivers.max_payload);
        let preferred = at.credential.clone().into_iter().collect();
        let (length, tenant, temporary) = (name.len(), self.identity.tenant.clone(), self.temporary.clone());
        let get = |nats: Arc<Nats>| async move {
            let Some(bytes) = nats.object_get(&bucket, &name).await? else { return Ok(None) };
            let mut bytes = Secrets::of(&tenant, preferred).stand_in_pieces(bytes);
            let mut writer = Writer::new(OBJECT_TYPE, most).of(&temporary);
            while let Some(piece) = bytes.next().await {
                let piece = piece.map_err(|error| NatsError::Unavailable(error.to_string()))?;
                writer.write(&payloads, &piece).await.map_err(unwritten)?;
            }
            let payload = writer.finish().await;
            payload.map(Some).map_err(|error| NatsError::Unavailable(error.to_string()))
        };
        match self.with_nats("nats.object-get", length, at, get).await? {
            Ok(Some(payload)) => Ok(Ok(Some(self.hand_out(payload)?))),
            Ok(None) => Ok(Ok(None)),
            Err(error) => Ok(Err(error)),
        }
    }

    async fn object_info(
        &mut self,
        at: wit::Server,
        bucket: String,
        name: String,
    ) -> Answer<Option<wit::ObjectDetails>> {
        let length = name.len();
        let look = |nats: Arc<Nats>| async move { nats.object_info(&bucket, &name).await };
        let found = self.with_nats("nats.object-info", length, at, look).await?;
        let secrets = self.secrets();
        Ok(found.map(|found| found.map(|found| details(&secrets, found))))
    }

    async fn object_list(&mut self, at: wit::Server, bucket: String, limit: u32) -> Answer<Vec<wit::ObjectDetails>> {
        let limit = limit.min(MOST_NAMES) as usize;
        let length = bucket.len();
        let list = |nats: Arc<Nats>| async move { nats.object_list(&bucket, limit).await };
        let found = self.with_nats("nats.object-list", length, at, list).await?;
        let secrets = self.secrets();
        Ok(found.map(|found| found.into_iter().map(|found| details(&secrets, found)).collect()))
    }

    async fn object_put(
        &mut self,
        at: wit::Server,
        bucket: String,
        name: String,
        content: Resource<Payload>,
    ) -> Answer<wit::ObjectDetails> {
        let content = self.table.get(&content)?.clone();
        let (length, payloads) = (name.len(), self.drivers.payloads.clone());
        let small = match filling::looked_through(&self.seal(), &content, &payloads).await {
            Ok(small) => small,
            Err(error) => return Ok(Err(refused(error))),
        };
        let written = [Bytes::from(name)].into_iter().chain(small).collect();
        let put = |nats: Arc<Nats>, written: Vec<Bytes>| async move {
            let mut written = written.into_iter();
            let name = text(&written.next().unwrap_or_default())?;
            let bytes = match written.next() {
                Some(small) => futures::stream::iter([Ok(small)]).boxed(),
                None => content.stream(payloads),
            };
            nats.object_put(&bucket, &name, bytes).await
        };
        let kept = self.write_nats("nats.object-put", length, at, written, put).await?;
        Ok(kept.map(|kept| details(&self.secrets(), kept)))
    }

    async fn object_delete(&mut self, at: wit::Server, bucket: String, name: String) -> Answer<()> {
        let length = name.len();
        let delete = |nats: Arc<Nats>| async move { nats.object_delete(&bucket, &name).await };
        self.with_nats("nats.object-delete", length, at, delete).await
    }

    async fn publish(
        &mut self,
        at: wit::Server,
        subject: String,
        mut headers: Vec<(String, String)>,
        data: Vec<u8>,
    ) -> Answer<wit::Published> {
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(MESSAGE_ID)) {
            headers.push((MESSAGE_ID.to_owned(), self.next_key()));
        }
        let bytes = data.len() + headers.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>();
        let (names, values): (Vec<String>, Vec<String>) = headers.into_iter().unzip();
        let written = [subject.into(), data.into()].into_iter().chain(values.into_iter().map(Bytes::from)).collect();
        let publish = |nats: Arc<Nats>, written: Vec<Bytes>| async move {
            let mut written = written.into_iter();
            let subject = text(&written.next().unwrap_or_default())?;
            let data = written.next().unwrap_or_default();
            let values = written.map(|value| text(&value)).collect::<Result<Vec<_>, _>>()?;
            nats.publish(&subject, names.into_iter().zip(values).collect(), data).await
        };
        let published = self.write_nats("nats.publish", bytes, at, written, publish).await?;
        Ok(published.map(|ack| acknowledged(&self.secrets(), ack)))
    }

    async fn fetch(
        &mut self,
        at: wit::Server,
        stream_name: String,
        consumer: String,
        batch: u32,
        timeout_ms: u32,
    ) -> Answer<Vec<wit::Message>> {
        let batch = batch.clamp(1, MOST_MESSAGES) as usize;
        let wait = Duration::from_millis(u64::from(timeout_ms.min(LONGEST_WAIT_MS)));
        let (length, credential) = (stream_name.len() + consumer.len(), at.credential.clone());
        let fetch = |nats: Arc<Nats>| async move { nats.fetch(&stream_name, &consumer, batch, wait).await };
        let fetched = self.with_nats("nats.fetch", length, at, fetch).await?;
        let secrets = self.secrets_at(credential);
        Ok(fetched.map(|messages| messages.into_iter().map(|one| message(&secrets, one)).collect()))
    }

    async fn settle(&mut self, at: wit::Server, ack_ids: Vec<String>, how: wit::Settlement) -> Answer<()> {
        let how = match how {
            wit::Settlement::Done => Settlement::Done,
            wit::Settlement::Again(delay) => {
                Settlement::Again(delay.map(|delay| Duration::from_millis(u64::from(delay))))
            }
            wit::Settlement::Never => Settlement::Never,
        };
        let bytes = ack_ids.iter().map(String::len).sum();
        let settle = |nats: Arc<Nats>| async move { nats.settle(&ack_ids, how).await };
        self.with_nats("nats.settle", bytes, at, settle).await
    }

    async fn get_message(
        &mut self,
        at: wit::Server,
        stream_name: String,
        which: wit::Which,
    ) -> Answer<Option<wit::Message>> {
        let which = match which {
            wit::Which::Sequence(sequence) => Which::Sequence(sequence),
            wit::Which::Last(subject) => Which::Last(subject),
        };
        let (length, credential) = (stream_name.len(), at.credential.clone());
        let get = |nats: Arc<Nats>| async move { nats.get_message(&stream_name, &which).await };
        let found = self.with_nats("nats.get-message", length, at, get).await?;
        let secrets = self.secrets_at(credential);
        Ok(found.map(|found| found.map(|one| message(&secrets, one))))
    }

    async fn stream_info(&mut self, at: wit::Server, stream_name: String) -> Answer<wit::StreamState> {
        let length = stream_name.len();
        let look = |nats: Arc<Nats>| async move { nats.stream_info(&stream_name).await };
        let found = self.with_nats("nats.stream-info", length, at, look).await?;
        Ok(found.map(|found| state(&self.secrets(), found)))
    }
}

fn unwritten(error: WriteError) -> NatsError {
    match error {
        WriteError::TooLarge(size) => NatsError::TooLarge(size),
        WriteError::Io(error) => NatsError::Unavailable(format!("the object could not be kept: {error}")),
    }
}

fn details(secrets: &Secrets, object: ObjectDetails) -> wit::ObjectDetails {
    let ObjectDetails { name, size, chunks, mut digest, modified_ms } = object;
    let name = secrets.stood_for(name);
    secrets.mask_some(&mut digest);
    wit::ObjectDetails { name, size, chunks, digest, modified_ms }
}

fn acknowledged(secrets: &Secrets, published: Published) -> wit::Published {
    let Published { stream, sequence, duplicate } = published;
    wit::Published { stream_name: secrets.stood_for(stream), sequence, duplicate }
}

fn state(secrets: &Secrets, state: StreamState) -> wit::StreamState {
    let StreamState { name, subjects, messages, bytes, first_sequence, last_sequence, consumers } = state;
    let name = secrets.stood_for(name);
    let subjects = subjects.into_iter().map(|subject| secrets.stood_for(subject)).collect();
    wit::StreamState { name, subjects, messages, bytes, first_sequence, last_sequence, consumers }
}

fn message(secrets: &Secrets, message: Message) -> wit::Message {
    let Message { subject, mut headers, data, sequence, time_ms, deliveries, mut ack_id } = message;
    // A server that writes a secret into it loses the acknowledgement and nothing else.
    secrets.mask_some(&mut ack_id);
    let (subject, mut data) = (secrets.stood_for(subject), Vec::from(data));
    secrets.stand_in_pairs(&mut headers);
    secrets.stand_in_bytes(&mut data);
    wit::Message { subject, headers, data, sequence, time_ms, deliveries, ack_id }
}

#[cfg(test)]
mod tests {
    use noetl_contract::Tenant;
    use noetl_scrub::known;

    use super::*;

    #[test]
    fn no_text_of_a_server_has_a_secret_in_it() {
        const SECRET: &str = "nats-secret";
        known::learn_for("nats-texts", SECRET);
        let secrets = Secrets::of(&Tenant::new("nats-texts").expect("a name"), Vec::new());
        let text = || SECRET.to_owned();
        let object = details(
            &secrets,
            ObjectDetails { name: text(), size: 1, chunks: 1, digest: Some(text()), modified_ms: None },
        );
        let published = acknowledged(&secrets, Published { stream: text(), sequence: 1, duplicate: false });
        let stream = state(
            &secrets,
            StreamState {
                name: text(),
                subjects: vec![text()],
                messages: 1,
                bytes: 1,
                first_sequence: 1,
                last_sequence: 1,
                consumers: 0,
            },
        );
        let message = message(
            &secrets,
            Message {
                subject: text(),
                headers: vec![(text(), text())],
                data: Bytes::from_static(SECRET.as_bytes()),
                sequence: 1,
                time_ms: 1,
                deliveries: 1,
                ack_id: Some(text()),
            },
        );
        assert_eq!(message.data, b"[REDACTED]");
        let told = format!("{object:?} {published:?} {stream:?} {message:?}");
        assert!(!told.contains(SECRET), "{told}");
    }
}
