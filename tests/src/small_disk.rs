//! A disk that can be filled and emptied without harm: a file system in memory, in a mount namespace of its own, which
//! a process holds open. Servers and commands join the namespace; the test reaches the files through the holder.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use tempfile::TempDir;

pub struct SmallDisk {
    holder: Child,
    /// Where it is mounted, for those inside.
    pub folder: Arc<TempDir>,
}

impl SmallDisk {
    pub fn new(mib: u32) -> Self {
        Self::with(&format!("size={mib}m"))
    }

    /// From which nothing can be run.
    pub fn without_programs() -> Self {
        Self::with("noexec")
    }

    fn with(options: &str) -> Self {
        let folder = Arc::new(TempDir::new().expect("a folder"));
        let mount = format!("mount -t tmpfs -o {options} none \"$0\" && echo mounted && exec cat");
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--mount", "sh", "-c", &mount]).arg(folder.path());
        let mut holder =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("`unshare` of util-linux is there");
        let mut said = [0; 8];
        let told = holder.stdout.as_mut().expect("piped").read_exact(&mut said);
        assert!(told.is_ok() && &said == b"mounted\n", "no namespace could be made; are user namespaces allowed here?");
        Self { holder, folder }
    }

    fn outside_path(&self) -> PathBuf {
        let inside = self.folder.path().strip_prefix("/").expect("an absolute path");
        PathBuf::from(format!("/proc/{}/root", self.holder.id())).join(inside)
    }

    /// The command, run where the disk is mounted.
    pub fn inside(&self, command: &Command) -> Command {
        let mut entered = Command::new("nsenter");
        entered.args(["--user", "--mount", "--preserve-credentials", "--target"]).arg(self.holder.id().to_string());
        entered.arg(command.get_program()).args(command.get_args());
        entered.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        entered
    }

    /// Takes all the room that is left, but for this much.
    pub fn fill_but(&self, left: u64) {
        let mut ballast = File::create(self.outside_path().join("ballast")).expect("a file");
        let piece = vec![1; 64 * 1024];
        let mut size = 0;
        while ballast.write_all(&piece).is_ok() {
            size += piece.len() as u64;
        }
        ballast.set_len(size.saturating_sub(left)).expect("a file is made shorter");
    }

    pub fn empty(&self) {
        std::fs::remove_file(self.outside_path().join("ballast")).expect("it was filled");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // The file system ends with the last process in its namespace.
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}
