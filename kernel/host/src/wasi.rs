//! The harmless part of WASI.
//!
//! A Rust guest for wasm32-wasip2 imports cli, filesystem, clocks and random whether it uses them or not.
//! It gets clocks and randomness, an empty environment, no arguments, no files, and its output goes to
//! the plugin's log line by line. Sockets are not linked at all: an import of one is refused at push.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use wasmtime::component::{Linker, ResourceTable};
use wasmtime_wasi::cli::{IsTerminal, StdoutStream, WasiCli, WasiCliView};
use wasmtime_wasi::clocks::{WasiClocks, WasiClocksView};
use wasmtime_wasi::filesystem::{WasiFilesystem, WasiFilesystemView};
use wasmtime_wasi::p2::bindings;
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};
use wasmtime_wasi::random::{WasiRandom, WasiRandomCtx};
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};

use crate::caps::Drivers;
use crate::caps::log::Level;
use crate::state::{CallState, Identity};
use crate::tape::Start;

/// Random bytes one call of WASI may ask for; more would keep the thread for long.
const MOST_RANDOM: u64 = 1 << 20;
/// An unfinished line longer than this is written as it is.
const LONGEST_LINE: usize = 8 << 10;

/// What a store with WASI holds besides the capabilities' own state.
pub(crate) struct Wasi {
    ctx: WasiCtx,
    drivers: Arc<Drivers>,
    /// Whose words the output streams carry; an instance that is kept outlives one call.
    speaker: Speaker,
}

type Speaker = Arc<Mutex<Arc<Identity>>>;

impl Wasi {
    pub(crate) fn new(identity: &Arc<Identity>, drivers: &Arc<Drivers>) -> Self {
        let speaker: Speaker = Arc::new(Mutex::new(identity.clone()));
        let ctx = builder(&speaker, drivers).build();
        Self { ctx, drivers: drivers.clone(), speaker }
    }

    /// Takes time and randomness from where a recorded call began.
    pub(crate) fn start_at(&mut self, start: Start) {
        let mut builder = builder(&self.speaker, &self.drivers);
        builder.wall_clock(start.clock());
        builder.secure_random(start.random(0)).insecure_random(start.random(1));
        builder.insecure_random_seed(u128::from(start.seed));
        self.ctx = builder.build();
    }

    pub(crate) fn speak_for(&self, identity: &Arc<Identity>) {
        *self.speaker.lock() = identity.clone();
    }
}

fn builder(speaker: &Speaker, drivers: &Arc<Drivers>) -> WasiCtxBuilder {
    let stream = |level| LogStream::new(level, speaker, drivers);
    let mut builder = WasiCtxBuilder::new();
    builder.stdout(stream(Level::Info)).stderr(stream(Level::Warn));
    builder.allow_tcp(false).allow_udp(false).allow_ip_name_lookup(false);
    builder.max_random_size(MOST_RANDOM);
    builder
}

pub(crate) fn link(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    type T = CallState;
    wasmtime_wasi_io::add_to_linker_async(linker)?;
    bindings::clocks::wall_clock::add_to_linker::<T, WasiClocks>(linker, T::clocks)?;
    bindings::clocks::monotonic_clock::add_to_linker::<T, WasiClocks>(linker, T::clocks)?;
    bindings::random::random::add_to_linker::<T, WasiRandom>(linker, random)?;
    bindings::random::insecure::add_to_linker::<T, WasiRandom>(linker, random)?;
    bindings::random::insecure_seed::add_to_linker::<T, WasiRandom>(linker, random)?;
    bindings::filesystem::types::add_to_linker::<T, WasiFilesystem>(linker, T::filesystem)?;
    bindings::filesystem::preopens::add_to_linker::<T, WasiFilesystem>(linker, T::filesystem)?;
    bindings::cli::exit::add_to_linker::<T, WasiCli>(linker, T::cli)?;
    bindings::cli::environment::add_to_linker::<T, WasiCli>(linker, T::cli)?;
    bindings::cli::stdin::add_to_linker::<T, WasiCli>(linker, T::cli)?;
    bindings::cli::stdout::add_to_linker::<T, WasiCli>(linker, T::cli)?;
    bindings::cli::stderr::add_to_linker::<T, WasiCli>(linker, T::cli)?;
    bindings::cli::terminal_input::add_to_linker::<T, WasiCli>(linker, T::cli)?;
    bindings::cli::terminal_output::add_to_linker::<T, WasiCli>(linker, T::cli)?;
    bindings::cli::terminal_stdin::add_to_linker::<T, WasiCli>(linker, T::cli)?;
    bindings::cli::terminal_stdout::add_to_linker::<T, WasiCli>(linker, T::cli)?;
    bindings::cli::terminal_stderr::add_to_linker::<T, WasiCli>(linker, T::cli)?;
    Ok(())
}

/// A store whose linker has WASI is made with its context: both come from the same grant.
const MADE_TOGETHER: &str = "WASI is linked only into stores that have its context";

fn random(state: &mut CallState) -> &mut WasiRandomCtx {
    state.wasi.as_mut().expect(MADE_TOGETHER).ctx.random()
}

impl WasiView for CallState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi.as_mut().expect(MADE_TOGETHER).ctx, table: &mut self.table }
    }
}

impl wasmtime_wasi_io::IoView for CallState {
    fn table(&mut self) -> &mut ResourceTable {
        &mut self.table
    }
}

/// Standard output or error of a guest, cut into log lines.
#[derive(Clone)]
struct LogStream {
    level: Level,
    speaker: Speaker,
    drivers: Arc<Drivers>,
    pending: Arc<Mutex<Vec<u8>>>,
}

impl LogStream {
    fn new(level: Level, speaker: &Speaker, drivers: &Arc<Drivers>) -> Self {
        Self { level, speaker: speaker.clone(), drivers: drivers.clone(), pending: Arc::default() }
    }

    fn emit(&self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        if !text.trim_end().is_empty() {
            let who = self.speaker.lock().clone();
            self.drivers.log.write(&who, self.level, text.trim_end(), &[]);
        }
    }
}

impl IsTerminal for LogStream {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for LogStream {
    fn async_stream(&self) -> Box<dyn tokio::io::AsyncWrite + Send + Sync> {
        // Only WASI 0.3 guests ask for this form, and none can be linked.
        Box::new(tokio::io::sink())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[async_trait::async_trait]
impl Pollable for LogStream {
    async fn ready(&mut self) {}
}

impl OutputStream for LogStream {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        let mut pending = self.pending.lock();
        pending.extend_from_slice(&bytes);
        let complete = pending.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let rest = pending.split_off(complete);
        let lines = std::mem::replace(&mut *pending, rest);
        lines.split(|byte| *byte == b'\n').for_each(|line| self.emit(line));
        if pending.len() > LONGEST_LINE {
            self.emit(&std::mem::take(&mut *pending));
        }
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(64 << 10)
    }
}

impl Drop for LogStream {
    fn drop(&mut self) {
        // The last holder writes out a line that was never ended.
        if Arc::strong_count(&self.pending) == 1 {
            let rest = std::mem::take(&mut *self.pending.lock());
            self.emit(&rest);
        }
    }
}
