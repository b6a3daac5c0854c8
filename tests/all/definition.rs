//! What plugins say of their tools, prompts and resources, and of their results: what breaks a rule is left out or refused, one
//! by one, and does not hide the rest.

use crate::servers::shared;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use longshore_tests::client::{Message, Reply};
use longshore_tests::legacy::{EARLIER, LATEST, Session};
use longshore_tests::server::{FIXTURES, HOSTILE, Server, VERSION_A, component};
use longshore_tests::wait::{PATIENCE, wait_for};
use serde_json::{Value, json};
use std::fs;

/// Why entries of a plugin are left out: kind, name, reason. None as long as it is not served.
fn left_out(server: &Server, plugin: &str) -> Option<Vec<[String; 3]>> {
    let (_, text) = server.get("/readyz");
    let ready: Value = serde_json::from_str(&text).unwrap();
    let mut plugins = ready["plugins"].as_array().unwrap().iter();
    let entries = plugins.find(|known| known["name"] == plugin)?["left_out"].as_array()?;
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let of = |entry: &Value| ["kind", "name", "reason"].map(|name| text(&entry[name]));
    Some(entries.iter().map(of).collect())
}

#[test]
fn p20_a_bad_definition_does_not_hide_the_rest() {
    let server = Server::start(&[HOSTILE, VERSION_A], "");
    let long = "long".repeat(33);
    let bad = [
        ("no name", "1 to 128"),
        (&long, "1 to 128"),
        ("spin", "two of this name"),
        ("schema_missing", "input schema"),
        ("schema_no_json", "no JSON"),
        ("schema_of_string", "\"object\""),
        ("schema_of_int", "\"object\""),
        ("output_of_int", "output schema"),
        ("header_twice", "twice"),
        ("header_of_number", "string, integer or boolean"),
        ("header_of_items", "properties alone"),
    ];
    let left_out = left_out(&server, "hostile").unwrap();
    let tools = server.tools();
    for (name, word) in bad {
        let found = left_out.iter().find(|entry| entry[1] == name);
        let [kind, _, reason] = found.unwrap_or_else(|| panic!("{name} is not left out"));
        assert_eq!(kind, "tool");
        assert!(reason.contains(word), "{name}: {reason}");
        let log = server.log();
        let line = log
            .lines()
            .find(|line| line.contains("is left out") && line.contains(name));
        assert!(line.is_some_and(|line| line.contains("hostile")), "{name}");
        if name != "spin" {
            assert!(!tools.contains(&name.to_owned()), "{name}");
            let header = format!("=?base64?{}?=", STANDARD.encode(name));
            let call = Message::call(name, json!({})).header("Mcp-Name", &header);
            assert_eq!(server.send(&call).code(), -32602, "{name}");
        }
    }
    assert_eq!(left_out.len(), bad.len(), "{left_out:#?}");
    // The first of two tools of one name is served.
    assert_eq!(tools.iter().filter(|name| *name == "spin").count(), 1);
    assert_eq!(server.call("burn", json!({ "millions": 0 })).text(), "1");
    assert_eq!(server.call("version", json!({})).text(), "a");
}

#[test]
fn p19_structured_content_fits_its_schema_or_is_no_success() {
    let server = shared();
    let give = |arguments: Value| server.call("structure", arguments);
    let failed = give(json!({ "fail": "it broke" }));
    assert_eq!(failed.result()["isError"], true);
    assert!(failed.text().contains("it broke") && !failed.text().contains("schema"));
    for value in [
        json!(null),
        json!(0),
        json!(false),
        json!(""),
        json!([]),
        json!("x"),
    ] {
        let good = give(json!({ "json": value.to_string() }));
        let result = good.result().as_object().unwrap();
        assert_eq!(result.get("structuredContent"), Some(&value));
        assert_eq!(result.get("isError"), None, "{good:?}");
        assert_eq!(good.text(), value.to_string());
    }
    for arguments in [json!({ "json": "{}" }), json!({ "json": "1.5" }), json!({})] {
        let wrong = give(arguments);
        assert_eq!(wrong.result()["isError"], true, "{wrong:?}");
        assert_eq!(wrong.result().get("structuredContent"), None);
        assert!(wrong.text().contains("tool structure"), "{}", wrong.text());
    }
}

#[test]
fn p19_structured_content_has_a_text_copy_whoever_made_the_plugin() {
    let server = Server::start(&[HOSTILE], "");
    let reply = server.call("only_structure", json!({}));
    assert_eq!(reply.result()["structuredContent"], json!([1, 2]));
    let copy: Value = serde_json::from_str(reply.text()).unwrap();
    assert_eq!(copy, json!([1, 2]));
}

/// The texts of a result.
fn texts(result: &Value) -> Vec<&str> {
    let content = result["content"].as_array().unwrap();
    content
        .iter()
        .map(|block| block["text"].as_str().unwrap())
        .collect()
}

