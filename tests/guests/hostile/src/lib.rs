//! Tools, prompts and resources that misbehave, each in its own way. The host must answer each with one clear error, or bear it.
//!
//! What needs a component of its own (an endless start, a file that is no plugin) is in `wat/`.

mod answers;
mod bombs;
mod definitions;
mod documents;
mod floods;
mod greed;
mod questions;
mod reach;

use definitions::{bad, with};
use longshore_plugin::{prompt, resource, tool};

longshore_plugin::plugin! {
    tools: [
        tool("spin", greed::spin).description("Loops for ever."),
        tool("recurse", greed::recurse).description("Calls itself for ever."),
        tool("grow", greed::grow),
        tool("grow_then_ask", greed::grow_then_ask),
        tool("burn", greed::burn),
        tool("trap", greed::trap).description("Traps."),
        tool("trap_after", greed::trap_after),
        tool("exit", greed::exit),
        tool("sleep", greed::sleep),
        tool("sleep_for_ever", greed::sleep_for_ever).description("Waits to the end of time."),
        tool("read_stdin", greed::read_stdin).description("Reads all of its standard input."),
        tool("env", greed::env).description("Returns all that it sees of its environment."),

        tool("no_result", answers::no_result).description("Ends without a result."),
        tool("complete_twice", answers::complete_twice).description("Gives two results."),
        tool("complete_then_trap", answers::complete_then_trap)
            .description("Gives a result, then traps."),
        tool("complete_then_fail", answers::complete_then_fail)
            .description("Gives a result, then returns an error."),
        tool("complete_then_spin", answers::complete_then_spin)
            .description("Gives a result, then loops for ever."),
        tool("big", answers::big),
        tool("bad_json", answers::bad_json)
            .description("Gives structured content that is no JSON."),
        tool("deep_json", answers::deep_json),
        tool("forge_meta", answers::forge_meta)
            .description("Gives a `_meta` with what only the host says."),
        tool("bad_meta", answers::bad_meta).description("Gives a `_meta` that is no object."),
        tool("bad_media", answers::bad_media)
            .description("Gives a picture whose media type is none."),
        tool("wrong_shape", answers::wrong_shape)
            .description("Gives structured content that does not fit its output schema.")
            .output_schema(r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#),
        tool("no_structure", answers::no_structure)
            .description("Has an output schema and gives no structured content.")
            .output_schema(r#"{"type":"object"}"#),
        tool("rpc_error", answers::rpc_error),

        tool("spew", floods::spew),
        tool("log_flood", floods::log_flood),
        tool("log_bad_json", floods::log_bad_json).description("Logs text that is no JSON."),
        tool("progress_flood", floods::progress_flood),
        tool("progress_bad", floods::progress_bad)
            .description("Reports progress that falls, is infinite, or is no number."),
        tool("notify_flood", floods::notify_flood),
        tool("poll_flood", floods::poll_flood)
            .description("Asks for ever whether it is cancelled, and never stops."),
        tool("external_id_bad", floods::external_id_bad)
            .description("Sets external ids that are none."),

        bad("no name", "{\"type\":\"object\"}"),
        bad(&"long".repeat(33), "{\"type\":\"object\"}"),
        bad("spin", "{\"type\":\"object\"}"),
        bad("schema_missing", ""),
        bad("schema_no_json", "nonsense"),
        bad("schema_of_string", r#"{"type":"string"}"#),
        bad("schema_of_int", r#"{"type":"int"}"#),
        bad("output_of_int", "{\"type\":\"object\"}").output_schema(r#"{"type":"int"}"#),
        bad("header_twice", &with(r#"{"a":{"type":"string","x-mcp-header":"Region"},"b":{"type":"string","x-mcp-header":"REGION"}}"#)),
        bad("header_of_number", &with(r#"{"a":{"type":"number","x-mcp-header":"A"}}"#)),
        bad("header_of_items", &with(r#"{"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}}"#)),
        definitions::reserved_tool(),
        tool("reserved_blocks", definitions::reserved_blocks)
            .description("Gives blocks with reserved keys of `_meta`."),
        tool("bad_link", definitions::bad_link).description("Gives a link whose URI is none."),
        tool("only_structure", definitions::only_structure)
            .description("Gives structured content, and no text."),

        tool("handle_flood", bombs::handle_flood).description("Keeps handles of the host's."),
        tool("log_big", bombs::log_big),
        tool("random_flood", bombs::random_flood),
        tool("field_flood", bombs::field_flood).description("Fills HTTP fields."),
        tool("clock_edges", bombs::clock_edges),
        tool("poll_none", bombs::poll_none).description("Waits for nothing."),
        tool("forge", bombs::forge).description("Prints what looks like another's message."),
        tool("raw_json", bombs::raw_json),
        tool("cat_then_ask", bombs::cat_then_ask),

        tool("cat", reach::cat).description("Reads a file."),
        tool("ls", reach::ls).description("Lists a folder."),
        tool("write", reach::write).description("Writes a file."),
        tool("rewrite", reach::rewrite).description("Writes a text twice."),
        tool("stretch", reach::stretch),
        tool("change", reach::change).description("Changes a folder in every way."),
        tool("write_then_ask", reach::write_then_ask)
            .description("Appends to a file, asks, and tells what is in it."),
        tool("write_and_wait", reach::write_and_wait),
        tool("print_variable", reach::print_variable),
        tool("send", reach::send),
        tool("send_then_ask", reach::send_then_ask).description("Sends a request, then asks."),
        tool("connect", reach::connect),
        tool("listen", reach::listen).description("Waits for connections."),

        tool("question_flood", questions::question_flood),
        tool("question_many", questions::question_many),
        tool("question_schema", questions::question_schema),
        tool("question_name", questions::question_name),
        tool("question_same_name", questions::question_same_name)
            .description("Asks two questions of one name at once."),
        tool("question_url", questions::question_url),
        tool("question_none", questions::question_none).description("Asks nothing."),
    ],
    prompts: [
        prompt("big", documents::big).description("Is large."),
        prompt("spin", documents::spin).description("Loops for ever."),
        definitions::reserved_prompt(),
        prompt("bad", documents::bad_prompt).description("Has a `_meta` that is no JSON."),
    ],
    resources: [
        resource("hostile://big", "big", documents::big),
        resource("hostile://big-blob", "big blob", documents::big_blob),
        resource("hostile://spin", "spin", documents::spin),
        resource("hostile://trap", "trap", documents::trap),
        resource("hostile://bad-meta", "bad meta", documents::bad_meta),
        resource("hostile://bad-media", "bad media", documents::bad_media),
        resource("hostile://empty", "empty", documents::empty),
        definitions::reserved_resource(),
    ],
    templates: [definitions::reserved_template()],
}
