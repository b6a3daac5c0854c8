//! After a failed write: the database is opened anew until that works, and the store goes on.
//!
//! It goes on only from what was acknowledged: a database that has lost some of it stops the store.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use longshore_tasks::StoreError;
use tokio::sync::{mpsc, oneshot};

use super::{Committer, Order};
use crate::engine::{Database, Scrutiny};
use crate::folder::{self, OpenError};

/// How long the first wait between two tries is, and the longest; it doubles. A try reads what was written since the last
/// start, so it must not come too often.
const WAIT_MS: u64 = 100;
const WAIT_MS_MAX: u64 = 5_000;

/// How often the waiting looks at the queue, in milliseconds: so long a call waits for its refusal.
const LOOK_MS: u64 = 20;

/// Who waits for the store to be closed.
type Closing = oneshot::Sender<Result<(), StoreError>>;

impl Committer {
    /// Tries until the database is open again or can never be trusted again. All that is asked meanwhile
    /// is refused. Returns early if the store is to be closed.
    pub(super) fn mend_until_it_works(
        &mut self,
        queue: &mut mpsc::Receiver<Order>,
    ) -> Option<Closing> {
        let mut wait_ms = WAIT_MS;
        while self.db.is_none() {
            if let Err(stop) = self.refuse_for(wait_ms, queue) {
                return stop;
            }
            wait_ms = (2 * wait_ms).min(WAIT_MS_MAX);
            match self.open_again() {
                Ok(db) => {
                    tracing::info!(dir = %self.dir.display(), "the task store works again");
                    self.window.open(&db);
                    self.db = Some(db);
                    self.tide.mend();
                }
                Err(error @ OpenError::Damaged { .. }) => {
                    tracing::error!(%error, "the task store cannot go on");
                    self.tide.stop(StoreError::Corrupt(error.to_string()));
                    return None;
                }
                Err(error) => tracing::warn!(%error, "the task store does not work yet"),
            }
        }
        None
    }

    /// Refuses what is asked for so long. `Err` if the waiting is over for good.
    fn refuse_for(
        &self,
        wait_ms: u64,
        queue: &mut mpsc::Receiver<Order>,
    ) -> Result<(), Option<Closing>> {
        let mut waited_ms = 0;
        loop {
            match queue.try_recv() {
                Ok(Order::Change(_, reply)) => drop(reply.send(Err(self.tide.stopped()))),
                Ok(Order::Close(reply)) => return Err(Some(reply)),
                Err(mpsc::error::TryRecvError::Disconnected) => return Err(None),
                Err(mpsc::error::TryRecvError::Empty) if waited_ms >= wait_ms => return Ok(()),
                Err(mpsc::error::TryRecvError::Empty) => {
                    thread::sleep(Duration::from_millis(LOOK_MS));
                    waited_ms += LOOK_MS;
                }
            }
        }
    }

    /// The database as the disk has it, with the census that is in it.
    fn open_again(&mut self) -> Result<Arc<dyn Database>, OpenError> {
        let db = self.engine.open(&self.dir, Scrutiny::IfSmall)?;
        let census = folder::recount(&self.dir, &*db)?;
        // The last group may have been written before the failure, and not been acknowledged.
        let expected = self.durable..=self.census.sequence;
        if !expected.contains(&census.sequence) {
            let cause = format!(
                "it holds {} groups of changes, {} were acknowledged",
                census.sequence, self.durable
            );
            return Err(OpenError::damaged(&self.dir, cause));
        }
        folder::sweep_orphans(&self.dir, &*db)?;
        let io = |error| OpenError::io(&self.dir, error);
        self.mark.note(census.sequence).map_err(io)?;
        (self.census, self.durable) = (census, census.sequence);
        self.written_bytes = 0;
        Ok(db)
    }
}
