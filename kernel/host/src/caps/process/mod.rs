//! `noetl:process`: programs of this machine, where the operator wants them.
//!
//! What runs here is in no sandbox. So the capability is for the ring `system` alone, the operator switches it on for tenants
//! ([`Shell`]), can say which programs and below which folder, and what is run is bounded from outside ([`running`]): an
//! environment of its own in which nothing changes what is run ([`environment`]), an end with the call for everything it
//! started ([`family`]), limits on time, processor time, memory and files, and bounded output.

mod environment;
mod family;
mod running;

use std::path::{Path, PathBuf};
use std::time::Duration;

use noetl_contract::Tenant;

use crate::bindings::noetl::process::process as wit;
use crate::fair::{Budget, Reservation};
use crate::state::CallState;

/// Programs at once, of all tenants.
const MOST_PROGRAMS: usize = 16;

/// What the operator permits.
#[derive(Debug, Clone, Default)]
pub struct Shell {
    /// For which tenants; `*` is all of them.
    pub tenants: Vec<String>,
    /// Which programs, as they are named in calls; any when empty.
    pub programs: Vec<String>,
    /// Below which folder; an empty folder of its own for each call when there is none.
    pub folder: Option<PathBuf>,
}

/// Programs, if any may run at all.
pub struct Programs {
    shell: Option<Shell>,
    slots: Budget,
}

impl Programs {
    pub fn new(shell: Option<Shell>) -> Self {
        Self { shell, slots: Budget::new(0, 0, MOST_PROGRAMS) }
    }

    async fn slot(&self, tenant: &Tenant, time: Duration) -> Option<Reservation> {
        tokio::time::timeout(time, self.slots.reserve(tenant, 0, 1, false)).await.ok()
    }

    fn permitted(&self, tenant: &Tenant, program: &str) -> Result<&Shell, wit::ProcessError> {
        let Some(shell) = &self.shell else {
            let text = "programs of this machine are switched off: an operator switches them on with `shell = true` \
                        under `[policy]` of the server's configuration, or `NOETL_POLICY_SHELL=true`";
            return Err(wit::ProcessError::Off(text.to_owned()));
        };
        if !shell.tenants.iter().any(|known| known == "*" || known == tenant.as_str()) {
            let text = format!(
                "programs of this machine are not for the tenant `{tenant}`: an operator names it in `shell_tenants` under \
                 `[policy]` of the server's configuration, or in `NOETL_POLICY_SHELL_TENANTS`"
            );
            return Err(wit::ProcessError::Off(text));
        }
        if !shell.programs.is_empty() && !shell.programs.iter().any(|known| known == program) {
            let text = format!(
                "`{program}` is not among the programs of `policy.shell_programs`: {}",
                shell.programs.join(", ")
            );
            return Err(wit::ProcessError::Denied(text));
        }
        Ok(shell)
    }
}

/// Where a program runs; a folder of its own goes with it.
enum Place {
    Kept(PathBuf),
    Own(tempfile::TempDir),
}

impl Place {
    fn path(&self) -> &Path {
        match self {
            Place::Kept(path) => path,
            Place::Own(folder) => folder.path(),
        }
    }
}

/// The folder, which must exist and be below the operator's, whatever links there are on the way.
fn place(shell: &Shell, wanted: Option<&str>) -> Result<Place, wit::ProcessError> {
    let failed = |error: std::io::Error| wit::ProcessError::Failed(format!("the folder it is to run in: {error}"));
    let wanted = wanted.filter(|wanted| !wanted.is_empty());
    let Some(root) = &shell.folder else {
        return match wanted {
            None => Ok(Place::Own(tempfile::tempdir().map_err(failed)?)),
            Some(folder) => Err(wit::ProcessError::Denied(format!(
                "the folder `{folder}`: the operator has named none with `policy.shell_folder`"
            ))),
        };
    };
    let root = root.canonicalize().map_err(failed)?;
    let folder = wanted.map_or(Ok(root.clone()), |wanted| root.join(wanted).canonicalize()).map_err(failed)?;
    if !folder.starts_with(&root) {
        let text = format!("`{}` is not below the folder of `policy.shell_folder`", folder.display());
        return Err(wit::ProcessError::Denied(text));
    }
    Ok(Place::Kept(folder))
}

