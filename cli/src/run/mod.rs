//! `noetl run`: one playbook in this process, without a server.
//!
//! It is the whole engine on a data folder of its own: the same log, the same components, the same decisions as on a
//! server. The folder goes away with the run unless one is named. Playbooks beside the file are registered too, as far as
//! they are right, so that sub-playbooks are found.
//!
//! The result goes to stdout; the view of the steps, and why it failed, to stderr. Ctrl-C cancels the execution and
//! waits for its end; a second one leaves at once.

mod board;
pub mod follow;
mod line;
mod outcome;
pub mod payload;
pub mod view;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueHint};
use noetl_contract::Tenant;
use noetl_dispatch::Kernel;
use noetl_dispatch::engine::{EngineError, Execute, ExecutionId};
use noetl_registry::Actor;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::signal::unix::{SignalKind, signal};

use crate::args::Context;
use crate::config::load::Settings;
use crate::config::{File, load_all};
use crate::executions::why;
use crate::failure::{Exit, Failure, Outcome};
use crate::playbook::files::{Source, playbooks_in};
use crate::playbook::problems;
use crate::playbook::validate::{Checked, check};
use crate::serve;
use follow::{Feed, Teller, follow};
use payload::Payload;
use view::View;

const EXAMPLES: &str = "\
Examples:
  noetl run orders.yaml
  noetl run orders.yaml --set city=Oslo --set limits.rows=10
  noetl run orders.yaml --payload @payload.json --json | jq .output
  noetl run orders.yaml --data-dir ./runs    # keeps the run; see it again with `noetl serve --data ./runs`

Other playbooks in the folder of FILE (*.yaml, *.yml with `kind: Playbook`) are registered too, as far as they are
right, so that FILE can run them as sub-playbooks.

Ends with 1 if the execution fails or is cancelled. Ctrl-C cancels it.";

/// Who asks for executions of this command.
const BY: &str = "noetl run";
/// Events read at once.
const PAGE: usize = 500;
/// How long one wait for news takes at most.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Run {
    /// The playbook.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    #[command(flatten)]
    payload: Payload,
    /// Refuse keys nobody knows, which are warnings otherwise.
    #[arg(long)]
    strict: bool,
    /// Show no steps, only the result.
    #[arg(short, long)]
    quiet: bool,
    /// Keep the run's log and payloads in this folder [default: a temporary one].
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    data_dir: Option<PathBuf>,
    #[command(flatten)]
    config: File,
}

/// Where a run keeps what it writes.
enum Place {
    Temporary(TempDir),
    Named(PathBuf),
}

impl Place {
    fn path(&self) -> &Path {
        match self {
            Place::Temporary(folder) => folder.path(),
            Place::Named(folder) => folder,
        }
    }
}

/// How the execution ended.
struct Outcomes {
    value: Value,
    /// Why, for one that did not complete.
    why: Option<Value>,
}

impl Run {
    pub fn run(self, context: &Context) -> Outcome {
        let source = Source::read(&self.file)?;
        let checked = check(&source, self.strict);
        tell_problems(&checked, self.quiet, context)?;
        let payload = Value::Object(self.payload.value()?).to_string();
        let settings = load_all(&self.config, Vec::new())?;
        if context.output.verbose {
            serve::start_log(&settings)?;
        }
        let place = match &self.data_dir {
            Some(folder) => Place::Named(folder.clone()),
            None => Place::Temporary(temporary_folder()?),
        };
        let runtime =
            tokio::runtime::Runtime::new().map_err(|error| Failure::failed(format!("start the runtime: {error}")))?;
        let with_children =
            checked.playbook.is_some_and(|playbook| playbook.tools().any(|tool| tool.kind == "playbook"));
        let siblings = if with_children { siblings(&self.file)? } else { Vec::new() };
        let (kernel, ended) = runtime.block_on(async {
            let begun = self.start(&settings, &place, context).await?;
            let ended = self.execute(&begun.kernel, &source, &siblings, payload, context).await;
            begun.kernel.engine().stop().await;
            begun.keep();
            Ok((begun.kernel, ended))
        })?;
        // The kernel goes outside of the runtime, because it waits for its own threads when it is dropped.
        drop(runtime);
        drop(kernel);
        report(&ended?, &place, context)
    }

