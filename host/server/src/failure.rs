//! Failures of runs and tasks, as the wire has them: one place for their codes, texts and `data`.
//!
//! The same failure has the same payload on a plain call and in a task. `data.reason` is stable, `data.limit` is the config key
//! of the limit; the message says what happened and what to do.

use crate::runner::Speaker;
use crate::task_methods;
use crate::wire::{WireError, content};
use longshore_runtime::contract::{ClientFeatures, RpcError};
use longshore_runtime::json::check;
use longshore_runtime::{Exceeded, Failure};
use longshore_tasks::{EngineError, Reason};
use serde_json::{Value, json};

const INVALID_PARAMS: i32 = -32602;
const INTERNAL_ERROR: i32 = -32603;
const MISSING_CAPABILITY: i32 = -32021;

/// The error of a run that ended without a result.
pub(crate) fn of_run(failure: &Failure, speaker: &Speaker) -> WireError {
    match failure {
        Failure::Raised { error, refused } => raised(error, *refused, speaker),
        Failure::Limit(exceeded) => limit(*exceeded, speaker),
        Failure::Trap(trap) => internal(
            format!("{speaker} failed: {trap}"),
            &data(failure.reason(), speaker),
        ),
        Failure::Diverged { step, detail } => {
            let mut data = data(failure.reason(), speaker);
            data["step"] = (*step).into();
            internal(
                format!(
                    "{speaker} did not do the same when it was run again, at entry {step} of its record: {detail}. Call it again; if it stays, tell its author"
                ),
                &data,
            )
        }
        Failure::NoResult { refused } => {
            let why = refused
                .as_ref()
                .map(|why| format!(": {why}"))
                .unwrap_or_default();
            internal(
                format!("{speaker} returned without a result{why}"),
                &data(failure.reason(), speaker),
            )
        }
        Failure::Busy { limit, value } => internal(
            format!(
                "{speaker} cannot be run now, for the server is busy: as many wait already as may ({limit} = {value}); try again"
            ),
            &data_of_limit(failure.reason(), speaker, (limit, *value)),
        ),
        Failure::Unavailable(why) => internal(
            format!("{speaker} cannot be run: {why}"),
            &data(failure.reason(), speaker),
        ),
    }
}

/// What bounds the calls that wait for answers and cannot leave memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WaitingLimit {
    /// What their guests hold.
    Bytes(u64),
    /// How many plain ones there are at once.
    Calls(u64),
}

/// The error of a call that asked and has to stay in memory, where its like hold all they may.
pub(crate) fn no_room(speaker: &Speaker, limit: WaitingLimit) -> WireError {
    let (name, value, remedy) = match limit {
        WaitingLimit::Bytes(max) => (
            "tasks.waiting_bytes_max",
            max,
            " (the operator can raise it)",
        ),
        WaitingLimit::Calls(max) => ("parked_calls", max, ""),
    };
    let data = data_of_limit(Reason::NoRoom.as_str(), speaker, (name, value));
    let message = format!(
        "{speaker} asked, but the calls that wait for answers and cannot leave memory take all that they may: {name} = {value}, half of it for the plugin {}; check what it did, then call again later{remedy}",
        speaker.plugin
    );
    internal(message, &data)
}

/// The error of a call by someone who has called as often as he may; there is room for it in so many milliseconds.
pub(crate) fn too_often(speaker: &Speaker, per_minute: u32, wait_ms: u64) -> WireError {
    let mut data = data_of_limit("rate", speaker, ("calls_per_minute", per_minute.into()));
    data["retryAfterMs"] = wait_ms.into();
    internal(
        format!(
            "{speaker} is not called: more than {per_minute} calls a minute; try again in {wait_ms} ms, or have the operator raise limits.calls_per_minute"
        ),
        &data,
    )
}

/// The error of a call that was to become a task, and did not. `running_bytes_max` is what the calls of running tasks may take.
pub(crate) fn of_birth(error: EngineError, speaker: &Speaker, running_bytes_max: u64) -> WireError {
    let (reason, limit) = match &error {
        EngineError::Busy => ("busy", ("tasks.running_bytes_max", running_bytes_max)),
        EngineError::Full { open_max } => (
            "open_tasks",
            ("tasks.open_per_principal_max", *open_max as u64),
        ),
        _ => return task_methods::wire_error(error),
    };
    let data = data_of_limit(reason, speaker, limit);
    task_methods::wire_error(error).with_data(&data)
}