#[test]
fn p19_a_text_copy_stands_behind_the_guests_own_words_in_both_eras() {
    let server = shared();
    let sessions = [LATEST, EARLIER].map(|revision| Session::begin(&server, revision, &json!({})));
    for (json, text, expected) in [
        ("[1,2]", "one and two", &["one and two", "[1,2]"][..]),
        ("[1,2]", "[2,1]", &["[2,1]", "[1,2]"]),
        ("[1,2]", "[1,", &["[1,", "[1,2]"]),
        // The same is not said twice, however it is written.
        ("[1,2]", "[1,2]", &["[1,2]"]),
        ("[1,2]", " [\n1, 2 ]\n", &[" [\n1, 2 ]\n"]),
        ("null", "nothing", &["nothing", "null"]),
        ("null", "null", &["null"]),
        ("\"x\"", "x", &["x", "\"x\""]),
    ] {
        let arguments = json!({ "json": json, "text": text });
        let reply = server.call("structure", arguments.clone());
        let value: Value = serde_json::from_str(json).unwrap();
        assert_eq!(reply.result().get("structuredContent"), Some(&value));
        assert_eq!(texts(reply.result()), expected);
        for session in &sessions {
            // What is no object is not there in these versions: the text is all that they get of it.
            let call = json!({ "name": "structure", "arguments": arguments });
            let result = session.result("tools/call", call);
            assert_eq!(result.get("structuredContent"), None);
            assert_eq!(texts(&result), expected);
        }
    }
}

/// What is left of the `_meta` that the plugin gives.
fn kept() -> Value {
    json!({ "example.com/kept": 7 })
}

/// Only the harmless ones of the keys and pictures that it gives.
fn check_kept(defined: &Value) {
    assert_eq!(defined["_meta"], kept(), "{defined:#}");
    let icons = defined["icons"].as_array().unwrap().iter();
    let sources: Vec<_> = icons.map(|icon| &icon["src"]).collect();
    let harmless = ["https://example.com/icon.png", "data:image/png;base64,AA=="];
    assert_eq!(sources, harmless, "{defined:#}");
}

