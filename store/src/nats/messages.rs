//! Messages of JetStream: publishing, fetching a bounded batch, settling, looking up.
//!
//! A fetch never leaves a request open behind it: the server would hand messages to a request nobody reads any more, and
//! they would be out of sight until their time to be acknowledged is over. So it takes what is there; if that is nothing, it
//! waits for one message, and then takes what has come with it.

use std::str::FromStr as _;
use std::time::Duration;

use async_nats::jetstream::consumer::PullConsumer;
use async_nats::jetstream::stream::RawMessageErrorKind;
use async_nats::{HeaderMap, HeaderName, HeaderValue};
use bytes::Bytes;
use futures::StreamExt as _;
use tokio::time::Instant;

use super::{Nats, NatsError};

/// A batch is asked for in at most this many bytes, so that nobody's messages fill the memory of all.
const MOST_BYTES: usize = 8 << 20;
/// The server ends a request so long before the client stops waiting for it.
const SLACK: Duration = Duration::from_millis(50);
/// Subjects under which messages are acknowledged.
const ACKS: &str = "$JS.ACK.";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub subject: String,
    pub headers: Vec<(String, String)>,
    pub data: Bytes,
    pub sequence: u64,
    /// Milliseconds since 1970.
    pub time_ms: u64,
    pub deliveries: u64,
    pub ack_id: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    pub stream: String,
    pub sequence: u64,
    pub duplicate: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamState {
    pub name: String,
    pub subjects: Vec<String>,
    pub messages: u64,
    pub bytes: u64,
    pub first_sequence: u64,
    pub last_sequence: u64,
    pub consumers: u64,
}

/// Which message of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    Sequence(u64),
    /// The last of a subject.
    Last(String),
}

/// What becomes of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settlement {
    Done,
    /// Handed out again, after this delay.
    Again(Option<Duration>),
    Never,
}

impl Settlement {
    fn word(self) -> Bytes {
        match self {
            Settlement::Done => Bytes::from_static(b"+ACK"),
            Settlement::Again(None) => Bytes::from_static(b"-NAK"),
            Settlement::Again(Some(delay)) => format!("-NAK {{\"delay\":{}}}", delay.as_nanos()).into(),
            Settlement::Never => Bytes::from_static(b"+TERM"),
        }
    }
}

impl Nats {
    /// Answers when the stream has it.
    pub async fn publish(
        &self,
        subject: &str,
        headers: Vec<(String, String)>,
        data: Bytes,
    ) -> Result<Published, NatsError> {
        let bad = subject.is_empty() || subject.chars().any(|letter| letter.is_whitespace() || "*>".contains(letter));
        if bad {
            return Err(NatsError::Invalid(format!("`{subject}` is not a subject to publish to")));
        }
        let failed = |error: &dyn std::fmt::Display| NatsError::of(&format!("publish to `{subject}`"), error);
        let headers = header_map(headers)?;
        let sent = self.jetstream.publish_with_headers(subject.to_owned(), headers, data).await;
        let ack = sent.map_err(|error| failed(&error))?.await.map_err(|error| failed(&error))?;
        Ok(Published { stream: ack.stream, sequence: ack.sequence, duplicate: ack.duplicate })
    }

