//! The macro that makes a component of what a plugin has.

/// Makes a plugin. Call it once in a crate of type `cdylib`.
///
/// ```
/// use longshore_plugin::tool;
///
/// longshore_plugin::plugin! {
///     tools: [
///         tool("ping", || "pong").description("Answers.").read_only(),
///         tool("wait", || std::thread::sleep(std::time::Duration::from_secs(60)))
///             .description("Takes a minute.")
///             .task_required(),
///     ]
/// }
/// ```
///
/// A plugin has at least one of these parts, in this order: `tools`, `prompts`, `resources`, `templates`, `completions`. An
/// entry of `resources` may also be a list of them, for what is only known when it is looked at.
///
/// ```
/// use longshore_plugin::{Typed, complete_prompt, prompt, resource, template};
/// use serde::Deserialize;
/// use schemars::JsonSchema;
///
/// #[derive(Deserialize)]
/// struct Day { year: u16, day: u16 }
///
/// /// Sums up a day.
/// #[derive(Deserialize, JsonSchema)]
/// struct Sum { day: u16 }
///
/// longshore_plugin::plugin! {
///     prompts: [prompt("sum", |args: Sum| format!("Sum up day {}.", args.day))],
///     resources: [resource("diary://about", "about", || "A diary.")],
///     templates: [template("diary://{year}/{day}", "day", |at: Day| {
///         (at.day <= 366).then(|| format!("Day {} of {}: rain.", at.day, at.year))
///     })],
///     completions: [complete_prompt("sum", "day", |typed: &Typed| [format!("{}0", typed.value)])],
/// }
/// ```
#[macro_export]
macro_rules! plugin {
    () => {
        ::std::compile_error!("a plugin has tools, prompts, resources, templates or completions");
    };
    (
        $(tools: [$($tool:expr),+ $(,)?] $(,)?)?
        $(prompts: [$($prompt:expr),+ $(,)?] $(,)?)?
        $(resources: [$($resource:expr),+ $(,)?] $(,)?)?
        $(templates: [$($template:expr),+ $(,)?] $(,)?)?
        $(completions: [$($completer:expr),+ $(,)?] $(,)?)?
    ) => {
        #[doc(hidden)]
        #[derive(Debug)]
        pub struct LongshorePlugin;

        $($crate::plugin_exports!(@tools $($tool),+);)?
        $($crate::plugin_exports!(@prompts $($prompt),+);)?
        $crate::plugin_exports!(@resources [$($($resource),+)?] [$($($template),+)?]);
        $($crate::plugin_exports!(@completions $($completer),+);)?
    };
}

/// The parts of [`plugin!`]. Native builds (tests of a plugin's own logic) have no host to export to.
#[doc(hidden)]
#[macro_export]
macro_rules! plugin_exports {
    (@tools $($tool:expr),+) => {
        impl LongshorePlugin {
            #[doc(hidden)]
            pub fn tools() -> ::std::vec::Vec<$crate::Tool> {
                ::std::vec![$($tool),+]
            }
        }

        impl $crate::contract::exports::longshore::plugin::tools::Guest for LongshorePlugin {
            fn list() -> ::std::vec::Vec<$crate::contract::exports::longshore::plugin::tools::Tool> {
                $crate::definitions(&Self::tools())
            }

            fn call(
                name: ::std::string::String,
                arguments: ::std::string::String,
            ) -> ::std::result::Result<(), $crate::RpcError> {
                $crate::serve(&Self::tools(), &name, &arguments)
            }
        }

        #[cfg(target_arch = "wasm32")]
        $crate::contract::export!(LongshorePlugin with_types_in $crate::contract);
    };
    (@prompts $($prompt:expr),+) => {
        impl LongshorePlugin {
            #[doc(hidden)]
            pub fn prompts() -> ::std::vec::Vec<$crate::Prompt> {
                ::std::vec![$($prompt),+]
            }
        }

        const _: () = {
            use $crate::contract::prompts::exports::longshore::plugin::prompts as contract;

            impl contract::Guest for LongshorePlugin {
                fn list() -> ::std::vec::Vec<contract::Prompt> {
                    $crate::prompt_definitions(&Self::prompts())
                }

                fn get(
                    name: ::std::string::String,
                    arguments: ::std::vec::Vec<(::std::string::String, ::std::string::String)>,
                ) -> ::std::result::Result<contract::PromptResult, $crate::RpcError> {
                    $crate::fill_prompt(&Self::prompts(), &name, &arguments)
                }
            }
        };

        #[cfg(target_arch = "wasm32")]
        $crate::contract::prompts::export!(
            LongshorePlugin with_types_in $crate::contract::prompts
        );
    };
    (@resources [] []) => {};
    (@resources [$($resource:expr),*] [$($template:expr),*]) => {
        impl LongshorePlugin {
            #[doc(hidden)]
            pub fn resources() -> ::std::vec::Vec<$crate::Resource> {
                let lists: ::std::vec::Vec<::std::vec::Vec<$crate::Resource>> =
                    ::std::vec![$(::std::iter::IntoIterator::into_iter($resource).collect()),*];
                lists.into_iter().flatten().collect()
            }

            #[doc(hidden)]
            pub fn templates() -> ::std::vec::Vec<$crate::Template> {
                ::std::vec![$($template),*]
            }
        }

        const _: () = {
            use $crate::contract::resources::exports::longshore::plugin::resources as contract;

            impl contract::Guest for LongshorePlugin {
                fn list() -> ::std::vec::Vec<contract::ResourceEntry> {
                    $crate::resource_entries(&Self::resources())
                }

                fn templates() -> ::std::vec::Vec<contract::ResourceTemplate> {
                    $crate::template_entries(&LongshorePlugin::templates())
                }

                fn read(
                    uri: ::std::string::String,
                ) -> ::std::result::Result<contract::ReadOutcome, $crate::RpcError> {
                    $crate::read_resource(&Self::resources(), &LongshorePlugin::templates(), &uri)
                }

                fn subscribe(
                    uri: ::std::string::String,
                ) -> ::std::result::Result<(), $crate::RpcError> {
                    $crate::follow_resource(&Self::resources(), &LongshorePlugin::templates(), &uri)
                }

                fn unsubscribe(
                    _uri: ::std::string::String,
                ) -> ::std::result::Result<(), $crate::RpcError> {
                    ::std::result::Result::Ok(())
                }
            }
        };

        #[cfg(target_arch = "wasm32")]
        $crate::contract::resources::export!(
            LongshorePlugin with_types_in $crate::contract::resources
        );
    };
    (@completions $($completer:expr),+) => {
        impl LongshorePlugin {
            #[doc(hidden)]
            pub fn completers() -> ::std::vec::Vec<$crate::Completer> {
                ::std::vec![$($completer),+]
            }
        }

        const _: () = {
            use $crate::contract::completions::exports::longshore::plugin::completions as contract;

            impl contract::Guest for LongshorePlugin {
                fn complete(
                    target: contract::CompletionTarget,
                    argument: ::std::string::String,
                    value: ::std::string::String,
                    known: ::std::vec::Vec<(::std::string::String, ::std::string::String)>,
                ) -> ::std::result::Result<contract::Completion, $crate::RpcError> {
                    let typed = $crate::Typed { value, known };
                    ::std::result::Result::Ok(
                        $crate::complete(&Self::completers(), &target, &argument, &typed),
                    )
                }
            }
        };

        #[cfg(target_arch = "wasm32")]
        $crate::contract::completions::export!(
            LongshorePlugin with_types_in $crate::contract::completions
        );
    };
}
