//! Request bodies with bounds on size and time.
//!
//! Four bounds: the size, the pause between two pieces, the speed on average, and the time of the whole. The last
//! two catch a client that drips a byte at a time to hold a connection and a half-written file.
//!
//! A body that is read into memory is counted: beyond a few pages it waits for room before the first byte is read,
//! in turn by tenant, and no tenant gets all of the room. What may be large (a component, the input of a call) does
//! not come this way; it goes to a file as it arrives.
//!
//! A client that sends too much is answered at once, and what it still sends is thrown away for a short while:
//! were the connection cut while it writes, it would see a reset instead of the answer.

use std::time::Duration;

use axum::body::{Body, BodyDataStream, HttpBody};
use axum::http::{HeaderMap, StatusCode, header};
use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use noetl_contract::Tenant;
use tokio::time::{Instant, timeout, timeout_at};

use crate::app::Cx;
use crate::options::HttpOptions;
use crate::problem::Problem;

/// How long a refused body is thrown away.
const DISCARD_TIME: Duration = Duration::from_secs(10);

/// Bodies up to this size need no room: all connections together hold less than one large upload.
const SMALL: u64 = 64 << 10;

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
    began: Instant,
    deadline: Instant,
    seconds: u64,
    idle: Duration,
    slowest: u64,
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
            began: Instant::now(),
            deadline: Instant::now() + Duration::from_secs(options.body_timeout_secs),
            seconds: options.body_timeout_secs,
            idle: Duration::from_secs(options.body_idle_secs),
            slowest: options.body_min_bytes_per_sec,
        })
    }

    /// Counts the time from now on.
    fn restart(&mut self, options: &HttpOptions) {
        self.began = Instant::now();
        self.deadline = self.began + Duration::from_secs(options.body_timeout_secs);
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
                self.check_speed()?;
                Ok(Some(bytes))
            }
        }
    }

    /// A client that never pauses for long can still be too slow.
    fn check_speed(&self) -> Result<(), Problem> {
        let counted = self.began.elapsed().saturating_sub(self.idle).as_secs();
        if self.read >= counted.saturating_mul(self.slowest) {
            return Ok(());
        }
        Err(too_slow(format!("the body arrives at less than {} bytes a second", self.slowest)))
    }

    /// Bytes that the whole body can come to.
    fn most(&self) -> u64 {
        self.announced.unwrap_or(self.bound.bytes)
    }

    /// The whole body in memory.
    pub async fn collect(mut self) -> Result<Bytes, Problem> {
        // What is announced fits the bound; untouched memory costs nothing if it never arrives.
        let mut whole = BytesMut::with_capacity(usize::try_from(self.announced.unwrap_or(0)).unwrap_or(0));
        while let Some(bytes) = self.next().await? {
            whole.extend_from_slice(&bytes);
        }
        Ok(whole.freeze())
    }
}

/// The whole body of a request in memory, once there is room for it; the room is held as long as the request.
pub async fn whole(cx: &mut Cx, bound: Bound) -> Result<Bytes, Problem> {
    let mut reader = BodyReader::new(&cx.headers, cx.body.take(), bound, &cx.app.options)?;
    if reader.most() > SMALL {
        let tenant = cx.caller.as_ref().and_then(|caller| caller.tenant().cloned()).unwrap_or_else(Tenant::main);
        cx.room = Some(cx.app.room.reserve(&tenant, reader.most(), 0, false).await);
        // Waiting for room is not the client's slowness.
        reader.restart(&cx.app.options);
    }
    reader.collect().await
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

    #[tokio::test]
    async fn a_body_that_is_slower_than_the_least_speed_is_given_up() {
        let options = HttpOptions { body_idle_secs: 3, body_min_bytes_per_sec: 2, ..HttpOptions::default() };
        let mut reader = impatient(Body::empty(), options);
        reader.read = 10;
        reader.began = Instant::now() - Duration::from_secs(7);
        assert!(reader.check_speed().is_ok(), "8 bytes are due in the 4 s that count");
        reader.began = Instant::now() - Duration::from_secs(10);
        let problem = reader.check_speed().expect_err("14 bytes are due");
        assert!(problem.document("r").to_string().contains("less than 2 bytes a second"));
    }
}
