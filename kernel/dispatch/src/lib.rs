//! Dispatch: from (tenant, service) to the answer of a component.
//!
//! It joins the catalog (which version serves whom), the host (which runs it) and the store (where its
//! effects go). It knows worlds, never a plugin by name.
//!
//! Invariants:
//! 1. A version serves only after its machine code is ready: a switch never makes a caller wait for a
//!    compiler ([`push`], [`switch`]).
//! 2. A call runs to its end on the version it was given; the next call takes the new one.
//! 3. A call's staged writes are committed in one record after it succeeded, or not at all ([`calls`]).
//! 4. A version that keeps faulting is taken back or set aside, visibly ([`health`](self)).
//! 5. A credential is opened for one use, and audited before ([`wallet`]).
//! 6. No module becomes ready of bytes that lack a signature the operator wants (`signed`).

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use noetl_contract::{CapabilitySet, Limits};
use noetl_host::caps::files::Files;
use noetl_host::caps::http_client::{Direct, Outbound};
use noetl_host::caps::nats::Connections;
use noetl_host::caps::process::Programs;
use noetl_host::caps::sql::{Databases, SqlOptions};
use noetl_host::caps::{Drivers, metrics::CustomMetrics};
use noetl_host::compile::CompileOptions;
use noetl_host::egress::Addresses;
use noetl_host::{Host, HostOptions};
use noetl_registry::signatures::SignerPolicy;
use noetl_registry::tokens::Tokens;
use noetl_registry::{Catalog, Embedded};
use noetl_store::folder::DataFolder;
use noetl_store::index::Index;
use noetl_store::log::Log;
use noetl_store::log::file::{FileLog, FileLogOptions};
use noetl_store::payloads::Payloads;
use noetl_store::wallet::keys::KeySource;
use noetl_store::wallet::{Retention, Vault};
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

pub mod calls;
pub mod case;
mod described;
pub mod engine;
mod error;
mod health;
mod heard;
mod logbook;
pub mod push;
mod signed;
mod sources;
pub mod switch;
pub mod wallet;

pub use calls::{Call, CallInput, CallOutput, Reply};
pub use described::{Tool, ToolError};
pub use error::{CallError, PushError, StartError, SwitchError, catalog_status};
pub use health::RollbackOptions;
pub use heard::Ear;
pub use logbook::{LogBook, LogFilter, LogLine};
pub use noetl_host::caps::log::Level;
pub use noetl_host::caps::payload::{Payload, Writer};
pub use noetl_host::caps::process::Shell;
pub use noetl_host::fair::{Budget, Reservation};
pub use noetl_host::{Failure, FaultClass, HostCall, Script, caps::http_client, caps::sql, compile};
pub use push::{Push, Pushed};

use engine::{Engine, EngineOptions};
use health::Health;
use logbook::BookSink;
use wallet::Keeper;

/// Everything an operator can set about the kernel.
#[derive(Clone)]
pub struct Options {
    pub threads: usize,
    pub shards: usize,
    pub memory_budget: u64,
    pub system_reserve: u64,
    /// No plugin gets more than this.
    pub ceiling: Limits,
    pub max_modules: usize,
    pub max_instances: u32,
    pub compile: CompileOptions,
    pub denied: CapabilitySet,
    /// Whose signatures which paths want.
    pub signers: SignerPolicy,
    pub http_private_addresses: bool,
    /// What plugins may read with the capability `files`; `{tenant}` in it is the tenant's name.
    pub files: Option<String>,
    pub sql: SqlOptions,
    /// Whether requests may ask not to have a server's certificate verified.
    pub insecure_tls: bool,
    /// Programs of this machine; none may run when absent.
    pub shell: Option<Shell>,
    pub max_payload: u64,
    /// Bytes that one call can have in temporary files at once.
    pub max_temporary: u64,
    pub rollback: RollbackOptions,
    pub log_lines: usize,
    /// Replaces the real way out; for a harness that answers requests itself.
    pub outbound: Option<Arc<dyn Outbound>>,
    pub engine: EngineOptions,
    /// Where the key of the wallet is; none: a file of the data folder, made at the first start.
    pub wallet_key: Option<KeySource>,
    /// How long uses and former values of credentials are remembered.
    pub wallet_retention: Retention,
}

