//! Where a server lives: its config, plugins and data, the binary under test, and the components that were built.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// The folder with the workspace's manifest.
fn workspace() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap().to_owned()
}

/// The binary under test: `LONGSHORE_BIN`, else the debug build.
///
/// # Panics
/// If it is not there; the message says how to build it.
pub fn binary() -> PathBuf {
    #[allow(
        clippy::disallowed_methods,
        reason = "the one setting of the tests: which binary they drive"
    )]
    let path = std::env::var("LONGSHORE_BIN").map_or_else(
        |_| workspace().join("target/debug/longshore"),
        PathBuf::from,
    );
    assert!(
        path.is_file(),
        "there is no {}: run `cargo build`",
        path.display()
    );
    path
}

/// A token for a principal from the command line, and the lines of the configuration that let it in.
///
/// # Panics
/// If the command fails.
pub fn token(principal: &str) -> (String, String) {
    let mut command = Command::new(binary());
    let output = command.args(["token", principal]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    let token = said.lines().nth(1).unwrap().to_owned();
    let lines = String::from_utf8(output.stdout).unwrap();
    assert!(!lines.contains(&token));
    (token, lines)
}

/// A component by its path below the target folder, such as `guests/versions/a.wasm`.
///
/// # Panics
/// If it is not there; the message says how to build it.
pub fn component(path: &str) -> PathBuf {
    let whole = workspace().join("target").join(path);
    assert!(
        whole.is_file(),
        "there is no {}: run `cargo xtask plugins`",
        whole.display()
    );
    whole
}

/// Another version of a component that does the same: it has a section more, which nobody reads.
///
/// # Panics
/// If the mark is longer than a hundred bytes.
pub fn variant(path: &str, mark: &str) -> Vec<u8> {
    let mut bytes = fs::read(component(path)).unwrap();
    let length = u8::try_from(mark.len()).unwrap();
    assert!(length < 100, "a longer mark needs a longer length");
    // A custom section: its id, its size, and its name.
    bytes.extend([0, length + 1, length]);
    bytes.extend(mark.as_bytes());
    bytes
}

/// The well-behaved tools.
pub const FIXTURES: &str = "guests/fixtures/fixtures.wasm";
/// The tools of the official suite.
pub const CONFORMANCE: &str = "guests/conformance/conformance.wasm";
/// The tools that misbehave.
pub const HOSTILE: &str = "guests/hostile/hostile.wasm";
/// Tools whose schemas make work.
pub const SCHEMAS: &str = "guests/schemas/schemas.wasm";
/// The tool `version`, which answers `a`.
pub const VERSION_A: &str = "guests/versions/a.wasm";
/// The same tool, which answers `b`.
pub const VERSION_B: &str = "guests/versions/b.wasm";
/// Tools that answer with a mark: `mark`, `mark_later`, `mark_asked`.
const MARKED: &str = "guests/versions/marked.wasm";
/// The mark in [`MARKED`] as it is built.
const MARK: &[u8] = b"mark-000000";

/// The component of many versions with another mark, which its tools say also of themselves: `mark-` and the number in six digits.
///
/// # Panics
/// If the number is longer.
pub fn marked(number: usize) -> (String, Vec<u8>) {
    let mark = format!("mark-{number:06}");
    let mut bytes = fs::read(component(MARKED)).unwrap();
    let at = bytes.windows(MARK.len()).position(|text| text == MARK);
    let at = at.expect("the mark is in one piece");
    bytes[at..at + MARK.len()].copy_from_slice(mark.as_bytes());
    (mark, bytes)
}

/// The environment variable by which the whole suite runs with another linger time, in milliseconds.
const LINGER_MS: &str = "LONGSHORE_TESTS_LINGER_MS";

#[allow(
    clippy::disallowed_methods,
    reason = "the one setting of the suite itself"
)]
fn linger_ms() -> Option<i64> {
    let value = std::env::var(LINGER_MS).ok()?;
    Some(value.parse().expect("a number of milliseconds"))
}

/// A home: config, plugins and data. It outlives the process, so that a server can be started again in it.
#[derive(Debug)]
pub struct Home {
    folder: TempDir,
}

impl Home {
    /// A home with these components, each named by its file stem, and these settings (TOML).
    ///
    /// # Panics
    /// If a component is not built.
    pub fn new(components: &[&str], config: &str) -> Self {
        let folder = tempfile::Builder::new()
            .prefix("longshore-")
            .tempdir()
            .unwrap();
        let home = Self { folder };
        fs::create_dir(home.plugins()).unwrap();
        for path in components {
            home.install(path);
        }
        home.configure(config);
        home
    }

    /// Replaces the settings. All servers of the tests share one compile cache, and the linger time of `LINGER_MS` unless the
    /// test says its own.
    pub fn configure(&self, config: &str) {
        self.configure_with(config, &workspace().join("target/compile-cache"));
    }

    /// The same, with a compile cache in this home: what is new to it has to be compiled.
    pub fn configure_apart(&self, config: &str) {
        self.configure_with(config, &self.cache());
    }

    fn configure_with(&self, config: &str, cache: &Path) {
        let Ok(mut settings) = config.parse::<toml::Table>() else {
            // A test of what the server says of it.
            return fs::write(self.config(), config).unwrap();
        };
        settings.insert(
            "compile_cache_dir".to_owned(),
            cache.to_str().unwrap().into(),
        );
        if let Some(linger_ms) = linger_ms() {
            let tasks = settings
                .entry("tasks")
                .or_insert_with(|| toml::Table::new().into());
            let tasks = tasks.as_table_mut().unwrap();
            tasks.entry("linger_ms").or_insert(linger_ms.into());
        }
        fs::write(self.config(), settings.to_string()).unwrap();
    }

    /// The folder with all of it.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The config file.
    pub fn config(&self) -> PathBuf {
        self.folder.path().join("longshore.toml")
    }

    /// The folder of the plugins.
    pub fn plugins(&self) -> PathBuf {
        self.folder.path().join("plugins")
    }

    /// The data folder.
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// The compile cache of [`Self::configure_apart`].
    pub fn cache(&self) -> PathBuf {
        self.folder.path().join("cache")
    }

    /// Copies a component in, under the name of its file.
    pub fn install(&self, path: &str) {
        let name = Path::new(path).file_name().unwrap().to_str().unwrap();
        self.install_as(name, &fs::read(component(path)).unwrap());
    }

    /// Puts a file in at once, or in the place of the one that is there.
    pub fn install_as(&self, name: &str, bytes: &[u8]) {
        let part = self.folder.path().join("part");
        fs::write(&part, bytes).unwrap();
        fs::rename(&part, self.plugins().join(name)).unwrap();
    }

    /// The command that serves this home on a free port.
    pub fn command(&self) -> Command {
        let mut command = self.subcommand("serve");
        command.args(["--listen", "127.0.0.1:0"]);
        command
    }

    /// The same in namespaces of its own, after a script (of `sh`) that may mount there and set what holds for one user.
    pub fn command_after(&self, script: &str) -> Command {
        let serve = self.command();
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-ec"]);
        command.arg(format!("{script}\nexec \"$0\" \"$@\""));
        command.arg(serve.get_program()).args(serve.get_args());
        command
    }

    /// A command that serves this home.
    pub fn subcommand(&self, name: &str) -> Command {
        let mut command = Command::new(binary());
        command
            .arg(name)
            .arg("--config")
            .arg(self.config())
            .arg("--plugins")
            .arg(self.plugins())
            .arg("--data")
            .arg(self.data());
        command
    }
}
