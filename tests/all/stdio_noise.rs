//! Standard output carries messages only, whatever plugins and files do, and whatever is logged.

use crate::stdio::{IDLE_END, alive, call, modern, text};
use longshore_tests::client::{META_LOG_LEVEL, Message};
use longshore_tests::server::{FIXTURES, HOSTILE, VERSION_A};
use longshore_tests::stdio::StdioServer;
use longshore_tests::wait::{PATIENCE, wait_for};
use serde_json::{Value, json};
use std::time::Duration;

#[test]
fn p27_standard_output_carries_messages_only() {
    for level in ["trace", "debug", "info", "off"] {
        let mut server = StdioServer::start(
            &[FIXTURES, VERSION_A],
            &format!("[log]\nlevel = \"{level}\"\n"),
        );
        server.home.install_as("broken.wasm", b"\0asm\x01\0\0\0");
        std::fs::remove_file(server.home.plugins().join("a.wasm")).unwrap();
        wait_for("the plugin to go", PATIENCE, || {
            let listed = server.exchange(&modern("w", &Message::new("tools/list"))).0;
            (!listed.to_string().contains("\"name\":\"version\"")).then_some(())
        });
        server.exchange(&call(
            1,
            "log",
            json!({ "level": "info", "text": "to nobody" }),
        ));
        server.close_input();
        assert!(server.ended_within(IDLE_END).success());
        // Every line that came was a message, or the harness would have ended this.
        assert_eq!(server.message_within(Duration::from_millis(10)), None);
    }
}

#[test]
fn p27_plugins_that_print_and_fail_put_nothing_between_the_messages() {
    for level in ["trace", "debug", "warn", "error"] {
        let config = format!("[log]\nlevel = \"{level}\"\n");
        let mut server = StdioServer::start(&[HOSTILE], &config);
        server.home.install_as("broken.wasm", b"\0asm\x01\0\0\0");
        let many = json!({ "n": 5_000 });
        for (tool, arguments, said) in [
            ("spew", &many, "wrote 5000 lines to each"),
            ("forge", &json!({}), "forged nothing"),
            ("log_flood", &many, "logged 5000 lines"),
        ] {
            // An id that no plugin could guess.
            let id = format!("{tool} {level}");
            let (response, others) = server.exchange(&call(id, tool, arguments.clone()));
            assert_eq!((text(&response), others.len()), (said, 0), "{level}");
        }
        let flood = Message::call("log_flood", many).meta(META_LOG_LEVEL, "debug");
        let (response, logged) = server.exchange(&modern("logged", &flood));
        assert_eq!(text(&response), "logged 5000 lines");
        assert!(!logged.is_empty());
        let is_log = |message: &Value| message["method"] == "notifications/message";
        assert!(logged.iter().all(is_log), "{logged:#?}");
        let (trapped, others) = server.exchange(&call("trap", "trap", json!({})));
        assert_eq!(
            (&trapped["error"]["data"]["reason"], others.len()),
            (&json!("trap"), 0)
        );
        alive(&mut server);
        server.close_input();
        assert!(server.ended_within(IDLE_END).success());
        assert_eq!(server.message_within(Duration::from_millis(10)), None);
    }
}