    async fn start(&self, settings: &Settings, place: &Place, context: &Context) -> Outcome<serve::Begun> {
        let folder = serve::open_folder(place.path())?;
        let mut started = serve::start_kernel(serve::options::kernel(settings), folder).await?;
        if let Some(compiling) = started.compiling.take() {
            if !self.quiet && !context.output.json {
                context.output.say("making the engine's components ready; the next run has them at once");
            }
            // All of them, so that what was compiled can be kept whole. A panic there is reported by the runtime.
            let _ = compiling.await;
        }
        Ok(started)
    }

    async fn execute(
        &self,
        kernel: &Arc<Kernel>,
        source: &Source,
        siblings: &[Source],
        payload: String,
        context: &Context,
    ) -> Outcome<Outcomes> {
        let engine = kernel.engine();
        let (actor, tenant) = (Actor { name: BY.to_owned(), tenant: None }, Tenant::main());
        for sibling in siblings {
            if let Err(error) = engine.register(&actor, &tenant, &sibling.text, false).await {
                context.output.detail(format_args!("{} is left out: {error}", sibling.name()));
            }
        }
        // Last, so that it is what its path means even if a sibling claims the same.
        let registered = engine.register(&actor, &tenant, &source.text, self.strict).await.map_err(refused)?;
        self.tell_of_credentials(&registered.warnings, source, context);
        let execute = Execute {
            tenant,
            path: registered.path.to_string(),
            version: Some(registered.version),
            payload,
            pool: None,
            trace: None,
            requested_by: BY.to_owned(),
            dedup: None,
        };
        let id = engine.execute(execute).await.map_err(refused)?.execution;
        self.watch(kernel, id, context).await?;
        outcome(kernel, id).await
    }

    /// Credentials that are missing are known only here: the checker before has no wallet. A run has one of its own, in the
    /// folder of its data.
    fn tell_of_credentials(&self, warnings: &str, source: &Source, context: &Context) {
        let warnings: Vec<Value> = serde_json::from_str(warnings).unwrap_or_default();
        let missing = |warning: &Value| {
            warning["message"].as_str().is_some_and(|text| text.starts_with("there is no credential"))
        };
        let missing: Vec<Value> = warnings.into_iter().filter(missing).collect();
        if missing.is_empty() || self.quiet || context.output.json {
            return;
        }
        let paint = context.output.stderr_paint();
        problems::lines(&source.name(), &missing, paint).iter().for_each(|line| context.output.say(line));
        let folder = self.data_dir.as_ref().map_or("DIR".to_owned(), |folder| folder.display().to_string());
        context.output.say(format_args!(
            "a run has the credentials of its data folder: add them with `noetl serve --data {folder}` running, then run with \
             `--data-dir {folder}`"
        ));
    }

    /// Shows the execution until it ends; Ctrl-C cancels it.
    async fn watch(&self, kernel: &Arc<Kernel>, id: ExecutionId, context: &Context) -> Outcome {
        let mut interrupts =
            signal(SignalKind::interrupt()).map_err(|error| Failure::failed(format!("wait for signals: {error}")))?;
        let mut view = View::new(context.output, self.quiet);
        let root = id.to_string();
        let feed = InProcess(kernel.clone());
        let mut cancelled = false;
        let ended = {
            let watching = async {
                if self.quiet {
                    return end(kernel, id).await;
                }
                match follow(feed, &root, |event| view.event(event)).await {
                    Ok(()) => Ok(()),
                    Err(failure) => {
                        let problem = failure.message;
                        context.output.detail(format_args!("no more is shown ({problem}); the execution goes on"));
                        end(kernel, id).await
                    }
                }
            };
            tokio::pin!(watching);
            loop {
                tokio::select! {
                    ended = &mut watching => break ended,
                    _ = interrupts.recv() => {
                        if cancelled {
                            break Err(Failure::failed("interrupted twice: the execution was left as it was"));
                        }
                        cancelled = true;
                        // It may have ended just now; then its end is shown next.
                        if let Err(error) = kernel.engine().cancel(id, "interrupted", BY).await {
                            context.output.detail(error);
                        }
                    }
                }
            }
        };
        view.close();
        ended
    }
}

fn temporary_folder() -> Outcome<TempDir> {
    tempfile::Builder::new()
        .prefix("noetl-run-")
        .tempdir()
        .map_err(|error| Failure::failed(format!("make a temporary folder: {error}")).next("name one with --data-dir"))
}

