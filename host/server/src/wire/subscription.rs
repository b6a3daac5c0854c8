//! What goes over a stream of notifications. Everything on it carries the id of the request that opened it.

use super::content::SERVER_INFO;
use super::object::Object;
use super::{rpc, server_info};
use crate::listen::filter::{Filter, Honoured};
use serde_json::value::RawValue;

/// The key of `_meta` under which a message names its stream.
const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// Params that carry the id of their stream.
pub(crate) fn params(id: &RawValue) -> Object {
    let meta = Object::new().raw(SUBSCRIPTION_ID, id.get());
    Object::new().raw("_meta", &meta.finish())
}

/// `notifications/subscriptions/acknowledged`: what of the filter is honoured.
pub(crate) fn acknowledged(id: &RawValue, filter: &Filter, honoured: &Honoured) -> String {
    let yes = |wanted: bool| wanted.then_some(&true);
    let uris = filter.resource_subscriptions.is_some();
    let ids: Vec<String> = honoured.tasks.iter().map(ToString::to_string).collect();
    let granted = Object::new()
        .option("toolsListChanged", yes(filter.tools))
        .option("promptsListChanged", yes(filter.prompts))
        .option("resourcesListChanged", yes(filter.resources))
        .option("resourceSubscriptions", uris.then_some(&honoured.uris))
        .option("taskIds", filter.task_ids.is_some().then_some(&ids));
    let params = params(id).raw("notifications", &granted.finish());
    rpc::notification("notifications/subscriptions/acknowledged", &params.finish())
}

/// `notifications/tools/list_changed` and its like.
pub(crate) fn list_changed(id: &RawValue, list: &str) -> String {
    let method = format!("notifications/{list}/list_changed");
    rpc::notification(&method, &params(id).finish())
}

/// `notifications/resources/updated`.
pub(crate) fn resource_updated(id: &RawValue, uri: &str) -> String {
    let params = params(id).value("uri", &uri);
    rpc::notification("notifications/resources/updated", &params.finish())
}

/// `notifications/tasks`, with the members of a task already in.
pub(crate) fn task(params: Object) -> String {
    rpc::notification("notifications/tasks", &params.finish())
}

/// `notifications/cancelled`: the server ends the stream. Where streams share a channel it comes before the result.
pub(crate) fn cancelled(id: &RawValue) -> String {
    let params = Object::new()
        .raw("requestId", id.get())
        .value("reason", &"the server stops");
    rpc::notification("notifications/cancelled", &params.finish())
}

/// The result that ends a stream in order.
pub(crate) fn closing(id: &RawValue) -> String {
    let meta = Object::new()
        .value(SERVER_INFO, &server_info())
        .raw(SUBSCRIPTION_ID, id.get());
    Object::result("complete")
        .raw("_meta", &meta.finish())
        .finish()
}
