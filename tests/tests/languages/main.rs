//! Plugins that are Python and JavaScript source, through the real command and a real server.
//!
//! The first push of each language loads its interpreter, whose machine code the first run on a machine compiles.

mod bundles;
mod cases;
mod fetching;
mod files;
mod library;
mod modules;
mod refusals;
mod sandbox;
mod support;

use std::process::Command;

/// Each SDK's own tests run with the language of this machine, without a sandbox.
#[test]
fn the_sdks_pass_their_own_tests() {
    for (folder, program, arguments) in [
        ("sdk/python/tests", "python3", &["-B", "-m", "unittest"][..]),
        ("sdk/js", "node", &["--import", "./tests/hooks.mjs", "--test", "tests/"]),
    ] {
        let mut command = Command::new(program);
        let output = command.args(arguments).current_dir(support::repository().join(folder)).output();
        let output = output.unwrap_or_else(|error| panic!("{program} does not start: {error}"));
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{folder}:\n{said}");
    }
}
