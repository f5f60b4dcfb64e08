//! A server that sends more than it should.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::future::BoxFuture;
use tokio::net::TcpListener;

use super::super::super::room::GiveRoom;
use super::*;

fn message(tag: u8, length: u32, body: &[u8]) -> Vec<u8> {
    [&[tag], (length + 4).to_be_bytes().as_slice(), body].concat()
}

/// Lets everybody in who says hello.
fn welcome() -> Vec<u8> {
    [message(b'R', 4, &[0; 4]), message(b'Z', 1, b"I")].concat()
}

/// Counts what it is asked for.
#[derive(Default)]
struct Asked(AtomicU64);

impl GiveRoom for Arc<Asked> {
    fn take(&self, bytes: u64) -> BoxFuture<'static, Taken> {
        self.0.fetch_add(bytes, Ordering::Relaxed);
        Box::pin(async { Box::new(()) as Taken })
    }
}

/// What comes of a connection to a server that says this, and how much memory was asked for.
async fn connected(says: Vec<u8>) -> (Result<(), SqlError>, u64) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a client");
        let _ = stream.read(&mut [0; 1024]).await;
        let _ = stream.write_all(&says).await;
        // Until the client has gone.
        while stream.read(&mut [0; 1024]).await.is_ok_and(|read| read > 0) {}
    });
    let server = Server {
        host: "h".to_owned(),
        user: "u".to_owned(),
        password: String::new(),
        database: "d".to_owned(),
        tls: TlsMode::Disable,
        root: None,
    };
    let asked = Arc::new(Asked::default());
    let room = Room::of(Arc::new(asked.clone()));
    let heard = async {
        let mut connection = Connection::open(&server, &[address], &room).await?;
        connection.receive().await.map(drop)
    };
    (heard.await, asked.0.load(Ordering::Relaxed))
}

#[tokio::test]
async fn a_message_is_judged_by_its_length_before_it_is_read() {
    let after_login = |tag, length| [welcome(), message(tag, length, b"")].concat();
    for (says, size) in [
        // Who has not let us in has little to say.
        (message(b'R', 100_000, b""), 100_004),
        (message(b'E', u32::MAX >> 1, b""), 0x7fff_ffff + 4),
        // What is no row is small, and a row has an end too.
        (after_login(b'E', 2 << 20), (2 << 20) + 4),
        (after_login(b'N', 2 << 20), (2 << 20) + 4),
        (after_login(b'D', 100 << 20), (100 << 20) + 4),
    ] {
        let (heard, asked) = connected(says).await;
        match heard {
            Err(SqlError::TooLarge(told)) => assert_eq!((told, asked), (size, 0)),
            // A length that is no number of the protocol's.
            Err(SqlError::Connect(_)) => assert!(size > 0x7fff_ffff),
            other => panic!("{size}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_large_row_waits_for_room_and_a_small_one_does_not() {
    let row = |size: usize| {
        let body = [1_u16.to_be_bytes().as_slice(), &(size as u32).to_be_bytes(), &vec![b'x'; size]].concat();
        [welcome(), message(b'D', body.len() as u32, &body)].concat()
    };
    assert_eq!(connected(row(1000)).await, (Ok(()), 0));
    let (heard, asked) = connected(row(20 << 20)).await;
    assert_eq!(heard, Ok(()));
    assert!((40 << 20..41 << 20).contains(&asked), "{asked}");
}
