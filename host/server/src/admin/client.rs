//! The command line's side of the socket.

use super::{ANSWER_BYTES_MAX, Answer, Order, plain_text, socket_path};
use anyhow::{Context as _, anyhow, bail};
use serde_json::Value;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// How long an order may take: a version that is not in memory any more may have to be compiled.
const ORDER_TIME: Duration = Duration::from_secs(300);

/// Have the server of this data folder carry out an order.
///
/// # Errors
/// If no server runs there, or it says why nothing has changed.
pub(crate) fn order(data: &Path, order: &Order) -> anyhow::Result<Value> {
    let path = socket_path(data);
    let stream = UnixStream::connect(&path).map_err(|error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => anyhow!(
            "no server runs on the data folder {}; start one with `longshore serve`, or name its folder (--data, or --config)",
            data.display()
        ),
        ErrorKind::PermissionDenied => anyhow!(
            "{} does not take orders from this user; ask as the user who runs the server",
            path.display()
        ),
        _ => anyhow!("{}: {error}", path.display()),
    })?;
    stream.set_read_timeout(Some(ORDER_TIME))?;
    stream.set_write_timeout(Some(ORDER_TIME))?;
    let mut line = serde_json::to_vec(order)?;
    line.push(b'\n');
    (&stream)
        .write_all(&line)
        .context("the server takes no order")?;
    let mut text = Vec::new();
    BufReader::new(stream.take(ANSWER_BYTES_MAX))
        .read_until(b'\n', &mut text)
        .context("the server gave no answer")?;
    match serde_json::from_slice(&text).context("the server broke off")? {
        Answer::Done(done) => Ok(done),
        Answer::Failed(why) => bail!(plain_text(&why)),
    }
}