impl Options {
    /// Defaults for this machine; `program` is reached with `arguments` as the compiler process.
    pub fn new(program: PathBuf, arguments: Vec<String>) -> Self {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Self {
            threads: cores,
            shards: cores,
            memory_budget: 2 << 30,
            system_reserve: 256 << 20,
            ceiling: Limits {
                cpu_ms: 60_000,
                wall_ms: 300_000,
                memory_bytes: 2 << 30,
                output_bytes: 512 << 20,
                host_calls: 10_000_000,
                host_bytes: 4 << 30,
            },
            max_modules: 256,
            max_instances: 256,
            compile: CompileOptions {
                program,
                arguments,
                timeout: std::time::Duration::from_secs(60),
                memory_bytes: 2 << 30,
                jobs: 1,
            },
            denied: CapabilitySet::EMPTY,
            signers: SignerPolicy::default(),
            http_private_addresses: false,
            files: None,
            sql: SqlOptions::default(),
            insecure_tls: false,
            shell: None,
            max_payload: 4 << 30,
            max_temporary: 4 << 30,
            rollback: RollbackOptions::default(),
            log_lines: 10_000,
            outbound: None,
            engine: EngineOptions::default(),
            wallet_key: None,
            wallet_retention: Retention::default(),
        }
    }
}

/// Whether the server should be sent calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Readiness {
    pub ready: bool,
    pub detail: String,
}

/// A running kernel. Dropping it closes the data folder.
pub struct Kernel {
    catalog: Arc<Catalog>,
    tokens: Arc<Tokens>,
    payloads: Payloads,
    index: Arc<Index>,
    log: Arc<FileLog>,
    host: Host,
    health: Health,
    held: switch::Held,
    logbook: Arc<LogBook>,
    wallet: Arc<Keeper>,
    rollback: RollbackOptions,
    signers: SignerPolicy,
    registry: Mutex<Registry>,
    rollbacks: Counter,
    warm: AtomicBool,
    /// Makes call ids differ between starts and between calls.
    boot: u64,
    calls: AtomicU64,
    /// Set once, right after the kernel it needs is there.
    engine: OnceLock<Engine>,
    folder: DataFolder,
}

