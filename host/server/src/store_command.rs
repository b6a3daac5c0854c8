//! `longshore store`: the tasks of a stopped server, checked, written out, read back, found.
//!
//! Knows no task: what is read and written is the store's business.

use crate::config::{Config, Flags};
use anyhow::Context as _;
use clap::{Args, Subcommand};
use longshore_store::{Archive, ArchiveError, DiskStore, Summary, import, judge};
use longshore_tasks::Store as _;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Seek as _, Write as _};
use std::path::{Path, PathBuf};

/// What is done with the store.
#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Read every task and say whether all are whole.
    Check(Place),
    /// Write all tasks as JSON lines to standard output.
    Export {
        #[command(flatten)]
        place: Place,
        /// Save what is left of a damaged store. Reading changes a damaged store: work on a copy.
        #[arg(long)]
        damaged: bool,
    },
    /// Read the tasks of an export into a store that does not hold them.
    Import {
        #[command(flatten)]
        place: Place,
        /// An export, as `longshore store export` writes it.
        file: PathBuf,
    },
    /// Find tasks by the name that their tools gave them elsewhere.
    Find {
        #[command(flatten)]
        place: Place,
        /// The name.
        #[arg(long, value_name = "ID")]
        external_id: String,
    },
}

/// Which store.
#[derive(Debug, Args)]
pub(crate) struct Place {
    /// The configuration, in TOML: its data_dir is used.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The directory of tasks, keys and components [default: ./data].
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

impl Place {
    /// The folder of the tasks. Which database is in it the folder says itself.
    fn folder(self) -> anyhow::Result<PathBuf> {
        Ok(self.config()?.data_dir.join("tasks"))
    }

    fn config(self) -> anyhow::Result<Config> {
        let flags = Flags {
            listen: None,
            plugins_dir: None,
            data_dir: self.data,
            dev: false,
        };
        Ok(Config::load(self.config.as_deref(), flags)?)
    }
}

impl StoreCommand {
    /// Does it. Results go to standard output, what is told beside them to standard error.
    ///
    /// # Errors
    /// The store is in use, not there or damaged, or the export cannot be read or written.
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        match self {
            Self::Check(place) => check(&place.folder()?),
            Self::Export { place, damaged } => export(&place.folder()?, damaged),
            Self::Import { place, file } => import_file(&place.config()?, &file).await,
            Self::Find { place, external_id } => find(&place.folder()?, &external_id),
        }
    }
}

fn check(folder: &Path) -> anyhow::Result<()> {
    let summary = Archive::open(folder)?.check(|damage| eprintln!("{damage}"))?;
    writeln!(io::stdout(), "{}", text(&summary))?;
    whole(&summary)
}

fn export(folder: &Path, damaged: bool) -> anyhow::Result<()> {
    let archive = if damaged {
        // The database panics where it does not understand a page; what it says then is told as one line.
        std::panic::set_hook(Box::new(|_| {}));
        Archive::open_damaged(folder)?
    } else {
        Archive::open(folder)?
    };
    let mut out = BufWriter::new(io::stdout().lock());
    let summary = archive.export(&mut out, |damage| eprintln!("{damage}"))?;
    eprintln!("{}", text(&summary));
    if damaged { Ok(()) } else { whole(&summary) }
}

async fn import_file(config: &Config, file: &Path) -> anyhow::Result<()> {
    let folder = &config.data_dir.join("tasks");
    let named = || format!("the export {} cannot be read", file.display());
    let mut input = BufReader::new(File::open(file).with_context(named)?);
    // A cut one must not leave a part of the tasks, which a server would take for all of them.
    judge(&mut input)?;
    input.rewind().with_context(named)?;
    longshore_runtime::private_folder(folder)
        .with_context(|| format!("the folder {} is needed", folder.display()))?;
    let store = DiskStore::open(folder, config.store.engine)?;
    let imported = import(&store, input).await;
    store.close().await?;
    let imported = imported.map_err(|error| match error {
        // Nothing was put.
        ArchiveError::Exists(_) => anyhow::Error::new(error),
        error => anyhow::Error::new(error).context(format!(
            "a part of the tasks may be there: move {} away, and import again",
            folder.display()
        )),
    });
    writeln!(io::stdout(), "{}", text(&imported?))?;
    Ok(())
}

fn find(folder: &Path, external_id: &str) -> anyhow::Result<()> {
    let mut told = Ok(());
    let summary = Archive::open(folder)?.find(external_id, |line| {
        if told.is_ok() {
            told = writeln!(io::stdout(), "{line}");
        }
    })?;
    told?;
    anyhow::ensure!(
        summary.tasks > 0,
        "no task has the external id {external_id:?}"
    );
    Ok(())
}

fn text(summary: &Summary) -> String {
    let Summary {
        tasks,
        unfinished,
        bytes,
        damaged,
        ..
    } = summary;
    format!("{tasks} tasks of {bytes} bytes, {unfinished} of them unfinished; {damaged} damaged")
}

fn whole(summary: &Summary) -> anyhow::Result<()> {
    let damaged = summary.damaged;
    anyhow::ensure!(
        damaged == 0,
        "{damaged} tasks are damaged; put back a copy of the data folder, or export what is left \
         (--damaged) and import it into a new one"
    );
    Ok(())
}
