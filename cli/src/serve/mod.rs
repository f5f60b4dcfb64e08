//! `noetl serve`: a server on one data folder, from start to a graceful stop.
//!
//! Order matters. The configuration is read whole before anything is touched; the folder's lock is taken before the
//! port, so that of two servers on one folder the second never answers; the address is announced only when the kernel
//! is ready to answer. SIGINT and SIGTERM let open requests finish.

mod announce;
mod descriptors;
pub mod embedded;
mod machine_code;
pub mod options;

use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use clap::Args;
use noetl_contract::manifest::World;
use noetl_dispatch::{Kernel, Options};
use noetl_registry::Embedded;
use noetl_registry::tokens::Admin;
use noetl_store::folder::{DataFolder, FolderError};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;
use tracing_subscriber::EnvFilter;

use crate::args::{Context, SettingFlag};
use crate::client::TOKEN_FILE;
use crate::config::load::Settings;
use crate::config::{File, load_all};
use crate::failure::{Exit, Failure, Outcome};
use announce::Announcement;
use machine_code::MachineCode;

#[derive(Debug, Args)]
pub struct Serve {
    #[command(flatten)]
    file: File,
    /// Address to listen on; port 0 takes any free one.
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,
}

impl Serve {
    pub fn run(self, context: &Context) -> Outcome {
        let settings = load_all(&self.file, self.flags(context))?;
        start_log(&settings)?;
        let data = match settings.text("server.data") {
            "" => context.target.data.clone(),
            data => PathBuf::from(data),
        };
        let runtime =
            tokio::runtime::Runtime::new().map_err(|error| Failure::failed(format!("start the runtime: {error}")))?;
        let ended = runtime.block_on(serve(&settings, data, context));
        // The kernel goes last and outside of the runtime, because it waits for its own threads when it is dropped.
        drop(runtime);
        ended.map(drop)
    }

    fn flags(&self, context: &Context) -> Vec<SettingFlag> {
        let mut flags = context.setting_flags();
        if let Some(listen) = self.listen {
            flags.push(("server.listen", listen.to_string(), "--listen"));
        }
        flags
    }
}

async fn serve(settings: &Settings, data: PathBuf, context: &Context) -> Outcome<Arc<Kernel>> {
    // Asked for first, so that a signal during the start is kept and stops the server as soon as it is up.
    let stop = stop_signal()?;
    descriptors::raise();
    let folder = open_folder(&data)?;
    let listen = settings.text("server.listen");
    let listener = TcpListener::bind(listen).await.map_err(|error| {
        Failure::failed(format!("cannot listen on {listen}: {error}"))
            .next("choose another address with --listen; port 0 takes any free one")
    })?;
    let address = listener.local_addr().map_err(|error| Failure::failed(format!("find the address: {error}")))?;
    let Begun { kernel, code, .. } = start_kernel(options::kernel(settings), folder).await?;
    ensure_admin(&kernel, &data, context).await?;
    if !address.ip().is_loopback() {
        context.output.warn(format_args!(
            "{address} is reached from other machines, and tokens travel in the clear over plain HTTP: put TLS in front"
        ));
    }
    let url = format!("http://{}", reachable(address));
    let announcement = Announcement::write(&data, &url)?;
    context.output.say(format_args!("listening on {url}"));
    tokio::spawn(compile_ahead(kernel.clone(), code));
    let ended = noetl_http::serve(listener, kernel.clone(), options::http(settings), stop).await;
    drop(announcement);
    // After the requests: whoever was answered has what the engine promised in the log.
    kernel.engine().stop().await;
    ended.map_err(|error| Failure::failed(format!("the server ended: {error}")))?;
    Ok(kernel)
}

/// Takes the folder's lock.
pub fn open_folder(data: &Path) -> Outcome<DataFolder> {
    DataFolder::open(data).map_err(|error| match error {
        FolderError::InUse { .. } => Failure::new(Exit::Conflict, error.to_string()),
        FolderError::Io { .. } => {
            Failure::failed(error.to_string()).next("name a folder this user can write with --data")
        }
    })
}

/// A kernel that has been started.
pub struct Begun {
    pub kernel: Arc<Kernel>,
    /// Ends when the machine code of its own components is there and kept; nothing when it was there already.
    pub compiling: Option<JoinHandle<()>>,
    /// Keeps what is compiled later, and where that is.
    code: Option<(MachineCode, PathBuf)>,
}

impl Begun {
    /// Keeps what calls had compiled, such as an interpreter.
    pub fn keep(&self) {
        if let Some((code, cache)) = &self.code {
            code.keep(cache);
        }
    }
}

