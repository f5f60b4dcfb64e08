//! From the table of options to what the kernel and the HTTP side take. Nothing else maps them.

use std::path::PathBuf;
use std::time::Duration;

use noetl_contract::{Capability, CapabilitySet, Limits};
use noetl_dispatch::compile::CompileOptions;
use noetl_dispatch::engine::EngineOptions;
use noetl_dispatch::sql::SqlOptions;
use noetl_dispatch::{FaultClass, Options, RollbackOptions, Shell};
use noetl_http::HttpOptions;
use noetl_registry::signatures::SignerPolicy;
use noetl_store::wallet::Retention;
use noetl_store::wallet::keys::KeySource;

use crate::config::load::Settings;
use crate::config::table::{pools, signers};

/// The kernel with the defaults of this machine; the compiler process is this very program.
pub fn base() -> Options {
    // Not the path of the file: after an upgrade in place it would name another version, whose machine code does
    // not fit this one.
    Options::new(PathBuf::from("/proc/self/exe"), vec!["compile".to_owned()])
}

/// Options of the kernel.
pub fn kernel(settings: &Settings) -> Options {
    let mib = |key: &str| settings.number(key) << 20;
    let base = base();
    let or_base = |key: &str, base: usize| match settings.number(key) {
        0 => base,
        number => number as usize,
    };
    Options {
        threads: or_base("host.threads", base.threads),
        shards: or_base("host.shards", base.shards),
        memory_budget: mib("host.memory_budget_mb"),
        system_reserve: mib("host.system_reserve_mb"),
        ceiling: Limits {
            cpu_ms: settings.number("host.max_cpu_ms"),
            wall_ms: settings.number("host.max_wall_ms"),
            memory_bytes: mib("host.max_memory_mb"),
            output_bytes: mib("host.max_output_mb"),
            host_calls: settings.number("host.max_host_calls"),
            host_bytes: mib("host.max_host_mb"),
        },
        max_modules: settings.number("host.max_modules") as usize,
        max_instances: settings.number("host.max_instances") as u32,
        compile: CompileOptions {
            timeout: Duration::from_secs(settings.number("host.compile_timeout_secs")),
            memory_bytes: mib("host.compile_memory_mb"),
            jobs: settings.number("host.compile_jobs") as usize,
            ..base.compile
        },
        denied: denied(settings),
        signers: SignerPolicy::new(
            signers(settings.list("policy.signers")).expect("the table has checked the signers"),
        ),
        http_private_addresses: settings.flag("policy.http_private_addresses"),
        files: Some(settings.text("files.folder").to_owned()).filter(|folder| !folder.is_empty()),
        sql: SqlOptions {
            folder: Some(settings.text("sql.folder")).filter(|folder| !folder.is_empty()).map(PathBuf::from),
            connections: settings.number("sql.connections") as usize,
        },
        insecure_tls: settings.flag("policy.insecure_tls"),
        shell: shell(settings),
        max_payload: mib("host.max_payload_mb"),
        max_temporary: mib("host.max_temporary_mb"),
        rollback: rollback(settings),
        log_lines: settings.number("logs.keep_lines") as usize,
        outbound: None,
        engine: engine(settings),
        wallet_key: wallet_key(settings),
        wallet_retention: Retention {
            days: settings.number("wallet.audit_days"),
            lines: settings.number("wallet.audit_lines"),
            former_days: settings.number("wallet.former_days"),
        },
    }
}

/// A key that the operator gives; none means the file of the data folder.
fn wallet_key(settings: &Settings) -> Option<KeySource> {
    match (settings.text("wallet.key_command"), settings.secret("wallet.encryption_key")) {
        ("", None) => None,
        ("", Some(key)) => Some(KeySource::Given(key.to_owned().into())),
        (command, _) => Some(KeySource::Command(command.to_owned())),
    }
}

fn engine(settings: &Settings) -> EngineOptions {
    EngineOptions {
        shards: settings.number("engine.shards") as usize,
        pools: pools(settings.list("engine.pools")).expect("the table has checked the pools"),
        lenient: settings.text("engine.failures") == "lenient",
        environment: settings.list("engine.environment").to_vec(),
    }
}

fn shell(settings: &Settings) -> Option<Shell> {
    let folder = settings.text("policy.shell_folder");
    let folder = (!folder.is_empty()).then(|| PathBuf::from(folder));
    let programs = settings.list("policy.shell_programs").to_vec();
    let tenants = settings.list("policy.shell_tenants").to_vec();
    settings.flag("policy.shell").then_some(Shell { tenants, programs, folder })
}

fn denied(settings: &Settings) -> CapabilitySet {
    let names = settings.list("policy.deny_capabilities");
    names.iter().filter_map(|name| name.parse::<Capability>().ok()).collect()
}