#[test]
fn reserved_keys_and_unsafe_pictures_do_not_get_out() {
    let server = Server::start(&[HOSTILE], "");
    for (method, member) in [
        ("tools/list", "tools"),
        ("prompts/list", "prompts"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
    ] {
        let reply = server.send(&Message::new(method));
        let mut listed = reply.result()[member].as_array().unwrap().iter();
        check_kept(listed.find(|entry| entry["name"] == "reserved").unwrap());
    }
    let reply = server.call("reserved", json!({}));
    let meta = reply.result()["_meta"].as_object().unwrap();
    assert_eq!(
        meta["io.modelcontextprotocol/serverInfo"]["name"],
        "longshore"
    );
    assert_eq!(
        (meta.get("dev.mcp/x"), &meta["example.com/kept"]),
        (None, &json!(7))
    );
    let block = &reply.result()["content"][0];
    assert_eq!(block["_meta"], kept());
    assert_eq!(block["annotations"], json!({}));
    wait_for("a line", PATIENCE, || {
        server.log().contains("dev.mcp/x").then_some(())
    });
    let blocks = server.call("reserved_blocks", json!({}));
    let blocks = &blocks.result()["content"];
    check_kept(&blocks[0]);
    assert_eq!(
        (&blocks[1]["_meta"], &blocks[1]["resource"]["_meta"]),
        (&kept(), &kept())
    );
    for uri in ["hostile://reserved", "hostile://reserved/x"] {
        let read = server.send(&Message::new("resources/read").param("uri", uri));
        let contents = &read.result()["contents"][0];
        assert_eq!(
            (&contents["uri"], &contents["_meta"]),
            (&json!(uri), &kept())
        );
    }
}

#[test]
fn a_link_leads_somewhere_or_is_no_result() {
    let server = Server::start(&[HOSTILE], "");
    let reply = server.call("bad_link", json!({}));
    let said = reply.response().to_string();
    assert!(
        said.contains("is no URI") && said.contains("bad_link"),
        "{said}"
    );
    assert!(reply.response().get("error").is_some() || reply.result()["isError"] == true);
}

#[test]
fn reserved_keys_of_an_error_do_not_get_out() {
    let server = Server::start(&[HOSTILE], "");
    let own = json!({ "example.com/kept": 7 });
    let forged = json!({
        "io.modelcontextprotocol/subscriptionId": 1, "dev.mcp/y": 2, "longshore/usage": 3, "example.com/kept": 7,
    });
    let data = json!({ "_meta": forged, "a": 1 }).to_string();
    let raised = |code: i32| {
        let reply = server.call("rpc_error", json!({ "code": code, "data": data }));
        reply.error()["data"].clone()
    };
    let kept = json!({ "_meta": own, "a": 1 });
    assert_eq!(raised(7), kept);
    assert_eq!(raised(-32603), kept);
    // A code that is not the guest's to use.
    assert_eq!(raised(-32020)["data"], kept);
    wait_for("a line", PATIENCE, || {
        server.log().contains("dev.mcp/y").then_some(())
    });
    let other = json!({ "code": 7, "data": r#"{"_meta":7}"# });
    assert_eq!(
        server.call("rpc_error", other).error()["data"],
        json!({ "_meta": 7 })
    );
}

fn mirrored(arguments: Value, headers: &[(&str, &str)]) -> Message {
    let call = Message::call("mirrored", arguments);
    let add = |call: Message, (name, value): &(&str, &str)| {
        call.header(&format!("Mcp-Param-{name}"), value)
    };
    headers.iter().fold(call, add)
}

#[test]
fn p37_headers_say_what_the_arguments_say() {
    let server = shared();
    let send = |arguments: &Value, headers: &[(&str, &str)]| -> Reply {
        server.send(&mirrored(arguments.clone(), headers))
    };
    let good: [(Value, &[(&str, &str)]); 9] = [
        (
            json!({ "region": "eu", "count": 42 }),
            &[("Region", "eu"), ("Count", "42")],
        ),
        (
            json!({ "region": "grüße" }),
            &[("Region", "=?base64?Z3LDvMOfZQ==?=")],
        ),
        (json!({ "count": 42 }), &[("Count", "42.0")]),
        (json!({ "count": 42 }), &[("COUNT", "42")]),
        (
            json!({ "count": 9_007_199_254_740_991_u64 }),
            &[("Count", "9007199254740991")],
        ),
        (json!({ "deep": { "on": true } }), &[("On", "true")]),
        (json!({ "region": null }), &[]),
        (json!({}), &[]),
        (json!({}), &[("Other", "ignored")]),
    ];
    for (arguments, headers) in good {
        let reply = send(&arguments, headers);
        assert_eq!(reply.status(), 200, "{reply:?}");
        assert_eq!(reply.result()["structuredContent"], arguments);
    }
    let wrong: [(Value, &[(&str, &str)]); 11] = [
        (json!({ "region": "eu" }), &[]),
        (json!({ "region": "eu" }), &[("Region", "us")]),
        (json!({ "region": "eu" }), &[("Region", "EU")]),
        (json!({ "region": "eu" }), &[("Region", "=?base64?ZXU?=")]),
        (json!({ "count": 42 }), &[("Count", "43")]),
        (json!({ "count": 42 }), &[("Count", "x")]),
        (
            json!({ "count": 9_007_199_254_740_993_u64 }),
            &[("Count", "9007199254740993")],
        ),
        (json!({ "deep": { "on": true } }), &[("On", "false")]),
        (json!({ "deep": { "on": true } }), &[]),
        (json!({ "region": null }), &[("Region", "null")]),
        (json!({}), &[("Region", "")]),
    ];
    for (arguments, headers) in wrong {
        let reply = send(&arguments, headers);
        assert_eq!(
            (reply.status(), reply.code()),
            (400, -32020),
            "{arguments} {headers:?}"
        );
    }
}

#[test]
fn of_two_plugins_with_equal_names_the_first_serves_all_kinds() {
    let server = Server::start(&[FIXTURES], "");
    server
        .home
        .install_as("z.wasm", &fs::read(component(FIXTURES)).unwrap());
    let lost = wait_for("the other plugin", PATIENCE, || left_out(&server, "z"));
    for (method, member, key, kind) in [
        ("tools/list", "tools", "name", "tool"),
        ("prompts/list", "prompts", "name", "prompt"),
        ("resources/list", "resources", "uri", "resource"),
        (
            "resources/templates/list",
            "resourceTemplates",
            "uriTemplate",
            "resource template",
        ),
    ] {
        let reply = server.send(&Message::new(method));
        let listed = reply.result()[member].as_array().unwrap();
        let mut keys: Vec<_> = listed
            .iter()
            .map(|entry| entry[key].as_str().unwrap())
            .collect();
        let count = keys.len();
        keys.sort_unstable();
        keys.dedup();
        assert!(count > 0 && keys.len() == count, "{method}: {keys:?}");
        let reasons: Vec<_> = lost.iter().filter(|entry| entry[0] == kind).collect();
        assert!(!reasons.is_empty(), "{kind}");
        assert!(
            reasons.iter().all(|entry| entry[2].contains("fixtures")),
            "{reasons:?}"
        );
    }
}

#[test]
fn tools_are_declared_also_where_there_are_none() {
    let server = Server::start(&[], "");
    let reply = server.send(&Message::new("server/discover"));
    let declared = reply.result()["capabilities"].as_object().unwrap();
    assert_eq!(declared["tools"], json!({ "listChanged": true }));
    assert_eq!(declared["logging"], json!({}));
    assert_eq!(server.tools(), Vec::<String>::new());
}
