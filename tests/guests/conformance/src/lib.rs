//! What the official conformance suite calls, fills in and reads, by the names and with the texts of its documentation.

mod content;
mod legacy;
mod prompts;
mod resources;
mod rounds;
mod stateless;
mod tasks;

use longshore_plugin::{complete_prompt, prompt, resource, template, tool};

// The first one is also what the suite's header scenarios call, without arguments.
longshore_plugin::plugin! {
    tools: [
        tool("test_simple_text", content::simple_text)
            .description("Returns a simple text.").task_forbidden(),
        tool("test_image_content", content::image)
            .description("Returns a picture of one pixel.").task_forbidden(),
        tool("test_audio_content", content::audio)
            .description("Returns a moment of silence.").task_forbidden(),
        tool("test_embedded_resource", content::embedded_resource)
            .description("Returns an embedded resource.").task_forbidden(),
        tool("test_multiple_content_types", content::multiple)
            .description("Returns a text, a picture and a resource.").task_forbidden(),
        tool("test_error_handling", content::failure)
            .description("Returns an error, on purpose.").task_forbidden(),
        tool("test_tool_with_progress", content::with_progress)
            .description("Reports progress three times.").task_forbidden(),
        tool("json_schema_2020_12_tool", content::schema_2020_12)
            .description("Has an input schema with keywords of JSON Schema 2020-12.")
            .input_schema(include_str!("schema-2020-12.json")).task_forbidden(),
        tool("test_custom_header", content::custom_header).task_forbidden(),

        tool("test_tool_with_logging", legacy::with_logging)
            .description("Logs three messages while it runs.").task_forbidden(),
        tool("test_sampling", legacy::sampling).task_forbidden(),
        tool("test_elicitation", legacy::elicitation).task_forbidden(),
        tool("test_elicitation_sep1034_defaults", legacy::defaults)
            .description("Asks with a form whose fields have defaults.").task_forbidden(),
        tool("test_elicitation_sep1330_enums", legacy::enums)
            .description("Asks with a form of all kinds of enumerations.").task_forbidden(),
        tool("test_reconnection", legacy::reconnection)
            .description("Takes long enough for a client to lose its stream.").task_forbidden(),

        tool("test_missing_capability", stateless::missing_capability)
            .description("Needs the client's model.").task_forbidden(),
        tool("test_streaming_elicitation", stateless::streaming_elicitation)
            .description("Asks the user for a confirmation.").task_forbidden(),
        tool("test_logging_tool", stateless::logging)
            .description("Logs one message.").task_forbidden(),
        tool("test_trigger_tool_change", stateless::trigger_tool_change)
            .description("Says that the list of tools has changed.").task_forbidden(),
        tool("test_trigger_prompt_change", stateless::trigger_prompt_change)
            .description("Says that the list of prompts has changed.").task_forbidden(),

        tool("test_input_required_result_elicitation", rounds::elicitation)
            .description("Asks the user for a name.").task_forbidden(),
        tool("test_input_required_result_sampling", rounds::sampling)
            .description("Asks the client's model for a capital.").task_forbidden(),
        tool("test_input_required_result_list_roots", rounds::list_roots)
            .description("Asks the client for its roots.").task_forbidden(),
        tool("test_input_required_result_request_state", rounds::request_state)
            .description("Asks for a confirmation and remembers what it was for.").task_forbidden(),
        tool("test_input_required_result_multiple_inputs", rounds::multiple_inputs)
            .description("Asks the user, the model and the client at once.").task_forbidden(),
        tool("test_input_required_result_multi_round", rounds::multi_round)
            .description("Asks for a name, then for a colour.").task_forbidden(),
        tool("test_input_required_result_tampered_state", rounds::tampered_state)
            .description("Asks for a confirmation; its state must not be forged.").task_forbidden(),
        tool("test_input_required_result_capabilities", rounds::capabilities)
            .description("Asks only what the client can answer.").task_forbidden(),

        tool("greet", tasks::greet).task_forbidden(),
        tool("slow_compute", tasks::slow_compute).read_only(),
        tool("failing_job", tasks::failing_job)
            .description("Fails after a second.").task_required(),
        tool("protocol_error_job", tasks::protocol_error_job)
            .description("Ends in a protocol error.").task_required(),
        tool("confirm_delete", tasks::confirm_delete),
        tool("multi_input", tasks::multi_input)
            .description("Asks two questions at once."),
        tool("test_tool_with_task", tasks::with_task)
            .description("Asks for a name, then greets in a task.").task_required().asks_first(),
    ],
    prompts: [
        prompt("test_simple_prompt", prompts::simple).description("A prompt without arguments."),
        prompt("test_prompt_with_arguments", prompts::with_arguments),
        prompt("test_prompt_with_embedded_resource", prompts::with_resource),
        prompt("test_prompt_with_image", prompts::with_image)
            .description("A prompt with a picture."),
        prompt("test_input_required_result_prompt", prompts::asking)
            .description("A prompt that asks the user first."),
    ],
    // The first one is also what the suite's caching scenario reads.
    resources: [
        resource("test://static-text", "Static text", resources::text)
            .description("A text that never changes.").mime_type("text/plain"),
        resource("test://static-binary", "Static binary", resources::binary)
            .description("A picture that never changes.").mime_type("image/png"),
        resource("test://watched-resource", "Watched resource", resources::watched)
            .description("A text to be followed.").mime_type("text/plain"),
    ],
    templates: [
        template("test://template/{id}/data", "Data by id", resources::item)
            .description("Data that knows its id.").mime_type("application/json"),
    ],
    completions: [complete_prompt("test_prompt_with_arguments", "arg1", prompts::complete_arg1)],
}
