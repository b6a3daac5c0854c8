//! Rungs 20 and 21 of the ladder: what a request is about, found in the catalogue, and the headers that mirror arguments.

use crate::call::CallRequest;
use crate::catalogue::{Catalogue, Entry as _};
use crate::errand::Errand;
use crate::legacy::session::Session;
use crate::meta::Meta;
use crate::params::{CompleteParams, Rounds, ToolParams};
use crate::rate::Who;
use crate::wire::WireError;
use http::HeaderMap;
use longshore_runtime::contract::CompletionTarget;
use longshore_runtime::{Plugin, Work};
use longshore_tasks::Principal;
use std::net::IpAddr;
use std::sync::Arc;

/// Who asks, as far as it is known.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// What the request says of its client.
    pub(crate) meta: Meta,
    /// Who calls.
    pub(crate) principal: Principal,
    /// The address that it calls from.
    pub(crate) peer: Option<IpAddr>,
    /// The session of an older client, in which it can be asked while a call goes on.
    pub(crate) session: Option<Arc<Session>>,
}

impl Caller {
    /// The host itself, on behalf of someone.
    pub(crate) fn host(principal: Principal) -> Self {
        Self {
            meta: Meta::of_nobody(),
            principal,
            peer: None,
            session: None,
        }
    }

    fn sends(self, plugin: &Arc<Plugin>, work: Work, rounds: Rounds) -> Errand {
        Errand {
            plugin: plugin.clone(),
            work,
            meta: self.meta,
            rounds,
            principal: self.principal,
            session: self.session,
        }
    }
}

/// The tool of a call.
///
/// # Errors
/// -32602 if there is none of that name; -32020 if a header does not say what its argument says.
pub(crate) fn tool(
    catalogue: &Catalogue,
    params: ToolParams,
    rounds: Rounds,
    headers: Option<&HeaderMap>,
    caller: Caller,
) -> Result<CallRequest, WireError> {
    let tool = catalogue
        .tools
        .get(&params.name)
        .ok_or_else(|| WireError::unknown("tool", &params.name, "tools/list"))?;
    if let Some(headers) = headers
        && tool.mirrors_arguments()
    {
        tool.check_headers(headers, &params.arguments)?;
    }
    let work = Work::Tool {
        name: tool.tool().name.clone(),
        arguments: params.text,
    };
    Ok(CallRequest {
        who: Who::of(&caller.principal, caller.peer),
        tool: tool.clone(),
        arguments: params.arguments,
        errand: caller.sends(tool.plugin(), work, rounds),
    })
}

/// The prompt of `prompts/get`.
///
/// # Errors
/// -32602 if there is none of that name, or an argument is missing.
pub(crate) fn prompt(
    catalogue: &Catalogue,
    (name, arguments): (String, Vec<(String, String)>),
    rounds: Rounds,
    caller: Caller,
) -> Result<Errand, WireError> {
    let prompt = catalogue
        .prompts
        .get(&name)
        .ok_or_else(|| WireError::unknown("prompt", &name, "prompts/list"))?;
    if let Some(missing) = prompt.missing(&arguments) {
        return Err(WireError::invalid_params(format!(
            "params.arguments.{missing} is missing; the prompt needs it"
        )));
    }
    let name = prompt.own_name().to_owned();
    let work = Work::Prompt { name, arguments };
    Ok(caller.sends(prompt.plugin(), work, rounds))
}

/// The plugin of `resources/read`.
///
/// # Errors
/// -32602 with `data.uri` if no plugin has such a resource.
pub(crate) fn resource(
    catalogue: &Catalogue,
    uri: String,
    rounds: Rounds,
    caller: Caller,
) -> Result<Errand, WireError> {
    let plugin = catalogue
        .plugin_of_uri(&uri)
        .ok_or_else(|| WireError::no_such_resource(&uri))?;
    Ok(caller.sends(plugin, Work::Resource { uri }, rounds))
}

/// The plugin of `completion/complete`. `None`: it has no suggestions to make.
///
/// # Errors
/// -32602 if there is no such prompt, resource or template.
pub(crate) fn completion(
    catalogue: &Catalogue,
    params: CompleteParams,
    caller: Caller,
) -> Result<Option<Errand>, WireError> {
    let (plugin, target) = match params.target {
        CompletionTarget::Prompt(name) => {
            let prompt = catalogue.prompts.get(&name);
            let prompt =
                prompt.ok_or_else(|| WireError::unknown("prompt", &name, "prompts/list"))?;
            let own_name = prompt.own_name().to_owned();
            (prompt.plugin(), CompletionTarget::Prompt(own_name))
        }
        CompletionTarget::ResourceTemplate(uri) => {
            // A listed resource has nothing to fill in.
            if catalogue.resources.get(&uri).is_some() {
                return Ok(None);
            }
            // A template, or a URI of one.
            let exact = catalogue.templates.get(&uri);
            let template = exact.or_else(|| catalogue.template_of_uri(&uri));
            let template = template.ok_or_else(|| WireError::no_such_resource(&uri))?;
            let named = template.key().to_owned();
            (template.plugin(), CompletionTarget::ResourceTemplate(named))
        }
    };
    if !plugin.completes {
        return Ok(None);
    }
    let work = Work::Completion {
        target,
        argument: params.argument,
        value: params.value,
        known: params.known,
    };
    Ok(Some(caller.sends(plugin, work, Rounds::default())))
}
