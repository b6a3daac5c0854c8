//! What a request runs: a piece of work for a plugin, with all that is known of its caller.
//!
//! It must not know how a run is followed.

use crate::app::App;
use crate::ends::Whose;
use crate::legacy::session::Session;
use crate::meta::Meta;
use crate::params::Rounds;
use crate::runner::Speaker;
use crate::seal::Binding;
use crate::strict;
use crate::wire::{WireError, response};
use longshore_runtime::contract::ClientFeatures;
use longshore_runtime::{Call, Context, Names, Plugin, Work};
use longshore_tasks::Principal;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A piece of work, its headers, name and shape found right.
#[derive(Debug)]
pub(crate) struct Errand {
    /// Whose work it is.
    pub(crate) plugin: Arc<Plugin>,
    /// The work.
    pub(crate) work: Work,
    /// What the request says of its client.
    pub(crate) meta: Meta,
    /// What it brings from earlier rounds.
    pub(crate) rounds: Rounds,
    /// Who calls.
    pub(crate) principal: Principal,
    /// The session of an older client, in which it can be asked while a call goes on.
    pub(crate) session: Option<Arc<Session>>,
}

impl Errand {
    /// A call that begins now.
    ///
    /// # Errors
    /// -32603 if the system has no random numbers.
    pub(crate) fn new_call(&self) -> Result<Call, WireError> {
        let call = Call::begin(self.work.clone(), self.context(), self.plugin.terms());
        let mut call = call.map_err(no_random_numbers)?;
        call.names = self.names();
        Ok(call)
    }

    /// What a run of it is called in the log.
    pub(crate) fn names(&self) -> Names {
        Names {
            principal: named(&self.principal),
            task: None,
        }
    }

    /// Whose it is, for the log.
    pub(crate) fn whose(&self) -> Whose<'_> {
        // What goes on with a state goes on with the version of that.
        let is_own = self.rounds.request_state.is_none();
        Whose {
            version: is_own.then(|| self.plugin.version.as_str()),
            principal: Some(&self.principal),
            task: None,
        }
    }

    /// What the guest is told of its caller.
    pub(crate) fn context(&self) -> Context {
        // The results of other methods have no place for questions.
        let may_ask = matches!(
            self.work,
            Work::Tool { .. } | Work::Prompt { .. } | Work::Resource { .. }
        );
        Context {
            features: if may_ask {
                self.meta.features
            } else {
                ClientFeatures::empty()
            },
            log_level: self.meta.log_level,
            trace: self.meta.trace.clone(),
        }
    }

    /// The answers that came with the request.
    ///
    /// # Errors
    /// -32602 if they are none.
    pub(crate) fn offered_answers(&self) -> Result<BTreeMap<String, String>, WireError> {
        let Some(responses) = &self.rounds.input_responses else {
            return Ok(BTreeMap::new());
        };
        let responses = response::read_responses(responses).map_err(WireError::invalid_params)?;
        Ok(responses.into_iter().collect())
    }

    /// Whether it goes on with something, so that its result is not what others would get.
    pub(crate) fn is_later_round(&self) -> bool {
        self.rounds.input_responses.is_some() || self.rounds.request_state.is_some()
    }

    /// What the state of this round is good for.
    pub(crate) fn binding(&self, app: &App) -> Binding {
        let (target, arguments) = match &self.work {
            Work::Tool { name, arguments } => {
                // Who sends a request again may write it anew, and gateways do.
                let text = strict::canonical(arguments);
                (format!("tools/call {name}"), Binding::digest(&text))
            }
            Work::Prompt { name, arguments } => {
                // Text in pairs is always JSON, and in one way only: the pairs are in the order of their names.
                let text = serde_json::to_string(arguments).unwrap_or_default();
                (format!("prompts/get {name}"), Binding::digest(&text))
            }
            other => (
                format!("resources/read {}", other.subject()),
                Binding::digest(""),
            ),
        };
        Binding {
            target,
            arguments,
            principal: self.principal.as_str().to_owned(),
            plugin: self.plugin.name.clone(),
            version: self.plugin.version.as_str().to_owned(),
            expires_ms: app
                .clock
                .now_ms()
                .saturating_add(app.config.host.input_time_ms),
        }
    }
}

/// The name of a principal in the log. Who has none is everybody.
pub(crate) fn named(principal: &Principal) -> Option<Arc<str>> {
    (!principal.is_anonymous()).then(|| principal.as_str().into())
}

pub(crate) fn no_random_numbers(error: impl std::fmt::Display) -> WireError {
    let message = format!("the system has no random numbers: {error}");
    WireError::internal("entropy", message)
}

/// Who speaks in this work.
pub(crate) fn speaker(plugin: &Plugin, work: &Work) -> Speaker {
    Speaker {
        plugin: plugin.name.clone(),
        kind: match work {
            Work::Tool { .. } => "tool",
            Work::Prompt { .. } => "prompt",
            Work::Resource { .. } | Work::Subscribe { .. } | Work::Unsubscribe { .. } => "resource",
            Work::Completion { .. } => "completion",
        },
        subject: work.subject().to_owned(),
    }
}
