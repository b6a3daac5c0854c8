//! Visiting the heads of a database of which parts cannot be read: around each such part, as near as can be.
//!
//! A range of keys is read in steps. Where one fails they become smaller, down to the place itself, and then it is looked for
//! the next key from which reading goes on. That takes some hundred reads for each such part, however large it is.

use std::ops::Bound;

use longshore_tasks::{StoreError, TaskId};

use crate::engine::{Database, Show};
use crate::record;

/// The smallest step between two ids, as numbers: far below the distance of any two of them, which are random.
const STEP_MIN: u128 = 1 << 64;

/// A key as a number: the beginning of its id, which is enough to tell any two apart.
type Place = u128;

/// Shows all heads that can be read, in the order of their ids. Each part that cannot is told once, by the database's word.
///
/// # Errors
/// Those of `show`.
pub(super) fn heads(
    db: &dyn Database,
    tell: &mut impl FnMut(&StoreError),
    show: &mut Show<'_>,
) -> Result<(), StoreError> {
    let (mut at, mut step): (Place, Place) = (0, STEP_MIN);
    loop {
        let end = at.checked_add(step);
        match read(db, at, end, show)? {
            Read::All => {
                let Some(end) = end else {
                    return Ok(());
                };
                (at, step) = (end, step.saturating_mul(2));
            }
            Read::UpTo(place, _) if step > STEP_MIN => {
                (at, step) = (place, (step / 16).max(STEP_MIN));
            }
            Read::UpTo(place, error) => {
                tell(&error);
                let Some(next) = behind(db, place) else {
                    return Ok(());
                };
                (at, step) = (next, STEP_MIN);
            }
        }
    }
}

/// The first place from which reading goes on behind one where it does not.
fn behind(db: &dyn Database, hole: Place) -> Option<Place> {
    let reads = |place: Place| {
        let end = place.checked_add(STEP_MIN);
        let show: &mut Show<'_> = &mut |_, _| Ok(std::ops::ControlFlow::Continue(()));
        matches!(read(db, place, end, show), Ok(Read::All))
    };
    let (mut low, mut skip) = (hole, STEP_MIN);
    let mut high = hole.checked_add(skip)?;
    while !reads(high) {
        // Not doubled: what can be read between two such parts must not be leapt over.
        skip = skip.checked_add((skip / 8).max(STEP_MIN))?;
        (low, high) = (high, hole.checked_add(skip)?);
    }
    while high - low > STEP_MIN {
        let middle = low + (high - low) / 2;
        if reads(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(high)
}

/// The lowest id of this place.
fn id_at(place: Place) -> TaskId {
    let mut bytes = [0; TaskId::BYTES];
    let (beginning, _) = bytes.split_at_mut(size_of::<Place>());
    beginning.copy_from_slice(&place.to_be_bytes());
    TaskId::from_bytes(bytes)
}

fn place_of(id: &TaskId) -> Place {
    let (beginning, _) = id.as_bytes().split_at(size_of::<Place>());
    beginning
        .iter()
        .fold(0, |place, byte| place << 8 | Place::from(*byte))
}

enum Read {
    All,
    /// Not from here on.
    UpTo(Place, StoreError),
}

/// Reads from a place to another, or to the end of all heads.
fn read(
    db: &dyn Database,
    from: Place,
    end: Option<Place>,
    show: &mut Show<'_>,
) -> Result<Read, StoreError> {
    let key = |place: Place| record::head_key(&id_at(place));
    let (_, last) = record::head_range(None);
    let keys = (
        Bound::Included(key(from)),
        end.map_or(last, |end| Bound::Excluded(key(end))),
    );
    let (mut place, mut refused) = (from, None);
    let done = db.scan(&keys, &mut |key, sealed| {
        let flow = show(key, sealed).inspect_err(|error| refused = Some(error.clone()))?;
        if let Ok(id) = record::id_at(key, 1) {
            // A damaged page may show anything; it does not lead back.
            let next = place_of(&id).saturating_add(1);
            place = place.max(next).min(end.unwrap_or(Place::MAX));
        }
        Ok(flow)
    });
    match (done, refused) {
        (_, Some(error)) => Err(error),
        (Ok(()), None) => Ok(Read::All),
        (Err(error), None) => Ok(Read::UpTo(place, error)),
    }
}
