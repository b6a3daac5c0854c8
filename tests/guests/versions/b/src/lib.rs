//! The tool `version`, which answers `b`. The other version of the same plugin is its neighbour.

use longshore_plugin::tool;

longshore_plugin::plugin! {
    tools: [tool("version", || "b").description("Says which version of the plugin answers.").read_only()]
}
