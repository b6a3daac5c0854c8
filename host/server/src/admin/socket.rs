//! The server's side of the socket: it takes orders, a few at once, and has them carried out.

use super::{ANSWER_BYTES_MAX, Answer, ORDER_BYTES_MAX, Order, socket_path};
use crate::app::App;
use crate::standing::{Detail, standing};
use longshore_runtime::{OrderError, Served, Version};
use serde_json::{Value, json};
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Orders at once; people give one after the other.
const ORDERS_MAX: usize = 8;

/// How long an order may take to arrive, and its answer to be read.
const LINE_TIME: Duration = Duration::from_secs(5);

/// How long the answer waits until clients see what it says.
const SHOWN_WITHIN: Duration = Duration::from_secs(5);

/// How long to wait after a connection could not be accepted, in milliseconds: most often because of too many open files.
const ACCEPT_PAUSE_MS: u64 = 100;

/// Where orders arrive. Its file goes with it.
#[derive(Debug)]
pub(crate) struct Socket {
    listener: UnixListener,
    path: PathBuf,
    /// The user who may give orders.
    owner: u32,
}

impl Socket {
    /// Open it. The data folder must be this process's own by now: what another one left behind is removed.
    ///
    /// # Errors
    /// If the folder takes no socket, or its path is longer than sockets may have.
    pub(crate) fn open(data: &Path) -> io::Result<Self> {
        let path = socket_path(data);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(&path)?;
        std::fs::set_permissions(&path, Permissions::from_mode(0o600))?;
        let owner = std::fs::metadata(&path)?.uid();
        Ok(Self {
            listener,
            path,
            owner,
        })
    }

    /// Before its mode was set others may have connected; and root may always.
    fn admits(&self, stream: &UnixStream) -> bool {
        let peer = stream.peer_cred().map(|peer| peer.uid());
        peer.is_ok_and(|uid| uid == self.owner || uid == 0)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // The next server removes what stays.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Take orders until this is dropped.
pub(crate) async fn serve(app: Arc<App>, socket: Socket) {
    let mut going = JoinSet::new();
    loop {
        tokio::select! {
            accepted = socket.listener.accept(), if going.len() < ORDERS_MAX => match accepted {
                Ok((stream, _)) if socket.admits(&stream) => {
                    going.spawn(attend(app.clone(), stream));
                }
                Ok(_) => tracing::warn!("another user's order was not taken"),
                Err(error) => {
                    tracing::warn!(%error, "an order could not be taken");
                    let until_ms = app.clock.now_ms().saturating_add(ACCEPT_PAUSE_MS);
                    app.clock.sleep_until(until_ms).await;
                }
            },
            Some(_) = going.join_next() => {}
        }
    }
}

async fn attend(app: Arc<App>, stream: UnixStream) {
    let (read, mut write) = stream.into_split();
    let mut line = Vec::new();
    let mut read = BufReader::new(read.take(ORDER_BYTES_MAX));
    match timeout(LINE_TIME, read.read_until(b'\n', &mut line)).await {
        Ok(Ok(_)) => {}
        // Nobody is there who could be told.
        Ok(Err(_)) | Err(_) => return,
    }
    let answer = match serde_json::from_slice(&line) {
        Ok(order) => match carry_out(&app, order).await {
            Ok(done) => Answer::Done(done),
            Err(error) => Answer::Failed(error.to_string()),
        },
        Err(error) => Answer::Failed(format!("it is no order: {error}")),
    };
    let mut text = serde_json::to_vec(&answer).unwrap_or_default();
    if text.len() as u64 >= ANSWER_BYTES_MAX {
        let failed = Answer::Failed("the answer is too long".to_owned());
        text = serde_json::to_vec(&failed).unwrap_or_default();
    }
    text.push(b'\n');
    // Who does not read it does not want it.
    let _ = timeout(LINE_TIME, write.write_all(&text)).await;
}

async fn carry_out(app: &App, order: Order) -> Result<Value, OrderError> {
    let runtime = &app.runtime;
    match order {
        Order::List => Ok(standing(app, Detail::Whole).into()),
        Order::History { plugin } => {
            let history = runtime.history(&plugin)?;
            let snapshot = runtime.snapshot();
            let served = snapshot.plugins.get(&plugin);
            // A version may have come more than once; it serves since the last time.
            let serves = |entry: &&Served| served.is_some_and(|now| now.version == entry.version);
            let serving = history.iter().rev().find(serves);
            let is_serving = |entry| serving.is_some_and(|serving| std::ptr::eq(serving, entry));
            let entries = history.iter().rev();
            Ok(entries
                .map(|entry| told(entry, is_serving(entry)))
                .collect())
        }
        Order::Rollback { plugin, version } => {
            let version = runtime.roll_back(&plugin, version.as_deref()).await?;
            tracing::info!(%plugin, %version, "rolled back by order");
            Ok(shown(app, &plugin, &version).await)
        }
        Order::Approve { plugin, version } => {
            let version = runtime.approve(&plugin, version.as_deref()).await?;
            tracing::info!(%plugin, %version, "approved by order");
            Ok(shown(app, &plugin, &version).await)
        }
    }
}

/// What is served now, once clients see it.
async fn shown(app: &App, plugin: &str, version: &Version) -> Value {
    let seen = app
        .catalogue
        .wait(SHOWN_WITHIN, |served| served.has(plugin, version));
    seen.await;
    json!({ "name": plugin, "version": version })
}

fn told(entry: &Served, serving: bool) -> Value {
    let since_ms = i64::try_from(entry.since_ms).unwrap_or(i64::MAX);
    let since = jiff::Timestamp::from_millisecond(since_ms).unwrap_or(jiff::Timestamp::MAX);
    json!({
        "version": entry.version,
        "since": format!("{since:.3}"),
        "by": entry.by,
        "serving": serving,
    })
}
