//! Where readers find the database while the committer may close and open it.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use crate::engine::Database;

/// The database, if it is open, and how often it was opened.
#[derive(Default)]
pub(crate) struct Window(RwLock<(u64, Option<Arc<dyn Database>>)>);

/// The database for one read.
pub(crate) struct Glimpse {
    pub(crate) db: Arc<dyn Database>,
    opening: u64,
}

impl fmt::Debug for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Window").finish_non_exhaustive()
    }
}

impl Window {
    pub(crate) fn open(&self, db: &Arc<dyn Database>) {
        let mut place = self.0.write().unwrap_or_else(PoisonError::into_inner);
        *place = (place.0 + 1, Some(Arc::clone(db)));
    }

    /// Readers that are at it keep it open until they are done; that is short.
    pub(crate) fn shut(&self) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).1 = None;
    }

    pub(crate) fn look(&self) -> Option<Glimpse> {
        let place = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let db = place.1.clone()?;
        let opening = place.0;
        Some(Glimpse { db, opening })
    }

    /// Whether it is open and was not opened anew since: what an older opening showed may be gone.
    pub(crate) fn still_shows(&self, glimpse: &Glimpse) -> bool {
        let place = self.0.read().unwrap_or_else(PoisonError::into_inner);
        place.1.is_some() && place.0 == glimpse.opening
    }
}
