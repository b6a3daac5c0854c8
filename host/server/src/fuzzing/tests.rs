//! The kept inputs and variants of them, without a fuzzer: the same on every machine, in seconds.

use super::{Accepted, lines, message, request, take, take_with_headers};
use crate::era::Era;
use std::path::Path;

/// Inputs made of each kept one.
const VARIANTS: u64 = 4_000;

/// The kept inputs of a target, in the order of their names.
fn corpus(target: &str) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let entries = std::fs::read_dir(root.join(target)).unwrap();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    files
        .iter()
        .map(|file| std::fs::read(file).unwrap())
        .collect()
}

/// SplitMix64 (Steele, Lea, Flood 2014): the same inputs on every machine.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % below.max(1) as u64).unwrap()
    }
}

/// What messages are made of; swapped in where they hurt.
const TOKENS: [&str; 16] = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\u0061",
    "null",
    "1e9",
    "-0",
    "\"name\":\"x\",",
    "\"id\":2,",
    "\n",
    "\r\nMcp-Name: x\n",
    "=?base64?YQ==?=",
];

fn changed(input: &[u8], others: &[Vec<u8>], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..=dice.roll(4) {
        let at = dice.roll(bytes.len() + 1);
        let end = (at + dice.roll(9)).min(bytes.len());
        let new: Vec<u8> = match dice.roll(6) {
            0 => Vec::new(),
            1 => vec![u8::try_from(dice.roll(256)).unwrap()],
            2 => TOKENS[dice.roll(TOKENS.len())].into(),
            3 => bytes[at..end].repeat(2),
            4 => bytes[at..end].iter().map(|byte| byte ^ 0x20).collect(),
            _ => {
                let other = &others[dice.roll(others.len())];
                let from = dice.roll(other.len() + 1);
                other[from..(from + dice.roll(40)).min(other.len())].to_vec()
            }
        };
        bytes.splice(at..end, new);
    }
    bytes
}

fn run(target: &str, check: impl Fn(&[u8])) {
    let kept = corpus(target);
    let mut dice = Dice(7);
    for input in &kept {
        check(input);
        for _ in 0..VARIANTS {
            check(&changed(input, &kept, &mut dice));
        }
    }
}

/// What of the kept inputs of a target is accepted.
fn accepted(target: &str, take: impl Fn(&[u8]) -> Option<Accepted>) -> Vec<Accepted> {
    corpus(target)
        .iter()
        .filter_map(|input| take(input))
        .collect()
}

const METHODS: [&str; 13] = [
    "server/discover",
    "tools/list",
    "tools/call",
    "prompts/list",
    "prompts/get",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "completion/complete",
    "subscriptions/listen",
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
];

#[test]
fn the_kept_inputs_reach_all_that_is_judged() {
    let alone = accepted("message", take);
    assert!(alone.contains(&Accepted::Notification));
    assert!(alone.contains(&Accepted::Response));
    for reached in [alone, accepted("headers", take_with_headers)] {
        for method in METHODS {
            let wanted = Accepted::Request(Era::Modern, method);
            assert!(reached.contains(&wanted), "{wanted:?}");
        }
        for wanted in [
            Accepted::Request(Era::Handshake, "initialize"),
            Accepted::Request(Era::Session, "tools/list"),
            Accepted::Request(Era::Session, "tools/call"),
            Accepted::Request(Era::Session, "prompts/get"),
            Accepted::Request(Era::Session, "resources/read"),
        ] {
            assert!(reached.contains(&wanted), "{wanted:?}");
        }
    }
}

#[test]
fn messages() {
    run("message", message);
}

#[test]
fn headers_and_bodies() {
    run("headers", request);
}

#[test]
fn lines_of_an_input() {
    run("lines", lines);
}
