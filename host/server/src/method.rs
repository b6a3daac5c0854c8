//! The methods that are served, and what the ladder asks of each.

use crate::catalogue::Catalogue;

/// A method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// `server/discover`
    Discover,
    /// `tools/list`
    ListTools,
    /// `tools/call`
    CallTool,
    /// `prompts/list`
    ListPrompts,
    /// `prompts/get`
    GetPrompt,
    /// `resources/list`
    ListResources,
    /// `resources/templates/list`
    ListTemplates,
    /// `resources/read`
    ReadResource,
    /// `completion/complete`
    Complete,
    /// `subscriptions/listen`
    Listen,
    /// `tasks/get`
    GetTask,
    /// `tasks/update`
    UpdateTask,
    /// `tasks/cancel`
    CancelTask,
}

impl Method {
    /// The method of this name.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "server/discover" => Self::Discover,
            "tools/list" => Self::ListTools,
            "tools/call" => Self::CallTool,
            "prompts/list" => Self::ListPrompts,
            "prompts/get" => Self::GetPrompt,
            "resources/list" => Self::ListResources,
            "resources/templates/list" => Self::ListTemplates,
            "resources/read" => Self::ReadResource,
            "completion/complete" => Self::Complete,
            "subscriptions/listen" => Self::Listen,
            "tasks/get" => Self::GetTask,
            "tasks/update" => Self::UpdateTask,
            "tasks/cancel" => Self::CancelTask,
            _ => return None,
        })
    }

    /// Whether there is anything that it could be about.
    pub(crate) fn is_offered(self, catalogue: &Catalogue) -> bool {
        match self {
            Self::ListPrompts | Self::GetPrompt => catalogue.offers_prompts(),
            Self::ListResources | Self::ListTemplates | Self::ReadResource => {
                catalogue.offers_resources()
            }
            Self::Complete => catalogue.offers_completions(),
            Self::Discover
            | Self::ListTools
            | Self::CallTool
            | Self::Listen
            | Self::GetTask
            | Self::UpdateTask
            | Self::CancelTask => true,
        }
    }

    /// Whether it belongs to the Tasks extension.
    pub(crate) fn is_of_tasks(self) -> bool {
        matches!(self, Self::GetTask | Self::UpdateTask | Self::CancelTask)
    }

    /// Whether the versions with sessions have it too.
    pub(crate) fn is_in_sessions(self) -> bool {
        !self.is_of_tasks() && !matches!(self, Self::Discover | Self::Listen)
    }

    /// The member of params that `Mcp-Name` repeats.
    pub(crate) fn name_member(self) -> Option<&'static str> {
        match self {
            Self::CallTool | Self::GetPrompt => Some("name"),
            Self::ReadResource => Some("uri"),
            Self::GetTask | Self::UpdateTask | Self::CancelTask => Some("taskId"),
            Self::Discover
            | Self::ListTools
            | Self::ListPrompts
            | Self::ListResources
            | Self::ListTemplates
            | Self::Complete
            | Self::Listen => None,
        }
    }
}