impl wit::Host for CallState {
    async fn run(&mut self, command: wit::Command) -> wasmtime::Result<Result<wit::Exited, wit::ProcessError>> {
        let words = command.arguments.iter().map(String::len).sum::<usize>();
        let variables = command.environment.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>();
        self.charge(command.program.len() + words + variables)?;
        self.not_taped("process.run")?;
        let drivers = self.drivers.clone();
        let asked = command.timeout_ms.map_or(Duration::MAX, |ms| Duration::from_millis(u64::from(ms)));
        let time = asked.min(self.time_left());
        let allowed = drivers.programs.permitted(&self.identity.tenant, &command.program).and_then(|shell| {
            command.environment.iter().try_for_each(|(name, _)| environment::check(name))?;
            Ok((environment::find(&command.program)?, place(shell, command.folder.as_deref())?))
        });
        let (file, place) = match allowed {
            Ok(found) => found,
            Err(error) => return Ok(Err(error)),
        };
        let began = std::time::Instant::now();
        let Some(_slot) = drivers.programs.slot(&self.identity.tenant, time).await else {
            return Ok(Err(wit::ProcessError::Failed("no slot became free in time".to_owned())));
        };
        let left = time.saturating_sub(began.elapsed());
        Ok(running::run(&file, &command, place.path(), left)
            .await
            .map_err(|error| wit::ProcessError::Failed(error.to_string())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_runs_unless_the_operator_says_so() {
        let (main, other) = (Tenant::main(), Tenant::new("other").expect("a name"));
        let off = Programs::new(None);
        let Err(wit::ProcessError::Off(text)) = off.permitted(&main, "sh") else { panic!("it is off") };
        assert!(text.contains("[policy]") && text.contains("NOETL_POLICY_SHELL"), "{text}");
        let nobody = Programs::new(Some(Shell::default()));
        let Err(wit::ProcessError::Off(text)) = nobody.permitted(&main, "sh") else { panic!("it is for nobody") };
        assert!(text.contains("`main`") && text.contains("shell_tenants"), "{text}");
        let tenants = vec!["main".to_owned()];
        let some = Programs::new(Some(Shell { tenants, programs: vec!["git".to_owned()], folder: None }));
        assert!(some.permitted(&main, "git").is_ok() && some.permitted(&other, "git").is_err());
        assert!(some.permitted(&main, "/tmp/git").is_err() && some.permitted(&main, "sh").is_err());
        let all = Programs::new(Some(Shell { tenants: vec!["*".to_owned()], ..Shell::default() }));
        assert!(all.permitted(&other, "sh").is_ok());
    }

    #[test]
    fn a_folder_is_below_the_operators_whatever_links_there_are() {
        let root = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(root.path().join("in")).expect("made");
        std::os::unix::fs::symlink("/", root.path().join("out")).expect("linked");
        let shell = Shell { folder: Some(root.path().to_owned()), ..Shell::default() };
        assert!(place(&shell, None).is_ok() && place(&shell, Some("in")).is_ok());
        for bad in ["..", "out", "/", "out/tmp"] {
            assert!(matches!(place(&shell, Some(bad)), Err(wit::ProcessError::Denied(_))), "{bad}");
        }
        assert!(matches!(place(&shell, Some("gone")), Err(wit::ProcessError::Failed(_))));
        assert!(matches!(place(&Shell::default(), Some("/tmp")), Err(wit::ProcessError::Denied(_))));
        assert!(matches!(place(&Shell::default(), None), Ok(Place::Own(_))));
    }
}
