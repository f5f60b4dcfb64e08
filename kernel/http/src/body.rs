//! Request bodies with bounds on size and time.
//!
//! Three bounds: the size, the pause between two pieces, and the time of the whole. The last one catches a
//! client that drips a byte at a time to hold a connection and a half-written file.
//!
//! A client that sends too much is answered at once, and what it still sends is thrown away for a short while:
//! were the connection cut while it writes, it would see a reset instead of the answer.

use std::time::Duration;

use axum::body::{Body, BodyDataStream, HttpBody};
use axum::http::{HeaderMap, StatusCode, header};
use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use tokio::time::{Instant, timeout, timeout_at};

use crate::options::HttpOptions;
use crate::problem::Problem;

/// How long a refused body is thrown away.
const DISCARD_TIME: Duration = Duration::from_secs(10);

/// How much a body may have, and how to say so.
#[derive(Debug, Clone, Copy)]
pub struct Bound {
    pub bytes: u64,
    /// Code of the problem when there is more.
    pub code: &'static str,
    /// The configuration key that moves the bound.
    pub key: Option<&'static str>,
}

impl Bound {
    fn exceeded(&self) -> Problem {
        let how = match self.key {
            Some(key) => format!("; the operator can raise `{key}`"),
            None => String::new(),
        };
        let detail = format!("the body is larger than the limit of {} bytes{how}", self.bytes);
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, self.code, detail).with("limit_bytes", self.bytes)
    }
}

/// A request's body until somebody reads it. A request that is answered without it, because it is refused,
/// has its body thrown away: were the connection cut while the client still writes, it would see a broken
/// pipe instead of the answer.
pub struct Incoming(Body);

impl Incoming {
    pub fn new(body: Body) -> Self {
        Self(body)
    }

    pub fn take(&mut self) -> Body {
        std::mem::take(&mut self.0)
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if !self.0.is_end_stream() {
            discard(self.take().into_data_stream());
        }
    }
}

pub struct BodyReader {
    stream: BodyDataStream,
    bound: Bound,
    announced: Option<u64>,
    read: u64,
    deadline: Instant,
    seconds: u64,
    idle: Duration,
}

impl BodyReader {
    /// Refuses at once a body that announces more than it may have.
    pub fn new(headers: &HeaderMap, body: Body, bound: Bound, options: &HttpOptions) -> Result<Self, Problem> {
        let announced = headers
            .get(header::CONTENT_LENGTH)
            .and_then(|value| value.to_str().ok())
            .and_then(|text| text.parse().ok());
        let stream = body.into_data_stream();
        if announced.is_some_and(|length: u64| length > bound.bytes) {
            discard(stream);
            return Err(bound.exceeded());
        }
        Ok(Self {
            stream,
            bound,
            announced,
            read: 0,
            deadline: Instant::now() + Duration::from_secs(options.body_timeout_secs),
            seconds: options.body_timeout_secs,
            idle: Duration::from_secs(options.body_idle_secs),
        })
    }

    /// The next piece, or none at the end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Problem> {
        let piece = timeout_at(self.deadline, timeout(self.idle, self.stream.next())).await;
        let piece = match piece {
            Ok(Ok(piece)) => piece,
            Ok(Err(_)) => {
                let idle = self.idle.as_secs();
                return Err(too_slow(format!("no more of the body arrived for {idle} s")));
            }
            Err(_) => {
                let seconds = self.seconds;
                return Err(too_slow(format!("the body did not arrive within {seconds} s")));
            }
        };
        match piece {
            None => Ok(None),
            Some(Err(error)) => {
                Err(Problem::bad_request("body_interrupted", format!("the body ended before it was whole: {error}")))
            }
            Some(Ok(bytes)) => {
                self.read += bytes.len() as u64;
                if self.read > self.bound.bytes {
                    discard(std::mem::replace(&mut self.stream, Body::empty().into_data_stream()));
                    return Err(self.bound.exceeded());
                }
                Ok(Some(bytes))
            }
        }
    }

    /// The whole body in memory.
    pub async fn collect(mut self) -> Result<Bytes, Problem> {
        // What is announced fits the bound; untouched memory costs nothing if it never arrives.
        let mut whole = BytesMut::with_capacity(self.announced.unwrap_or(0) as usize);
        while let Some(bytes) = self.next().await? {
            whole.extend_from_slice(&bytes);
        }
        Ok(whole.freeze())
    }
}

fn too_slow(detail: String) -> Problem {
    Problem::new(StatusCode::REQUEST_TIMEOUT, "body_timeout", detail)
        .header(header::CONNECTION, axum::http::HeaderValue::from_static("close"))
}

fn discard(mut stream: BodyDataStream) {
    tokio::spawn(timeout(DISCARD_TIME, async move { while let Some(Ok(_)) = stream.next().await {} }));
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUND: Bound = Bound { bytes: 8, code: "component_too_large", key: Some("server.max_component_mb") };

    fn pieces(list: &[&'static str]) -> Body {
        let list: Vec<Result<Bytes, std::io::Error>> = list.iter().map(|piece| Ok(Bytes::from(*piece))).collect();
        Body::from_stream(futures::stream::iter(list))
    }

    fn reader(body: Body) -> BodyReader {
        BodyReader::new(&HeaderMap::new(), body, BOUND, &HttpOptions::default()).expect("nothing was announced")
    }

    #[tokio::test]
    async fn a_body_up_to_the_bound_is_read_whole() {
        assert_eq!(reader(pieces(&["1234", "5678"])).collect().await.expect("fits"), "12345678");
    }

    #[tokio::test]
    async fn one_byte_more_is_refused_and_the_key_is_named() {
        let problem = reader(pieces(&["1234", "56789"])).collect().await.expect_err("too large");
        assert_eq!(problem.document("r")["status"], 413);
        assert_eq!(problem.code(), "component_too_large");
        assert!(problem.document("r").to_string().contains("server.max_component_mb"));
    }

    #[tokio::test]
    async fn an_announced_size_is_refused_before_anything_is_read() {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_LENGTH, 9.into());
        let refused =
            BodyReader::new(&headers, Body::empty(), BOUND, &HttpOptions::default()).err().expect("too large");
        assert_eq!(refused.document("r")["status"], 413);
    }

    /// A reader whose times are over at once, so that no test waits for them.
    fn impatient(body: Body, options: HttpOptions) -> BodyReader {
        BodyReader::new(&HeaderMap::new(), body, BOUND, &options).expect("nothing was announced")
    }

    #[tokio::test]
    async fn a_body_that_stops_arriving_is_given_up() {
        let body = Body::from_stream(futures::stream::pending::<Result<Bytes, std::io::Error>>());
        let options = HttpOptions { body_idle_secs: 0, ..HttpOptions::default() };
        let problem = impatient(body, options).collect().await.expect_err("never ends");
        assert_eq!(problem.document("r")["status"], 408);
        assert_eq!(problem.code(), "body_timeout");
    }

    #[tokio::test]
    async fn a_body_that_drips_is_given_up_although_it_never_pauses_for_long() {
        let drip = futures::stream::unfold((), |()| async {
            tokio::task::yield_now().await;
            Some((Ok::<_, std::io::Error>(Bytes::new()), ()))
        });
        let options = HttpOptions { body_timeout_secs: 0, ..HttpOptions::default() };
        let problem = impatient(Body::from_stream(drip), options).collect().await.expect_err("never ends");
        assert!(problem.document("r").to_string().contains("within 0 s"));
    }
}