/// The error of a task that the engine ended. `waiting_bytes_max` is what its guests had to wait in.
pub(crate) fn of_task(reason: Reason, speaker: &Speaker, waiting_bytes_max: u64) -> WireError {
    let message = match reason {
        Reason::Expired => {
            "the task ended at its time to live; call again, or ask for less at once".to_owned()
        }
        Reason::Interrupted => format!(
            "the server restarted while {speaker} ran, and it is not run again; check what it did, then call again"
        ),
        Reason::CrashLoop => format!(
            "the server broke down again and again while {speaker} ran, and it was given up; tell the operator of the server"
        ),
        Reason::Diverged => format!(
            "{speaker} asked something else when it was run again; call it again, and if it stays, tell its author"
        ),
        Reason::NoRoom => return no_room(speaker, WaitingLimit::Bytes(waiting_bytes_max)),
        _ => format!("the run of {speaker} broke down in the server; see its log"),
    };
    internal(message, &data(reason.as_str(), speaker))
}

fn internal(message: String, data: &Value) -> WireError {
    WireError::new(INTERNAL_ERROR, message).with_data(data)
}

fn data(reason: &str, speaker: &Speaker) -> Value {
    json!({ "reason": reason, "plugin": speaker.plugin, (speaker.kind): speaker.subject })
}

fn data_of_limit(reason: &str, speaker: &Speaker, (limit, value): (&str, u64)) -> Value {
    let mut data = data(reason, speaker);
    data["limit"] = limit.into();
    data["value"] = value.into();
    data
}

fn limit(exceeded: Exceeded, speaker: &Speaker) -> WireError {
    let name = exceeded.limit.name();
    let data = data_of_limit("limit", speaker, (name, exceeded.value));
    let mut message = format!("{speaker} exceeded its limit {name} = {}", exceeded.value);
    if !exceeded.limit.is_fixed() {
        message.push_str(&format!(
            "; the operator can raise it: plugins.{}.limits.{name}",
            speaker.plugin
        ));
    }
    internal(message, &data)
}

/// An error that the guest returned. Which codes are its own to use is in `wit/types.wit`.
fn raised(error: &RpcError, refused: ClientFeatures, speaker: &Speaker) -> WireError {
    let code = error.code;
    let own = error.data.as_deref().map(|data| {
        let sound = check(data, "data").is_ok();
        let value = sound.then(|| serde_json::from_str(data).ok()).flatten();
        let mut value = value.unwrap_or_else(|| Value::from(data));
        if let Some(meta) = value.get_mut("_meta").and_then(Value::as_object_mut) {
            content::drop_reserved(meta);
        }
        value
    });
    if code == MISSING_CAPABILITY && refused != ClientFeatures::empty() {
        return WireError::missing_capability(
            error.message.clone(),
            &required_capabilities(refused),
        );
    }
    let reserved = (-32768..=-32000).contains(&code);
    // These two are the host's too, so their data must not say what only the host's says.
    let shared = code == INVALID_PARAMS || code == INTERNAL_ERROR;
    let forged = own.as_ref().is_some_and(speaks_as_host);
    if !reserved || (shared && !forged) {
        let wire = WireError::new(code, error.message.clone());
        return match own {
            Some(own) => wire.with_data(&own),
            None => wire,
        };
    }
    let mut data = data("raised", speaker);
    if !shared {
        data["code"] = code.into();
    }
    if let Some(own) = own {
        data["data"] = own;
    }
    let code = if shared { code } else { INTERNAL_ERROR };
    WireError::new(code, error.message.clone()).with_data(&data)
}

/// Whether a client could take this for the data of one of the host's own errors.
fn speaks_as_host(data: &Value) -> bool {
    ["reason", "plugin"]
        .iter()
        .any(|member| data.get(member).is_some())
}

