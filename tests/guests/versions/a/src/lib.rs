//! The tool `version`, which answers `a`. The other version of the same plugin is its neighbour.

use longshore_plugin::tool;

longshore_plugin::plugin! {
    tools: [tool("version", || "a").description("Says which version of the plugin answers.").read_only()]
}
