//! What stands between the client and a server, so that a server cannot fill the memory.
//!
//! The client keeps what it is sent until it has a whole message, and a message is as long as the server says; it keeps whole
//! messages until somebody reads them. It offers no bound, and connects by itself. So it connects to a port of this
//! machine, which serves this one connection and no other, and from there on bytes are passed on both ways: those of the
//! server as far as there is an [`Allowance`]. What is beyond it stays in the server's own buffers.
//!
//! A client that lost its connection tries the port once more, and says who it is to whoever answers there. So the port is
//! held until the client has given up ([`LINGER`]), and whoever else connects is closed without a word.
//!
//! The bytes are not looked at: they may be encrypted, which is between the client and the server.
//!
//! Invariant: of a server's bytes that nobody has asked for or taken yet there are never more in memory than [`HELLO`] while it
//! is connected to, [`WINDOW`] for each function that runs, and [`IDLE`] when none does.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::NatsError;

/// To say who it is, with certificates.
const HELLO: u64 = 256 << 10;
/// Of one function, beyond what it has taken out already.
pub(super) const WINDOW: u64 = 16 << 20;
/// Between functions: the server asks now and then whether somebody is there.
const IDLE: u64 = 64 << 10;
/// A function that takes nothing out for so long while there is no room is given up.
const STALL: Duration = Duration::from_secs(2);
const PIECE: usize = 64 << 10;
/// How long the port is held when nobody needs the connection any more: the client notices at once, and its last try is over
/// in a moment.
const LINGER: Duration = Duration::from_secs(1);
/// Before another try to accept when there is no descriptor for it.
const BREATH: Duration = Duration::from_millis(100);

/// A connection to a server, and the port that leads to it.
pub(super) struct Relay {
    pub(super) address: SocketAddr,
    pub(super) allowance: Arc<Allowance>,
    _open: DropGuard,
}

impl Relay {
    /// Connects to the first of these that answers.
    pub(super) async fn start(sockets: &[SocketAddr], time: Duration) -> Result<Self, NatsError> {
        let failed = |error: io::Error| NatsError::Unavailable(format!("no connection to the server: {error}"));
        let far = tokio::time::timeout(time, TcpStream::connect(sockets)).await;
        let far = far.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())).map_err(failed)?;
        Self::before(far).await.map_err(failed)
    }

    async fn before(far: TcpStream) -> io::Result<Self> {
        far.set_nodelay(true)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let allowance = Arc::new(Allowance::new());
        let counted = allowance.clone();
        let open = CancellationToken::new();
        let closed = open.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = serve(&listener, far, &counted) => {}
                () = closed.cancelled() => {}
            }
            let _over = tokio::time::timeout(LINGER, turn_away(&listener)).await;
        });
        Ok(Self { address, allowance, _open: open.drop_guard() })
    }
}

/// The first who connects, and nobody after it, also when it has gone.
async fn serve(listener: &TcpListener, far: TcpStream, allowance: &Allowance) {
    let Ok((near, _)) = listener.accept().await else { return };
    tokio::join!(pass_on(near, far, allowance), turn_away(listener));
}

/// Closes whoever connects, for ever.
async fn turn_away(listener: &TcpListener) {
    loop {
        if listener.accept().await.is_err() {
            tokio::time::sleep(BREATH).await;
        }
    }
}

/// Until one side has ended.
async fn pass_on(near: TcpStream, far: TcpStream, allowance: &Allowance) {
    // Only slower without it.
    let _set = near.set_nodelay(true);
    let (near_in, mut near_out) = near.into_split();
    let (mut far_in, mut far_out) = far.into_split();
    let mut near_in = BufReader::with_capacity(PIECE, near_in);
    let sending = tokio::io::copy_buf(&mut near_in, &mut far_out);
    let receiving = async {
        let mut piece = vec![0; PIECE];
        loop {
            let room = allowance.room().await.min(PIECE);
            let Ok(count @ 1..) = far_in.read(&mut piece[..room]).await else { return };
            allowance.spend(count as u64);
            if near_out.write_all(&piece[..count]).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        _ = sending => {}
        () = receiving => {}
    }
}

/// How many bytes the server may still send.
pub(super) struct Allowance {
    state: Mutex<State>,
    more: Notify,
    over: Notify,
}

struct State {
    left: u64,
    /// Functions that run.
    working: u64,
    /// Somebody waits for what there is no room for.
    exhausted: bool,
}

impl Allowance {
    fn new() -> Self {
        let state = State { left: HELLO, working: 0, exhausted: false };
        Self { state: Mutex::new(state), more: Notify::new(), over: Notify::new() }
    }

    /// For a function, until what comes back is dropped.
    pub(super) fn begin(&self) -> Working<'_> {
        let mut state = self.state.lock();
        state.working += 1;
        // What the connecting left over comes on top, and no more: functions that overlap must not save up for later ones.
        state.left = (state.left + WINDOW).min(WINDOW * state.working + HELLO);
        drop(state);
        self.more.notify_one();
        Working(self)
    }

    /// A function has taken that many bytes out.
    pub(super) fn taken(&self, bytes: u64) {
        let mut state = self.state.lock();
        state.left = (state.left + bytes).min(WINDOW * state.working.max(1));
        drop(state);
        self.more.notify_one();
    }

    pub(super) fn is_exhausted(&self) -> bool {
        self.state.lock().exhausted
    }

    /// Answers when a function waits for more than there is room for.
    pub(super) async fn exhausted(&self) {
        loop {
            let mut over = pin!(self.over.notified());
            // Before the look, so that nothing between the two is missed.
            over.as_mut().enable();
            if self.is_exhausted() {
                return;
            }
            over.await;
        }
    }

    fn spend(&self, bytes: u64) {
        let mut state = self.state.lock();
        state.left = state.left.saturating_sub(bytes);
    }

    fn left(&self) -> usize {
        usize::try_from(self.state.lock().left).unwrap_or(usize::MAX)
    }

    /// Waits until there is some. There is one that asks.
    async fn room(&self) -> usize {
        loop {
            let left = self.left();
            if left > 0 {
                return left;
            }
            // A notice that came since then is kept for the one who asks.
            if tokio::time::timeout(STALL, self.more.notified()).await.is_err() {
                self.give_up();
            }
        }
    }

    fn give_up(&self) {
        let mut state = self.state.lock();
        if state.left == 0 && state.working > 0 {
            state.exhausted = true;
            drop(state);
            self.over.notify_waiters();
        }
    }
}

