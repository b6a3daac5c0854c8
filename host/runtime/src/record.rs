//! The record of a call, and the tape that a run reads it from and writes it to.
//!
//! While the tape has recorded entries ahead, the run *replays*: what the guest asks is answered from them. At their end it
//! goes on live, and what it learns is appended. A guest sees nothing of the world but its imports, so a run that is told the
//! same does the same; where it does not, it has [`Diverged`].
//!
//! Layout: entries, one after the other, each a tag byte and its fields; numbers are LEB128. Clock readings are not recorded
//! one by one, for some language runtimes read the clock thousands of times a second: the clock stands still between
//! entries, and an entry says after how many readings it moved, and by how much.
//!
//! This module must not know what the values mean: answers and contexts are bytes here.

use crate::clock::Elapsed;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What earlier runs of a call learned from outside. It ends with the question that the guest was waiting at.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Record(#[serde(with = "serde_bytes")] Vec<u8>);

impl Record {
    /// A record from its bytes, as [`Record::as_bytes`] gave them. What they hold is checked as a run replays them.
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Its bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Record({} bytes)", self.0.len())
    }
}

/// The guest asked something else than the record says, or the record cannot be read.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the run diverged from its record at entry {step}: {detail}")]
pub(crate) struct Diverged {
    pub(crate) step: u64,
    pub(crate) detail: String,
}

impl Diverged {
    /// The guest came to an effect within the recorded stretch.
    pub(crate) fn at_effect() -> Self {
        Self {
            step: 0,
            detail: "the guest came with an effect, and no record goes beyond one".to_owned(),
        }
    }
}

const CLOCK: u8 = 1;
const POLL: u8 = 2;
const NOT_READY: u8 = 3;
const READY: u8 = 4;
const VALUE: u8 = 5;
const ASK: u8 = 6;
const ANSWERS: u8 = 7;

fn tag_name(tag: u8) -> &'static str {
    match tag {
        CLOCK => "a clock reading",
        POLL => "a wait",
        NOT_READY | READY => "a look at a pollable",
        VALUE => "a reading of the call's context",
        ASK => "a question",
        ANSWERS => "answers",
        _ => "nothing that is known",
    }
}

/// Which import a recorded value came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Import {
    Context = 1,
    ExternalId = 2,
    RefusedQuestion = 3,
}

/// A step of the guest's clock while it computes, in microseconds. It doubles every 4,096 steps, which bounds the record of
/// a run however long it computes.
const CLOCK_STEP_US: u64 = 1_000;
const CLOCK_STEPS_PER_DOUBLING: u32 = 4_096;
const CLOCK_DOUBLINGS_MAX: u32 = 20;

/// A record that a run reads to its end and then extends.
#[derive(Debug)]
pub(crate) struct Tape {
    bytes: Vec<u8>,
    cursor: usize,
    step: u64,
    elapsed: Elapsed,
    seen_us: u64,
    readings: u64,
    clock_steps: u32,
    bytes_max: usize,
    state: Writing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writing {
    On,
    /// An entry did not fit: the record is no longer of use, and the call is pinned.
    Full,
    /// The caller wants the work to end, or it has had an effect; nothing of this run will be replayed.
    Off,
}

impl Tape {
    pub(crate) fn new(record: Option<Record>, started_ms: u64, bytes_max: usize) -> Self {
        Self {
            bytes: record.map_or_else(Vec::new, Record::into_bytes),
            cursor: 0,
            step: 0,
            elapsed: Elapsed::since(started_ms),
            seen_us: 0,
            readings: 0,
            clock_steps: 0,
            bytes_max,
            state: Writing::On,
        }
    }

    /// Whether the guest is still in the recorded stretch.
    pub(crate) fn is_replaying(&self) -> bool {
        self.cursor < self.bytes.len()
    }

    /// From here on nothing is recorded.
    pub(crate) fn stop(&mut self) {
        self.state = Writing::Off;
    }

