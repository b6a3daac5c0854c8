//! What a call does and gives: any of the imports, in any order, and any result.

use crate::asks;
use crate::contents::{block, error, resource, role};
use crate::contract::exports::longshore::plugin::completions::Completion;
use crate::contract::exports::longshore::plugin::prompts::{PromptMessage, PromptResult};
use crate::contract::exports::longshore::plugin::resources::ReadOutcome;
use crate::contract::longshore::plugin::types::{CallResult, LogLevel, RpcError};
use crate::contract::longshore::plugin::{log, notify, task};
use crate::dice::Dice;
use std::hint::black_box;

/// Imports that are called by one call.
const ACTS_MAX: usize = 8;

const LEVELS: [LogLevel; 4] = [
    LogLevel::Debug,
    LogLevel::Notice,
    LogLevel::Error,
    LogLevel::Emergency,
];

pub(crate) fn serve(dice: &mut Dice) -> Result<(), RpcError> {
    act(dice);
    or_error(dice, |dice| {
        for _ in 0..dice.roll(4) {
            let _ = task::complete(&result(dice));
        }
    })
}

pub(crate) fn or_error<T>(
    dice: &mut Dice,
    give: impl FnOnce(&mut Dice) -> T,
) -> Result<T, RpcError> {
    if dice.once_in(6) {
        return Err(error(dice));
    }
    Ok(give(dice))
}

pub(crate) fn act(dice: &mut Dice) {
    for _ in 0..dice.roll(ACTS_MAX + 1) {
        match dice.roll(14) {
            0 => notify::tools_changed(),
            1 => notify::prompts_changed(),
            2 => notify::resources_changed(),
            3 => notify::resource_updated(&dice.uri()),
            4 => task::begin(),
            5 => drop(black_box((task::cancelled(), task::context()))),
            6 => drop(task::set_external_id(&dice.name())),
            7 => drop(task::external_id()),
            8 => drop(task::complete(&result(dice))),
            9 | 10 => {
                let (total, message) = (dice.maybe(Dice::float), dice.maybe(Dice::text));
                task::report_progress(dice.float(), total, message.as_deref());
            }
            11 => {
                let logger = dice.maybe(Dice::text);
                log::log(dice.pick(&LEVELS), logger.as_deref(), &dice.json());
            }
            _ => drop(task::request_input(&dice.some(3, asks::request))),
        }
    }
}

fn result(dice: &mut Dice) -> CallResult {
    CallResult {
        content: dice.some(4, block),
        structured_content: dice.maybe(Dice::json),
        is_error: dice.once_in(6),
        meta: dice.maybe(Dice::object),
    }
}

pub(crate) fn prompt(dice: &mut Dice) -> PromptResult {
    PromptResult {
        description: dice.maybe(Dice::text),
        messages: dice.some(3, |dice| PromptMessage {
            role: role(dice),
            content: block(dice),
        }),
        meta: dice.maybe(Dice::object),
    }
}

pub(crate) fn outcome(dice: &mut Dice) -> ReadOutcome {
    if dice.once_in(6) {
        return ReadOutcome::NotFound;
    }
    ReadOutcome::Found(dice.some(3, resource))
}

pub(crate) fn completion(dice: &mut Dice) -> Completion {
    Completion {
        values: dice.some(150, Dice::name),
        total: dice.maybe(|dice| dice.pick(&[0, 1, 100, u32::MAX])),
        has_more: dice.flag(),
    }
}
