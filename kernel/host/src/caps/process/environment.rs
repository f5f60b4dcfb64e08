//! Which file a program is, and which variables it may be given.
//!
//! Both are decided here, before anything is started: a name is looked for on a path that nobody can change, and a variable
//! that would make the system, a shell or an interpreter run something else is refused. Without that a list of programs
//! would be a list of names that a step gives a meaning to.
//!
//! A program that runs others because of a variable of its own that is not in the list here is not noticed. Whoever permits a
//! program permits what it can be told to do.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::wit;

pub(super) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Where the system, shells, interpreters and other programs look for code, for programs and for settings that name some.
const REFUSED: [&str; 38] = [
    "AWKLIBPATH",
    "AWKPATH",
    "BROWSER",
    "CDPATH",
    "CLASSPATH",
    "CURL_HOME",
    "CVS_RSH",
    "EDITOR",
    "ENV",
    "EXINIT",
    "GOFLAGS",
    "GOPATH",
    "GOROOT",
    "HOME",
    "HOSTALIASES",
    "IFS",
    "LESSCLOSE",
    "LESSOPEN",
    "LOCPATH",
    "MAKEFILES",
    "MAKEFLAGS",
    "MANPAGER",
    "NLSPATH",
    "PAGER",
    "PATH",
    "PS4",
    "PSQLRC",
    "RSYNC_RSH",
    "SHELL",
    "SHELLOPTS",
    "TAR_OPTIONS",
    "TERMINFO",
    "TERMINFO_DIRS",
    "VIMINIT",
    "VISUAL",
    "WGETRC",
    "ZDOTDIR",
    "_JAVA_OPTIONS",
];
const REFUSED_BEGINNINGS: [&str; 23] = [
    "BASH", "BUNDLE_", "CARGO_", "DYLD_", "GCONV_", "GEM_", "GIT_", "GLIBC_", "JAVA_", "JDK_", "KSH_", "LD_", "LUA_",
    "NODE_", "NOETL_", "NPM_", "OPENSSL_", "PERL", "PHP", "PYTHON", "RUBY", "SSH_", "XDG_",
];

/// Refuses what is not the name of a variable, or changes what is run.
pub(super) fn check(name: &str) -> Result<(), wit::ProcessError> {
    let letters = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !letters || name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit()) {
        return Err(wit::ProcessError::Denied(format!("`{name}` cannot be the name of a variable")));
    }
    let upper = name.to_ascii_uppercase();
    let changes = REFUSED.contains(&upper.as_str()) || REFUSED_BEGINNINGS.iter().any(|start| upper.starts_with(start));
    if changes {
        let text = format!(
            "the variable `{name}` can change which programs or which code is run, and cannot be set by a step; \
             give the program what it needs as arguments"
        );
        return Err(wit::ProcessError::Denied(text));
    }
    Ok(())
}

/// The file of a program: a whole path, or a name on the usual one.
pub(super) fn find(program: &str) -> Result<PathBuf, wit::ProcessError> {
    let missing = || wit::ProcessError::Failed(format!("there is no program `{program}` on this machine"));
    if program.starts_with('/') {
        return Some(PathBuf::from(program)).filter(|path| can_run(path)).ok_or_else(missing);
    }
    if program.is_empty() || program.contains(['/', '\0']) {
        let text = format!("`{program}` is neither the name of a program nor a whole path");
        return Err(wit::ProcessError::Denied(text));
    }
    PATH.split(':').map(|folder| Path::new(folder).join(program)).find(|path| can_run(path)).ok_or_else(missing)
}

fn can_run(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_change_what_is_run_are_refused() {
        for good in ["GREETING", "lower", "_x1", "LANG", "LC_ALL", "TZ", "GOAL", "AWS_REGION", "PGHOST"] {
            assert!(check(good).is_ok(), "{good}");
        }
        for bad in [
            "PATH",
            "Path",
            "LD_PRELOAD",
            "LD_LIBRARY_PATH",
            "BASH_ENV",
            "ENV",
            "IFS",
            "PYTHONPATH",
            "PYTHONSTARTUP",
            "PERL5OPT",
            "NODE_OPTIONS",
            "GIT_SSH_COMMAND",
            "HOME",
            "BASH_FUNC_ls%%",
            "",
            "1A",
            "A=B",
            "A B",
        ] {
            let Err(wit::ProcessError::Denied(text)) = check(bad) else { panic!("{bad} is permitted") };
            assert!(text.contains(bad), "{text}");
        }
    }

    #[test]
    fn a_program_is_a_file_that_is_found_before_it_runs() {
        let sh = find("sh").expect("every machine has one");
        assert!(sh.is_absolute() && PATH.split(':').any(|folder| sh.parent() == Some(Path::new(folder))), "{sh:?}");
        assert_eq!(find("/bin/sh").expect("a whole path"), Path::new("/bin/sh"));
        for missing in ["no-such-program", "/no/such/program", "/etc/passwd", "/etc"] {
            assert!(matches!(find(missing), Err(wit::ProcessError::Failed(_))), "{missing}");
        }
        for bad in ["", "./sh", "bin/sh", "../sh", "s\0h"] {
            assert!(matches!(find(bad), Err(wit::ProcessError::Denied(_))), "{bad}");
        }
    }
}