fn rollback(settings: &Settings) -> RollbackOptions {
    let calls = settings.number("rollback.calls") as u32;
    let named = settings.list("rollback.classes");
    RollbackOptions {
        calls,
        max_failures: settings.number("rollback.max_failures") as u32,
        window: Duration::from_secs(settings.number("rollback.window_secs")),
        // Zero watched calls means that nothing counts.
        classes: FaultClass::ALL
            .into_iter()
            .filter(|class| calls > 0 && named.iter().any(|name| name == class.name()))
            .collect(),
    }
}

/// Options of the HTTP side.
pub fn http(settings: &Settings) -> HttpOptions {
    HttpOptions {
        max_component_bytes: settings.number("server.max_component_mb") << 20,
        max_call_bytes: settings.number("server.max_call_mb") << 20,
        header_timeout_secs: settings.number("server.header_timeout_secs"),
        body_idle_secs: settings.number("server.body_idle_secs"),
        body_min_bytes_per_sec: settings.number("server.body_min_rate"),
        body_memory_bytes: settings.number("server.body_memory_mb") << 20,
        max_connections: settings.number("server.max_connections") as usize,
        drain_secs: settings.number("server.drain_secs"),
        metrics_open: match settings.text("server.metrics_open") {
            "always" => Some(true),
            "never" => Some(false),
            _ => None,
        },
        internal_token: settings.secret("server.internal_token").map(str::to_owned),
        ..HttpOptions::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load::Sources;
    use crate::config::table::FAULT_CLASSES;

    fn settings(file: &str) -> Settings {
        Settings::load(&Sources { file: Some(("f", file)), ..Sources::default() }).expect("valid")
    }

    #[test]
    fn the_key_of_the_wallet_comes_from_where_it_is_named() {
        let source = |file: &str| kernel(&settings(file)).wallet_key.map(|source| source.name());
        let given = "[wallet]\nencryption_key = \"AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=\"\n";
        assert_eq!((source(""), source(given)), (None, Some("environment")));
        assert_eq!(source(&format!("{given}key_command = \"get-key\"\n")), Some("command"));
    }

    #[test]
    fn settings_reach_the_kernel_in_its_units() {
        let options = kernel(&settings(
            "[host]\nmemory_budget_mb = 100\nthreads = 3\ncompile_timeout_secs = 7\nmax_host_calls = 7\n\
             max_host_mb = 3\n\
             [rollback]\nclasses = [\"trap\"]\n[policy]\ndeny_capabilities = [\"kv\"]\nhttp_private_addresses = true\n",
        ));
        assert_eq!((options.memory_budget, options.threads), (100 << 20, 3));
        assert_eq!((options.ceiling.host_calls, options.ceiling.host_bytes), (7, 3 << 20));
        assert_eq!(options.compile.timeout, Duration::from_secs(7));
        assert_eq!(options.rollback.classes, [FaultClass::Trap]);
        assert!(options.denied.contains(Capability::Kv) && options.http_private_addresses);
        assert!(kernel(&settings("")).threads > 0, "0 means one for each processor");
    }

    #[test]
    fn the_engine_gets_its_settings_and_the_defaults_are_its_own() {
        let engine = |file: &str| kernel(&settings(file)).engine;
        let given = engine(
            "[engine]\nshards = 3\npools = [\"shared=1\", \"system=2\", \"big=3\"]\nfailures = \"lenient\"\n\
             environment = [\"HOME\"]\n",
        );
        assert_eq!((given.shards, given.lenient, given.environment), (3, true, vec!["HOME".to_owned()]));
        assert_eq!(given.pools, [("shared".to_owned(), 1), ("system".to_owned(), 2), ("big".to_owned(), 3)]);
        let (default, own) = (engine(""), EngineOptions::default());
        assert_eq!((default.shards, default.pools, default.lenient), (own.shards, own.pools, own.lenient));
    }

    #[test]
    fn programs_run_only_where_the_operator_says_so() {
        assert!(kernel(&settings("[policy]\nshell_programs = [\"git\"]\n")).shell.is_none());
        let shell =
            kernel(&settings("[policy]\nshell = true\nshell_programs = [\"git\"]\nshell_folder = \"/srv\"\n")).shell;
        let shell = shell.expect("switched on");
        assert_eq!((shell.programs, shell.folder), (vec!["git".to_owned()], Some(PathBuf::from("/srv"))));
        assert!(shell.tenants.is_empty(), "for nobody, unless it is said for whom");
    }

    #[test]
    fn no_watched_calls_means_that_nothing_is_taken_back() {
        assert!(kernel(&settings("[rollback]\ncalls = 0\n")).rollback.classes.is_empty());
        assert_eq!(kernel(&settings("")).rollback.calls, 20);
    }

    #[test]
    fn the_table_names_classes_the_host_has() {
        for name in FAULT_CLASSES {
            assert!(FaultClass::ALL.iter().any(|class| class.name() == *name), "{name}");
        }
    }
}