/// What a client would declare to have these features, in the shape of its capabilities.
fn required_capabilities(features: ClientFeatures) -> Value {
    let mut required = json!({});
    let paths: [(ClientFeatures, &[&str]); 7] = [
        (ClientFeatures::ELICITATION_FORM, &["elicitation", "form"]),
        (ClientFeatures::ELICITATION_URL, &["elicitation", "url"]),
        (ClientFeatures::SAMPLING, &["sampling"]),
        (ClientFeatures::SAMPLING_TOOLS, &["sampling", "tools"]),
        (ClientFeatures::SAMPLING_CONTEXT, &["sampling", "context"]),
        (ClientFeatures::ROOTS, &["roots"]),
        (
            ClientFeatures::TASKS,
            &["extensions", "io.modelcontextprotocol/tasks"],
        ),
    ];
    for (feature, path) in paths {
        if features.contains(feature) {
            let mut place = &mut required;
            for name in path {
                if place.get(*name).is_none() {
                    place[*name] = json!({});
                }
                place = &mut place[*name];
            }
        }
    }
    required
}

#[cfg(test)]
mod tests {
    use super::*;
    use longshore_runtime::Limit;

    fn speaker() -> Speaker {
        Speaker {
            plugin: "p".to_owned(),
            kind: "tool",
            subject: "t".to_owned(),
        }
    }

    fn payload(failure: &Failure) -> Value {
        serde_json::from_str(&of_run(failure, &speaker()).to_json()).unwrap()
    }

    fn raised_code(code: i32, refused: ClientFeatures) -> Value {
        let error = RpcError {
            code,
            message: "m".to_owned(),
            data: Some("[1]".to_owned()),
        };
        payload(&Failure::Raised { error, refused })
    }

    #[test]
    fn a_limit_names_itself_its_value_and_its_key() {
        let wire = payload(&Failure::Limit(Exceeded {
            limit: Limit::Fuel,
            value: 7,
        }));
        assert_eq!(wire["code"], -32603);
        let expected =
            json!({"reason": "limit", "plugin": "p", "tool": "t", "limit": "fuel", "value": 7});
        assert_eq!(wire["data"], expected);
        assert!(
            wire["message"]
                .as_str()
                .unwrap()
                .contains("plugins.p.limits.fuel")
        );
    }

    #[test]
    fn a_guest_may_not_make_the_hosts_errors() {
        for code in [-32602, -32603, 7, -31999, -40000] {
            assert_eq!(raised_code(code, ClientFeatures::empty())["code"], code);
        }
        for code in [
            -32020, -32021, -32022, -32700, -32600, -32601, -32002, -32042,
        ] {
            let wire = raised_code(code, ClientFeatures::empty());
            assert_eq!(wire["code"], -32603);
            assert_eq!(wire["data"]["code"], code);
            assert_eq!(wire["data"]["data"], json!([1]));
        }
    }

    #[test]
    fn a_guest_does_not_speak_as_the_host() {
        let raised = |code, data: &str| {
            payload(&Failure::Raised {
                error: RpcError {
                    code,
                    message: "m".to_owned(),
                    data: Some(data.to_owned()),
                },
                refused: ClientFeatures::empty(),
            })
        };
        for code in [-32602, -32603] {
            for own in [
                json!({"reason": "limit", "plugin": "other"}),
                json!({"plugin": 1}),
            ] {
                let wire = raised(code, &own.to_string());
                let told = json!({"reason": "raised", "plugin": "p", "tool": "t", "data": own});
                assert_eq!((&wire["code"], &wire["data"]), (&code.into(), &told));
            }
            assert_eq!(raised(code, r#"{"uri":"x"}"#)["data"], json!({"uri": "x"}));
        }
        // No error of the host has this code.
        assert_eq!(raised(7, r#"{"reason":1}"#)["data"], json!({"reason": 1}));
    }

    #[test]
    fn a_refused_question_names_what_is_missing() {
        let wire = raised_code(-32021, ClientFeatures::SAMPLING);
        assert_eq!(wire["code"], -32021);
        assert_eq!(
            wire["data"],
            json!({"requiredCapabilities": {"sampling": {}}})
        );
    }
}
