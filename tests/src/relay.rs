//! Listens to a client that nobody here wrote, over standard input and output: what it starts in place of `longshore` passes every
//! byte on and keeps a copy, to be judged at the end.

use crate::home::Home;
use crate::overheard::Said;
use serde_json::Value;
use std::collections::HashMap;
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
                methods.extend(judge_lines(&sent, &received));
            }
        }
        methods
    }
}

fn judge_lines(sent: &str, received: &str) -> Vec<String> {
    let (mut asked, mut methods) = (HashMap::new(), Vec::new());
    for line in sent.lines() {
        let message: Value = serde_json::from_str(line).unwrap();
        let said = Said::judge(&message);
        methods.push(said.method.clone());
        if let Some(id) = message.get("id") {
            asked.insert(id.to_string(), said);
        }
    }
    for line in received.lines() {
        let message: Value =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
        let answered = message
            .get("id")
            .filter(|_| message.get("method").is_none());
        let said = answered.and_then(|id| asked.get(&id.to_string()));
        let verdict = match said {
            Some(said) => said.verdict(&message),
            // Nothing says on which wire a notification is.
            None => {
                let mut all = asked.values().map(|said| said.verdict(&message));
                all.find(Result::is_ok)
                    .unwrap_or_else(|| Err(format!("of no wire: {message:#}")))
            }
        };
        verdict.unwrap_or_else(|fault| panic!("{fault}"));
    }
    methods
}