/// A kernel with the components of this binary.
pub async fn start_kernel(options: Options, folder: DataFolder) -> Outcome<Begun> {
    // Fails only when a provider is already installed, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let data = folder.path().display().to_string();
    let embedded = embedded::all()?;
    let (code, cache) = (MachineCode::of_user(&embedded), folder.cache_dir());
    let warm = code.as_ref().is_some_and(|code| code.bring(&cache));
    let started = Kernel::start(options, folder, embedded).await;
    let kernel = started.map_err(|error| Failure::failed(format!("cannot start on {data}: {}", chain(&error))))?;
    let code = code.map(|code| (code, cache));
    let compiling = code
        .clone()
        .filter(|_| !warm)
        .map(|(code, cache)| tokio::spawn(keep_code(Arc::downgrade(&kernel), code, cache)));
    Ok(Begun { kernel, compiling, code })
}

/// The interpreters of this binary, for a kernel that runs a single plugin of source text.
pub struct Interpreters {
    pub embedded: Vec<Embedded>,
    code: Option<MachineCode>,
    cache: PathBuf,
}

impl Interpreters {
    /// With their machine code, as far as an earlier run kept it.
    pub fn bring(folder: &DataFolder) -> Outcome<Self> {
        let mut embedded = embedded::all()?;
        let (code, cache) = (MachineCode::of_user(&embedded), folder.cache_dir());
        embedded.retain(|embedded| embedded.manifest.world == World::Interpreter);
        if let Some(code) = &code {
            code.bring(&cache);
        }
        Ok(Self { embedded, code, cache })
    }

    /// Keeps what had to be compiled.
    pub fn keep(&self) {
        if let Some(code) = &self.code {
            code.keep(&self.cache);
        }
    }
}

/// Keeps what was compiled, once all of it is.
async fn keep_code(kernel: Weak<Kernel>, code: MachineCode, cache: PathBuf) {
    loop {
        let Some(kernel) = kernel.upgrade() else { return };
        if kernel.readiness().ready {
            break;
        }
        drop(kernel);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    code.keep(&cache);
}

/// Compiles the interpreters where no run before did, so that the first push of source text is live at once.
async fn compile_ahead(kernel: Arc<Kernel>, code: Option<(MachineCode, PathBuf)>) {
    kernel.precompile_interpreters().await;
    if let Some((code, cache)) = code {
        code.keep(&cache);
    }
}

/// The administrator's token, where commands on this machine look for it.
async fn ensure_admin(kernel: &Kernel, data: &Path, context: &Context) -> Outcome {
    let file = data.join(TOKEN_FILE);
    match kernel.tokens().ensure_admin(&file).await {
        Ok(Admin::Created(_)) => {
            context.output.say(format_args!("made the administrator's token in {}", file.display()))
        }
        Ok(Admin::Reused(_)) => {}
        Ok(Admin::Revoked(_)) => context.output.warn(format_args!(
            "the administrator's token in {} is revoked; delete the file and start again to have another made",
            file.display()
        )),
        Err(error) => return Err(Failure::failed(error.to_string())),
    }
    Ok(())
}

/// The address a command on this machine can use: an unspecified one listens on loopback too.
fn reachable(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(v4) if v4.ip().is_unspecified() => SocketAddr::from(([127, 0, 0, 1], v4.port())),
        SocketAddr::V6(v6) if v6.ip().is_unspecified() => SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, v6.port())),
        other => other,
    }
}

fn stop_signal() -> Outcome<impl Future<Output = ()> + Send + 'static> {
    let listen = |kind| signal(kind).map_err(|error| Failure::failed(format!("wait for signals: {error}")));
    let (mut interrupt, mut terminate) = (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        tracing::info!("stopping: open requests may finish");
    })
}

/// The server's own log, on stderr.
pub fn start_log(settings: &Settings) -> Outcome {
    let filter = EnvFilter::new(settings.text("log.level"));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(|| Masked(std::io::stderr()));
    let started = match settings.text("log.format") {
        "json" => log.json().try_init(),
        _ => log.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).try_init(),
    };
    started.map_err(|error| Failure::failed(format!("start the log: {error}")))
}

/// Lines without secrets of the wallet, whoever wrote them. Each line comes in one piece.
struct Masked<W>(W);

impl<W: std::io::Write> std::io::Write for Masked<W> {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        self.0.write_all(noetl_scrub::known::mask_for_operator(&text).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(&format!(": {cause}"));
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_log_has_no_secret_in_it() {
        use std::io::Write as _;
        noetl_scrub::known::learn_for("logged", "logged-secret");
        let mut line = Vec::new();
        Masked(&mut line).write_all(b"GET /?t=logged-secret\n").expect("memory");
        assert_eq!(line, b"GET /?t=[REDACTED]\n");
    }

    #[test]
    fn the_announced_address_can_be_reached() {
        let announced = |text: &str| reachable(text.parse().expect("an address")).to_string();
        assert_eq!(announced("0.0.0.0:1"), "127.0.0.1:1");
        assert_eq!(announced("[::]:1"), "[::1]:1");
        assert_eq!(announced("10.0.0.1:1"), "10.0.0.1:1");
    }
}