    /// What comes before `wait` is over.
    pub async fn fetch(
        &self,
        stream: &str,
        consumer: &str,
        batch: usize,
        wait: Duration,
    ) -> Result<Vec<Message>, NatsError> {
        let deadline = Instant::now() + wait;
        let found = self.jetstream.get_consumer_from_stream(consumer, stream);
        let found = tokio::time::timeout_at(deadline, found).await.map_err(|_| NatsError::Timeout)?;
        let found: PullConsumer =
            found.map_err(|error| NatsError::of(&format!("find the consumer `{consumer}` of `{stream}`"), &error))?;
        let mut messages = Vec::new();
        take(&found, batch, deadline, None, &mut messages).await?;
        if messages.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now()).saturating_sub(SLACK);
            if left > SLACK {
                take(&found, 1, deadline, Some(left), &mut messages).await?;
            }
            if !messages.is_empty() && batch > 1 {
                take(&found, batch - 1, deadline, None, &mut messages).await?;
            }
        }
        Ok(messages)
    }

    /// Answers when the server has noted all of them.
    pub async fn settle(&self, ack_ids: &[String], how: Settlement) -> Result<(), NatsError> {
        for id in ack_ids {
            if !id.starts_with(ACKS) || id.chars().any(|letter| letter.is_whitespace() || "*>".contains(letter)) {
                return Err(NatsError::Invalid(format!("`{id}` is not the `ack_id` of a message")));
            }
        }
        let settling = ack_ids.iter().map(|id| self.client.request(id.clone(), how.word()));
        for settled in futures::future::join_all(settling).await {
            settled.map_err(|error| NatsError::of("settle a message", &error))?;
        }
        Ok(())
    }

    pub async fn get_message(&self, stream: &str, which: &Which) -> Result<Option<Message>, NatsError> {
        let failed = |error: &dyn std::fmt::Display| NatsError::of(&format!("read a message of `{stream}`"), error);
        let opened = self.jetstream.get_stream(stream).await.map_err(|error| failed(&error))?;
        let found = match which {
            Which::Sequence(sequence) => opened.get_raw_message(*sequence).await,
            Which::Last(subject) => opened.get_last_raw_message_by_subject(subject).await,
        };
        match found {
            Ok(message) => Ok(Some(Message {
                subject: message.subject.to_string(),
                headers: header_list(&message.headers),
                data: message.payload,
                sequence: message.sequence,
                time_ms: milliseconds(message.time),
                deliveries: 0,
                ack_id: None,
            })),
            Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(failed(&error)),
        }
    }

    pub async fn stream_info(&self, stream: &str) -> Result<StreamState, NatsError> {
        let opened = self.jetstream.get_stream(stream).await;
        let opened = opened.map_err(|error| NatsError::of(&format!("open the stream `{stream}`"), &error))?;
        let info = opened.cached_info();
        Ok(StreamState {
            name: info.config.name.clone(),
            subjects: info.config.subjects.iter().map(ToString::to_string).collect(),
            messages: info.state.messages,
            bytes: info.state.bytes,
            first_sequence: info.state.first_sequence,
            last_sequence: info.state.last_sequence,
            consumers: info.state.consumer_count as u64,
        })
    }
}

/// One request: without a wait for what is there now, else until it has been answered in full or the wait is over.
async fn take(
    consumer: &PullConsumer,
    batch: usize,
    deadline: Instant,
    wait: Option<Duration>,
    taken: &mut Vec<Message>,
) -> Result<(), NatsError> {
    let asked = async {
        match wait {
            None => consumer.fetch().max_messages(batch).max_bytes(MOST_BYTES).messages().await,
            Some(wait) => consumer.batch().max_messages(batch).expires(wait).messages().await,
        }
    };
    let failed = |error: &dyn std::fmt::Display| NatsError::of("fetch messages", error);
    let Ok(asked) = tokio::time::timeout_at(deadline, asked).await else { return Ok(()) };
    let mut incoming = asked.map_err(|error| failed(&error))?;
    while let Ok(Some(message)) = tokio::time::timeout_at(deadline, incoming.next()).await {
        let message = message.map_err(|error| failed(&error))?;
        let info = message.info().map_err(|error| failed(&error))?;
        let (sequence, time_ms) = (info.stream_sequence, milliseconds(info.published));
        let deliveries = u64::try_from(info.delivered).unwrap_or_default();
        taken.push(Message {
            subject: message.subject.to_string(),
            headers: message.headers.as_ref().map(header_list).unwrap_or_default(),
            data: message.payload.clone(),
            sequence,
            time_ms,
            deliveries,
            ack_id: message.reply.as_ref().map(ToString::to_string),
        });
    }
    Ok(())
}

/// Times before 1970 are no times of messages.
pub(super) fn milliseconds(time: impl Into<std::time::SystemTime>) -> u64 {
    let since = time.into().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn header_map(list: Vec<(String, String)>) -> Result<HeaderMap, NatsError> {
    let mut map = HeaderMap::new();
    for (name, value) in list {
        let invalid = || NatsError::Invalid(format!("the header `{name}`"));
        let parsed = HeaderName::from_str(&name).map_err(|_| invalid())?;
        map.append(parsed, HeaderValue::from_str(&value).map_err(|_| invalid())?);
    }
    Ok(map)
}

/// In the order of their names: the client keeps none.
fn header_list(headers: &HeaderMap) -> Vec<(String, String)> {
    let mut list: Vec<(String, String)> = headers
        .iter()
        .flat_map(|(name, values)| values.iter().map(|value| (name.to_string(), value.as_str().to_owned())))
        .collect();
    list.sort_by(|left, right| left.0.cmp(&right.0));
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_settled_in_the_servers_words() {
        assert_eq!(&Settlement::Done.word()[..], b"+ACK");
        assert_eq!(&Settlement::Again(Some(Duration::from_millis(2))).word()[..], b"-NAK {\"delay\":2000000}");
        assert_eq!(&Settlement::Never.word()[..], b"+TERM");
    }

    #[test]
    fn headers_that_break_a_message_are_refused() {
        let one = |name: &str, value: &str| header_map(vec![(name.to_owned(), value.to_owned())]);
        assert!(one("a", "b").is_ok());
        assert!(one("a", "b\r\nc: d").is_err());
        assert!(one("a b\r\n", "c").is_err());
    }
}