    /// The record so far; `None` if the call cannot be replayed from it.
    pub(crate) fn record(&self) -> Option<Record> {
        (self.state == Writing::On).then(|| Record(self.bytes.clone()))
    }

    /// A reading of the guest's clock: microseconds since the start of the call.
    pub(crate) fn clock_us(&mut self) -> Result<u64, Diverged> {
        if self.is_replaying() {
            if self.bytes[self.cursor] == CLOCK {
                self.replay_clock()?;
            }
        } else {
            self.advance_clock();
        }
        self.readings += 1;
        Ok(self.seen_us)
    }

    fn replay_clock(&mut self) -> Result<(), Diverged> {
        let start = self.cursor;
        self.cursor += 1;
        let (readings, by_us) = (self.number()?, self.number()?);
        if readings == self.readings {
            self.step += 1;
            self.clock_steps += 1;
            self.move_clock(self.seen_us.saturating_add(by_us));
        } else {
            self.cursor = start;
        }
        Ok(())
    }

    fn advance_clock(&mut self) {
        let now_us = self.elapsed.now_us(self.seen_us);
        let doublings = (self.clock_steps / CLOCK_STEPS_PER_DOUBLING).min(CLOCK_DOUBLINGS_MAX);
        let by_us = now_us - self.seen_us;
        if by_us < CLOCK_STEP_US << doublings {
            return;
        }
        let mut entry = vec![CLOCK];
        put_number(&mut entry, self.readings);
        put_number(&mut entry, by_us);
        self.append(&entry);
        self.clock_steps += 1;
        self.move_clock(now_us);
    }

    fn move_clock(&mut self, to_us: u64) {
        self.seen_us = to_us;
        self.readings = 0;
    }

    /// The time that a new timer counts from: what the guest has seen, or the real time if that is later.
    pub(crate) fn timer_base_us(&mut self) -> u64 {
        if self.is_replaying() {
            self.seen_us
        } else {
            self.elapsed.now_us(self.seen_us)
        }
    }

    /// How long until the guest's clock stands at `at_us`.
    pub(crate) fn until_us(&mut self, at_us: u64) -> u64 {
        at_us.saturating_sub(self.elapsed.now_us(self.seen_us))
    }

    /// The pollables that were ready at this wait, if it is recorded.
    pub(crate) fn replay_poll(&mut self) -> Result<Option<Vec<u32>>, Diverged> {
        if !self.take_tag(POLL)? {
            return Ok(None);
        }
        let count = self.number()?;
        let mut ready = Vec::new();
        for _ in 0..count {
            ready.push(u32::try_from(self.number()?).unwrap_or(u32::MAX));
        }
        let by_us = self.number()?;
        self.move_clock(self.seen_us.saturating_add(by_us));
        Ok(Some(ready))
    }

    /// A wait is over; `timer_us` is the latest timer that fired in it, if one did. The clock is read anew.
    pub(crate) fn record_poll(&mut self, ready: &[u32]) {
        let now_us = self.elapsed.now_us(self.seen_us);
        let mut entry = vec![POLL];
        put_number(&mut entry, ready.len() as u64);
        for index in ready {
            put_number(&mut entry, u64::from(*index));
        }
        put_number(&mut entry, now_us - self.seen_us);
        self.append(&entry);
        self.move_clock(now_us);
    }

    /// Whether a pollable was ready at this look, if it is recorded.
    pub(crate) fn replay_ready(&mut self) -> Result<Option<bool>, Diverged> {
        if !self.is_replaying() {
            return Ok(None);
        }
        let ready = self.bytes[self.cursor] == READY;
        self.take_tag(if ready { READY } else { NOT_READY })?;
        Ok(Some(ready))
    }

    pub(crate) fn record_ready(&mut self, ready: bool) {
        self.append(&[if ready { READY } else { NOT_READY }]);
    }