/// Warnings are told and errors end the command, before anything is started.
fn tell_problems(checked: &Checked, quiet: bool, context: &Context) -> Outcome {
    let paint = context.output.stderr_paint();
    let lines = problems::lines(&checked.file, &checked.problems, paint);
    let wrong = checked.playbook.is_none();
    if !context.output.json && (wrong || !quiet) {
        lines.iter().for_each(|line| context.output.say(line));
    }
    if !wrong {
        return Ok(());
    }
    let mut failure = Failure::failed(format!("{} cannot run: {}", checked.file, problems::count(&checked.problems)));
    failure.problem =
        Some(Box::new(json!({ "code": "invalid_playbook", "detail": failure.message, "problems": checked.problems })));
    Err(failure)
}

/// The other playbooks of the file's folder.
fn siblings(file: &Path) -> Outcome<Vec<Source>> {
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let name = file.file_name();
    Ok(playbooks_in(folder)?.into_iter().filter(|source| source.file.file_name() != name).collect())
}

fn refused(error: EngineError) -> Failure {
    let mut failure =
        Failure::new(if error.status() == 404 { Exit::NotFound } else { Exit::Failed }, error.to_string());
    let mut document = json!({ "code": error.code(), "detail": failure.message });
    if let EngineError::Invalid { problems } = &error {
        document["problems"] = serde_json::from_str(problems).unwrap_or_default();
    }
    failure.problem = Some(Box::new(document));
    failure
}

/// Waits until the execution has ended, however long that takes.
async fn end(kernel: &Kernel, id: ExecutionId) -> Outcome {
    while kernel.engine().wait(id, LOOK_AGAIN).await.map_err(refused)?.is_none() {}
    Ok(())
}

/// The end of an execution that has ended, and why it ended so unless it completed.
async fn outcome(kernel: &Kernel, id: ExecutionId) -> Outcome<Outcomes> {
    let engine = kernel.engine();
    let ended = engine.wait(id, Duration::from_secs(60)).await.map_err(refused)?;
    let ended = ended.ok_or_else(|| Failure::failed(format!("execution {id} ended and does not say how")))?;
    let value = outcome::of(kernel.payloads(), &id.to_string(), &ended.status, &ended.body).await;
    let why = match ended.status.as_str() {
        "completed" => None,
        // Without an explanation the error itself has to do.
        _ => engine.explain(id).await.ok().and_then(|text| serde_json::from_str(&text).ok()),
    };
    Ok(Outcomes { value, why })
}

fn report(ended: &Outcomes, place: &Place, context: &Context) -> Outcome {
    let output = context.output;
    if output.json {
        output.value(&ended.value);
    } else if ended.value["status"] == "completed" {
        output.value(&ended.value["output"]);
    }
    if let (Some(why), false) = (&ended.why, output.json) {
        output.say(why::text(why, output.stderr_paint()));
    }
    let id = ended.value["execution_id"].as_str().unwrap_or_default();
    if let Place::Named(folder) = place {
        output.detail(format_args!("execution {id} is kept in {}", folder.display()));
    }
    let failure = match crate::executions::ending(&ended.value) {
        None => return Ok(()),
        Some(failure) => failure,
    };
    Err(match place {
        Place::Named(folder) => failure.next(format!(
            "`noetl serve --data {}` serves it to `noetl events {id}` and `noetl retry {id}`",
            folder.display()
        )),
        Place::Temporary(_) => Failure { next: None, ..failure },
    })
}

/// Events of the engine in this process.
#[derive(Clone)]
struct InProcess(Arc<Kernel>);

impl Feed for InProcess {
    async fn follow(self, execution: String, teller: Teller) -> Outcome {
        let engine = self.0.engine();
        let id: ExecutionId = execution.parse().map_err(|error| Failure::failed(format!("{error}")))?;
        let mut after = 0;
        loop {
            let page = engine.events(id, after, PAGE).await.map_err(refused)?;
            let nothing_new = page.events.is_empty();
            for text in &page.events {
                let event = serde_json::from_str(text)
                    .map_err(|error| Failure::failed(format!("an event cannot be read: {error}")))?;
                teller.event(event).await;
            }
            after = after.max(page.last_event);
            if page.complete {
                return Ok(());
            }
            if nothing_new {
                engine.changed(id, after, LOOK_AGAIN).await;
            }
        }
    }
}