impl Kernel {
    /// Opens everything in the data folder and starts making the components in use ready.
    pub async fn start(options: Options, folder: DataFolder, embedded: Vec<Embedded>) -> Result<Arc<Self>, StartError> {
        let mut registry = Registry::default();
        let log = FileLog::open(folder.log_dir(), FileLogOptions::default())?;
        let payloads = Payloads::open(folder.payloads_dir()).map_err(StartError::Payloads)?;
        let port: Arc<dyn Log> = log.clone();
        let index = Index::open(folder.index_file(), port.clone())?;
        let catalog = Catalog::open(port.clone(), payloads.clone(), embedded)?;
        let tokens = Tokens::open(port).map_err(|error| StartError::Tokens(error.into()))?;
        let logbook = Arc::new(LogBook::new(options.log_lines));
        let addresses = Addresses { private: options.http_private_addresses };
        let http: Arc<dyn Outbound> = match options.outbound.clone() {
            Some(outbound) => outbound,
            None => Arc::new(Direct::new(addresses, options.insecure_tls)?),
        };

        let key = options.wallet_key.clone().unwrap_or_else(|| KeySource::File(folder.wallet_key_file()));
        let vault = Vault::open(&folder.wallet_file(), key, options.wallet_retention).await?;
        let ear = heard::Ear(vault.seals().clone());
        let wallet = Arc::new(Keeper::new(vault, http.clone(), Arc::new(ear.clone())));
        wallet.learn_all().await?;
        let drivers = Drivers {
            log: Arc::new(BookSink(logbook.clone())),
            metrics: CustomMetrics::default(),
            index: index.clone(),
            payloads: payloads.clone(),
            http,
            seals: wallet.seals().clone(),
            wallet: Arc::new(heard::Heard { wallet: wallet.clone(), ear }),
            files: Files::new(options.files.as_deref()),
            sql: Databases::new(addresses, options.sql.clone()),
            nats: Connections::new(addresses),
            programs: Programs::new(options.shell.clone()),
            max_payload: options.max_payload,
            max_temporary: options.max_temporary,
        };
        let host = Host::start(host_options(&options, &folder), drivers, &mut registry)?;
        let rollbacks = register(&mut registry, &logbook);
        let kernel = Arc::new(Self {
            catalog,
            tokens,
            payloads,
            index,
            log,
            host,
            health: Health::default(),
            held: switch::Held::default(),
            logbook,
            wallet,
            rollback: options.rollback,
            signers: options.signers,
            registry: Mutex::new(registry),
            rollbacks,
            warm: AtomicBool::new(false),
            boot: boot_number(),
            calls: AtomicU64::new(0),
            engine: OnceLock::new(),
            folder,
        });
        // What was tried and not kept, deleted, or compiled by another release.
        kernel.host.keep_code(kernel.code_in_use()).await;
        kernel.resume_trials();
        let engine = Engine::open(&kernel, &options.engine)?;
        kernel.engine.get_or_init(|| engine);
        tokio::spawn(switch::follow_catalog(Arc::downgrade(&kernel)));
        Ok(kernel)
    }

    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    pub fn engine(&self) -> &Engine {
        self.engine.get().expect("it is set before anybody is given the kernel")
    }

    pub fn tokens(&self) -> &Arc<Tokens> {
        &self.tokens
    }

    pub fn payloads(&self) -> &Payloads {
        &self.payloads
    }

    pub fn index(&self) -> &Arc<Index> {
        &self.index
    }

    pub fn log(&self) -> &Arc<FileLog> {
        &self.log
    }

    pub fn logbook(&self) -> &Arc<LogBook> {
        &self.logbook
    }

    pub fn wallet(&self) -> &Arc<Keeper> {
        &self.wallet
    }

    pub fn folder(&self) -> &DataFolder {
        &self.folder
    }

    /// For other layers to add their own families to.
    pub fn register_metrics<T>(&self, register: impl FnOnce(&mut Registry) -> T) -> T {
        register(&mut self.registry.lock())
    }

    /// All metrics in the OpenMetrics text format.
    pub fn render_metrics(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = prometheus_client::encoding::text::encode(&mut text, &self.registry.lock());
        text
    }

    pub fn readiness(&self) -> Readiness {
        let ready = self.warm.load(Ordering::Acquire);
        let detail = if ready { "serving" } else { "making the components in use ready" };
        Readiness { ready, detail: detail.to_owned() }
    }
}

fn host_options(options: &Options, folder: &DataFolder) -> HostOptions {
    HostOptions {
        cache_dir: folder.cache_dir(),
        threads: options.threads,
        shards: options.shards,
        memory_budget: options.memory_budget,
        system_reserve: options.system_reserve,
        ceiling: options.ceiling,
        max_modules: options.max_modules,
        max_instances: options.max_instances,
        compile: options.compile.clone(),
        denied: options.denied,
    }
}

fn register(registry: &mut Registry, logbook: &LogBook) -> Counter {
    let rollbacks = Counter::default();
    registry.register("noetl_rollbacks", "Versions taken back by the server itself", rollbacks.clone());
    registry.register("noetl_plugin_log_lines_dropped", "Lines lost to a plugin's own flood", logbook.dropped.clone());
    let build = Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]);
    registry.register("noetl_build", "What is running", build);
    rollbacks
}

/// Different at every start; the clock is enough, since a data folder has one server at a time.
fn boot_number() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}