    /// What an import answered, if it is recorded. `asked` are its arguments.
    pub(crate) fn replay_value(
        &mut self,
        import: Import,
        asked: &[u8],
    ) -> Result<Option<Vec<u8>>, Diverged> {
        // A refused question stands where a question would: look before taking.
        if import == Import::RefusedQuestion && self.bytes.get(self.cursor) != Some(&VALUE) {
            return Ok(None);
        }
        if !self.take_tag(VALUE)? {
            return Ok(None);
        }
        let recorded = self.byte()?;
        if recorded != import as u8 {
            return Err(self.diverged(format!(
                "{import:?} was read where the record has another reading"
            )));
        }
        self.expect_hash(asked)?;
        self.chunk().map(Some)
    }

    pub(crate) fn record_value(&mut self, import: Import, asked: &[u8], value: &[u8]) {
        let mut entry = vec![VALUE, import as u8];
        entry.extend_from_slice(&hash(asked));
        put_chunk(&mut entry, value);
        self.append(&entry);
    }

    /// The guest asks. Recorded answers come back at once; with `None` the run has arrived at the end of its record.
    pub(crate) fn ask(&mut self, asked: &[u8]) -> Result<Option<Vec<u8>>, Diverged> {
        if !self.take_tag(ASK)? {
            let mut entry = vec![ASK];
            entry.extend_from_slice(&hash(asked));
            self.append(&entry);
            return Ok(None);
        }
        self.expect_hash(asked)?;
        if !self.take_tag(ANSWERS)? {
            return Ok(None);
        }
        let answers = self.chunk()?;
        let by_us = self.number()?;
        self.move_clock(self.seen_us.saturating_add(by_us));
        Ok(Some(answers))
    }

    pub(crate) fn record_answers(&mut self, answers: &[u8]) {
        let now_us = self.elapsed.now_us(self.seen_us);
        let mut entry = vec![ANSWERS];
        put_chunk(&mut entry, answers);
        put_number(&mut entry, now_us - self.seen_us);
        self.append(&entry);
        self.move_clock(now_us);
    }

    fn append(&mut self, entry: &[u8]) {
        debug_assert!(!self.is_replaying(), "a recorded stretch is not written to");
        if self.state != Writing::On {
            return;
        }
        if self.bytes.len() + entry.len() > self.bytes_max {
            self.state = Writing::Full;
            return;
        }
        self.bytes.extend_from_slice(entry);
        self.cursor = self.bytes.len();
        self.step += 1;
    }

    /// Step over the tag of the next entry. `false` at the end of the record; another tag is a divergence.
    fn take_tag(&mut self, tag: u8) -> Result<bool, Diverged> {
        let Some(found) = self.bytes.get(self.cursor).copied() else {
            return Ok(false);
        };
        if found != tag {
            return Err(self.diverged(format!(
                "the guest came with {} where the record has {}",
                tag_name(tag),
                tag_name(found)
            )));
        }
        self.cursor += 1;
        self.step += 1;
        Ok(true)
    }

    fn expect_hash(&mut self, asked: &[u8]) -> Result<(), Diverged> {
        let recorded = self.take(8)?.to_vec();
        if recorded == hash(asked) {
            return Ok(());
        }
        Err(self.diverged("the guest asks something else than it did before".to_owned()))
    }

    fn byte(&mut self) -> Result<u8, Diverged> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn chunk(&mut self) -> Result<Vec<u8>, Diverged> {
        let len = usize::try_from(self.number()?).unwrap_or(usize::MAX);
        self.take(len).map(<[u8]>::to_vec)
    }

    fn number(&mut self) -> Result<u64, Diverged> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(self.diverged("the record is damaged: a number does not end".to_owned()))
    }

    fn take(&mut self, len: usize) -> Result<&[u8], Diverged> {
        let end = self.cursor.saturating_add(len);
        if end > self.bytes.len() {
            return Err(self.diverged("the record is damaged: it ends within an entry".to_owned()));
        }
        let start = self.cursor;
        self.cursor = end;
        Ok(&self.bytes[start..end])
    }

