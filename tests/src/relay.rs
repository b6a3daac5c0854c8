//! Listens to a client that nobody here wrote, over standard input and output: what it starts in place of `longshore` passes every
//! byte on and keeps a copy, to be judged at the end.

use crate::era::judge_lines;
use crate::home::Home;
use std::ffi::OsStr;
use std::fs;
use std::process::Command;
use tempfile::TempDir;

/// Starts servers in one home, one after the other, and listens.
#[derive(Debug)]
pub struct Relay {
    folder: TempDir,
    home: Home,
}

impl Relay {
    /// A relay to servers with these components.
    ///
    /// # Panics
    /// If there is no temporary folder.
    pub fn new(components: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(components, "");
        Self { folder, home }
    }

    /// The program to start, and its arguments.
    ///
    /// # Panics
    /// If a path is no text.
    pub fn command(&self) -> Vec<String> {
        let server = self.home.subcommand("stdio");
        let text = |text: &OsStr| text.to_str().unwrap().to_owned();
        // The process id of the shell tells several starts apart. A client may start the next server before the last one has let
        // go of its store: it waits for that.
        let script = r#"tee "$0/$$.in" | {
            until mkdir "$0/busy" 2>/dev/null; do sleep 0.05; done
            "$@"
            rmdir "$0/busy"
        } | tee "$0/$$.out""#;
        let mut command = vec!["sh".to_owned(), "-c".to_owned(), script.to_owned()];
        command.push(text(self.folder.path().as_os_str()));
        command.push(text(server.get_program()));
        command.extend(server.get_args().map(text));
        command
    }

    /// The same, as a process to be.
    ///
    /// # Panics
    /// As [`Relay::command`].
    pub fn process(&self) -> Command {
        let command = self.command();
        let mut process = Command::new(&command[0]);
        process.args(&command[1..]);
        process
    }

    /// Judges all that was said, and tells the methods that were called.
    ///
    /// # Panics
    /// If the schemas find a fault.
    pub fn judge(&self) -> Vec<String> {
        let mut methods = Vec::new();
        for entry in fs::read_dir(self.folder.path()).unwrap() {
            let sent = entry.unwrap().path();
            if sent.extension().is_some_and(|ending| ending == "in") {
                let received = fs::read_to_string(sent.with_extension("out")).unwrap();
                let sent = fs::read_to_string(&sent).unwrap();
                let judged = judge_lines(&sent, &received);
                methods.extend(judged.unwrap_or_else(|fault| panic!("{fault}")));
            }
        }
        methods
    }
}
