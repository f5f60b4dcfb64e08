//! The `noetl` command: parses, runs one command, reports how it ended.
//!
//! This file only wires. A command returns an `Outcome`; printing the failure and choosing the exit code
//! happen here, once.

mod args;
mod client;
mod config;
mod credential;
mod executions;
mod failure;
mod given;
mod key;
mod log;
mod output;
mod playbook;
mod plugin;
mod run;
mod serve;
mod sse;
mod token;
mod tool;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};
use serde_json::json;

use args::{Cli, Command, Context};
use failure::{Failure, Outcome};
use output::Output;

/// A server makes and drops small values by the million, on many threads; the C library's allocator takes a tenth of its time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let output = Output::new(cli.global.json, cli.global.color, cli.global.verbose);
    // Comes before everything else: the compiler process has an empty environment and its own exit codes.
    if let Command::Compile(job) = &cli.command {
        return compile(job);
    }
    match Context::new(cli.global).and_then(|context| run(cli.command, &context)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.report(&output);
            ExitCode::from(failure.exit as u8)
        }
    }
}

fn run(command: Command, context: &Context) -> Outcome {
    match command {
        Command::Run(run) => run.run(context),
        Command::Validate(validate) => validate.run(context),
        Command::Schema(schema) => schema.run(context),
        Command::Register(register) => on_runtime(register.run(context)),
        Command::Catalog(command) => on_runtime(playbook::run_catalog(command, context)),
        Command::Exec(exec) => on_runtime(exec.run(context)),
        Command::Status(status) => on_runtime(status.run(context)),
        Command::Events(events) => on_runtime(events.run(context)),
        Command::Executions(list) => on_runtime(list.run(context)),
        Command::Cancel(cancel) => on_runtime(cancel.run(context)),
        Command::Resume(resume) => on_runtime(resume.run(context)),
        Command::Retry(retry) => on_runtime(retry.run(context)),
        Command::Why(why) => on_runtime(why.run(context)),
        Command::Replay(replay) => on_runtime(replay.run(context)),
        Command::Serve(serve) => serve.run(context),
        Command::Plugin(command) => plugin::run(command, context),
        Command::Tool(command) => on_runtime(tool::run(command, context)),
        Command::Token(command) => on_runtime(token::run(command, context)),
        Command::Credential(command) => on_runtime(credential::run(command, context)),
        Command::Key(command) => key::run(command, context),
        Command::Config(command) => config::run(command, context),
        Command::Log(command) => log::run(&command, context),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "noetl", &mut script);
            context.output.raw(&script);
            Ok(())
        }
        Command::Version => {
            let version = json!({ "version": env!("CARGO_PKG_VERSION"), "arch": std::env::consts::ARCH,
                                  "os": std::env::consts::OS });
            context.output.result(&version, |_| format!("noetl {}", env!("CARGO_PKG_VERSION")));
            Ok(())
        }
        Command::Compile(_) => Ok(()),
    }
}

/// Client commands wait for one thing at a time: one thread is enough.
fn on_runtime(command: impl Future<Output = Outcome>) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("start the runtime: {error}")))?;
    runtime.block_on(command)
}

fn compile(job: &args::Compile) -> ExitCode {
    let code = noetl_host::compile::child::main(&noetl_host::compile::child::Job {
        task: &job.task,
        input: &job.input,
        output: &job.output,
        memory_bytes: job.memory_bytes,
        cpu_seconds: job.cpu_seconds,
    });
    u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from)
}
