//! The accept loop.
//!
//! Our own instead of axum's, because a server that strangers can reach needs what that one leaves out: a
//! time limit on the head of a request, a bound on open connections, and an end of the drain.
//!
//! Overload: with all connections taken, new ones wait in the kernel's backlog. An error of `accept` (for
//! instance no more file descriptors) is logged, and the loop goes on after a pause. Shutdown: no new
//! connections, idle ones close, streams of log lines end, running requests get `drain_secs` to finish and are
//! dropped after that.

use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use noetl_dispatch::{Budget, Kernel};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use crate::app::App;
use crate::envelope;
use crate::metrics::HttpMetrics;
use crate::options::HttpOptions;

/// Pause after an error of `accept` that a retry at once would only repeat.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serve the API on `listener` until `shutdown` is ready and open requests are done.
pub async fn serve(
    listener: TcpListener,
    kernel: Arc<Kernel>,
    options: HttpOptions,
    shutdown: impl Future<Output = ()>,
) -> std::io::Result<()> {
    let loopback = listener.local_addr()?.ip().is_loopback();
    let metrics_open = options.metrics_open.unwrap_or(loopback);
    let drain = Duration::from_secs(options.drain_secs);
    let slots = Arc::new(Semaphore::new(options.max_connections));
    let (close, closing) = watch::channel(false);
    let metrics = kernel.register_metrics(HttpMetrics::register);
    let room = Budget::new(options.body_memory_bytes, 0, 0);
    let app = Arc::new(App { kernel, options, metrics, metrics_open, room, closing });

    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            () = &mut shutdown => break,
            Some(_) = connections.join_next() => continue,
            accepted = accept(&listener, &slots) => accepted,
        };
        match accepted {
            Ok((stream, slot)) => {
                let connection = connection(&app, stream);
                let watched = graceful.watch(connection);
                connections.spawn(async move {
                    if let Err(error) = watched.await {
                        tracing::debug!(%error, "a connection ended early");
                    }
                    drop(slot);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    close.send_replace(true);
    if tokio::time::timeout(drain, graceful.shutdown()).await.is_err() {
        tracing::warn!(seconds = drain.as_secs(), "requests that did not finish in time were dropped");
    }
    connections.shutdown().await;
    Ok(())
}

type Slot = tokio::sync::OwnedSemaphorePermit;

/// Waits for a free slot before it accepts. Dropping the future at any time loses no connection.
async fn accept(listener: &TcpListener, slots: &Arc<Semaphore>) -> std::io::Result<(TcpStream, Slot)> {
    let slot = slots.clone().acquire_owned().await.map_err(std::io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    // Answers are small and written whole; waiting to fill a packet only adds delay. A connection that is
    // gone already refuses the option and ends by itself.
    let _ = stream.set_nodelay(true);
    Ok((stream, slot))
}

fn connection(
    app: &Arc<App>,
    stream: TcpStream,
) -> impl hyper_util::server::graceful::GracefulConnection<Error = hyper::Error> + Send + 'static {
    let service = {
        let app = app.clone();
        service_fn(move |request: hyper::Request<Incoming>| {
            let app = app.clone();
            async move { Ok::<_, std::convert::Infallible>(envelope::handle(app, request.map(axum::body::Body::new)).await) }
        })
    };
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_secs(app.options.header_timeout_secs))
        .serve_connection(TokioIo::new(stream), service)
}