    fn diverged(&self, detail: String) -> Diverged {
        Diverged {
            step: self.step,
            detail,
        }
    }
}

fn hash(bytes: &[u8]) -> [u8; 8] {
    let mut short = [0; 8];
    short.copy_from_slice(&blake3::hash(bytes).as_bytes()[..8]);
    short
}

fn put_number(out: &mut Vec<u8>, mut value: u64) {
    loop {
        let low = u8::try_from(value & 0x7f).unwrap_or_default();
        value >>= 7;
        if value == 0 {
            out.push(low);
            return;
        }
        out.push(low | 0x80);
    }
}

fn put_chunk(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tape(record: Option<Record>) -> Tape {
        Tape::new(record, crate::clock::unix_ms(), 1 << 16)
    }

    /// A little guest: reads the clock, waits, asks twice.
    fn act(tape: &mut Tape, live_answers: &[&[u8]]) -> Vec<u64> {
        let mut seen = Vec::new();
        let mut answers = live_answers.iter();
        for question in ["one", "two"] {
            for _ in 0..50 {
                seen.push(tape.clock_us().expect("clock"));
                if !tape.is_replaying() {
                    std::thread::sleep(std::time::Duration::from_micros(100));
                }
            }
            match tape.replay_poll().expect("poll") {
                Some(ready) => seen.extend(ready.into_iter().map(u64::from)),
                None => {
                    tape.record_poll(&[0, 2]);
                    seen.extend([0, 2]);
                }
            }
            seen.push(tape.clock_us().expect("clock"));
            let answer = match tape.ask(question.as_bytes()).expect("ask") {
                Some(answer) => answer,
                None => match answers.next() {
                    Some(answer) => {
                        tape.record_answers(answer);
                        answer.to_vec()
                    }
                    None => return seen,
                },
            };
            seen.extend(answer.into_iter().map(u64::from));
        }
        seen
    }

    #[test]
    fn a_replay_sees_what_the_first_run_saw() {
        let mut first = tape(None);
        let seen = act(&mut first, &[b"A", b"B"]);
        let record = first.record().expect("not full");
        let mut again = tape(Some(record));
        assert_eq!(act(&mut again, &[]), seen);
        assert!(!again.is_replaying());
    }

    #[test]
    fn a_record_that_ends_at_a_question_arrives_there_again() {
        let mut first = tape(None);
        let seen = act(&mut first, &[b"A"]);
        let mut again = tape(first.record());
        assert_eq!(act(&mut again, &[]), seen);
        assert!(
            !again.is_replaying(),
            "the question is the end of the record"
        );
    }

    #[test]
    fn another_question_is_a_divergence() {
        let mut first = tape(None);
        first.ask(b"one").expect("live");
        let mut again = tape(first.record());
        let diverged = again.ask(b"other").expect_err("another question");
        assert_eq!(diverged.step, 1);
    }

    #[test]
    fn another_import_is_a_divergence() {
        let mut first = tape(None);
        first.record_ready(true);
        let mut again = tape(first.record());
        assert!(again.ask(b"one").is_err());
    }

    #[test]
    fn damage_is_an_error_and_not_a_panic() {
        let mut first = tape(None);
        act(&mut first, &[b"A", b"B"]);
        let bytes = first.record().expect("not full").into_bytes();
        for cut in 0..bytes.len() {
            let mut again = tape(Some(Record::from_bytes(bytes[..cut].to_vec())));
            let _ = again.ask(b"one");
            let mut flipped = bytes.clone();
            flipped[cut] ^= 0xff;
            let mut again = tape(Some(Record::from_bytes(flipped)));
            let _ = again.replay_poll();
        }
    }

    #[test]
    fn a_full_record_is_none() {
        let mut first = Tape::new(None, 0, 10);
        first.record_value(Import::Context, b"", &[0; 20]);
        assert!(first.record().is_none());
    }
}