/// A function that runs.
pub(super) struct Working<'a>(&'a Allowance);

impl Drop for Working<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.working -= 1;
        // What this one did not use goes with it, also while others run.
        state.left = if state.working == 0 { IDLE } else { state.left.min(WINDOW * state.working) };
        drop(state);
        self.0.more.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn a_server_gets_rid_of_what_there_is_room_for_and_no_more() {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let address = server.local_addr().expect("an address");
        let flood = tokio::spawn(async move {
            let (mut stream, _) = server.accept().await.expect("somebody");
            let piece = vec![b'x'; PIECE];
            while stream.write_all(&piece).await.is_ok() {}
        });
        let relay = Relay::start(&[address], Duration::from_secs(60)).await.expect("connected");
        let mut near = TcpStream::connect(relay.address).await.expect("the port of the relay");
        let mut got = vec![0; HELLO as usize];
        near.read_exact(&mut got).await.expect("the hello");
        let mut one = [0; 1];
        assert!(near.read(&mut one).now_or_never().is_none(), "there is no room for more");
        turned_away(relay.address).await;
        let working = relay.allowance.begin();
        let mut got = vec![0; WINDOW as usize];
        near.read_exact(&mut got).await.expect("what a function may get");
        assert!(near.read(&mut one).now_or_never().is_none());
        relay.allowance.taken(1);
        near.read_exact(&mut one).await.expect("as much as was taken out");
        relay.allowance.give_up();
        relay.allowance.exhausted().await;
        drop(working);
        let port = relay.address;
        drop(relay);
        turned_away(port).await;
        flood.await.expect("the server is told that nobody reads");
    }

    /// The port is still there, so nobody else can have it, and it is one connection's.
    async fn turned_away(port: SocketAddr) {
        let mut other = TcpStream::connect(port).await.expect("the port is held");
        assert_eq!(other.read(&mut [0; 1]).await.unwrap_or_default(), 0, "nobody speaks to another one");
    }

    #[tokio::test]
    async fn the_port_is_held_when_the_server_has_gone() {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let address = server.local_addr().expect("an address");
        let relay = Relay::start(&[address], Duration::from_secs(60)).await.expect("connected");
        let mut near = TcpStream::connect(relay.address).await.expect("the port of the relay");
        drop(server.accept().await.expect("somebody"));
        assert_eq!(near.read(&mut [0; 1]).await.unwrap_or_default(), 0, "the client is told");
        turned_away(relay.address).await;
    }

    #[test]
    fn what_was_not_used_is_not_kept_for_later() {
        let allowance = Allowance::new();
        let (one, two) = (allowance.begin(), allowance.begin());
        assert_eq!(allowance.left() as u64, HELLO + 2 * WINDOW);
        allowance.taken(10 * WINDOW);
        assert_eq!(allowance.left() as u64, 2 * WINDOW);
        drop(one);
        allowance.spend(2 * WINDOW);
        assert!(!allowance.is_exhausted());
        allowance.give_up();
        assert!(allowance.is_exhausted());
        drop(two);
        assert_eq!(allowance.left() as u64, IDLE);
        let mut running = allowance.begin();
        for _ in 0..10 {
            // Each ends when the next one runs already, so there is never a moment without any.
            let next = allowance.begin();
            drop(std::mem::replace(&mut running, next));
        }
        assert_eq!(allowance.left() as u64, WINDOW, "functions that overlap save nothing up");
        drop(running);
        let idle = Allowance::new();
        idle.spend(HELLO);
        idle.give_up();
        assert!(!idle.is_exhausted(), "nobody waits for anything");
    }
}
