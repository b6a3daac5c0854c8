//! Resources and their templates.

use crate::servers::{shared, with_and_without_lingering};
use longshore_tests::client::{Message, accept, answer};
use longshore_tests::legacy::{LATEST, Session};
use longshore_tests::server::{CONFORMANCE, FIXTURES, HOSTILE, Server};
use serde_json::{Value, json};

fn read(uri: &str) -> Message {
    Message::new("resources/read").param("uri", uri)
}

/// All entries of a list, page by page; how many pages.
fn all(server: &Server, method: &str, member: &str) -> (Vec<Value>, usize) {
    let (mut entries, mut pages, mut message) = (Vec::new(), 0, Message::new(method));
    loop {
        let reply = server.send(&message);
        let page = reply.result();
        pages += 1;
        entries.extend(page[member].as_array().unwrap().iter().cloned());
        match page.get("nextCursor") {
            Some(cursor) => message = Message::new(method).param("cursor", cursor.clone()),
            None => return (entries, pages),
        }
    }
}

#[test]
fn lists_come_in_pages_and_in_order() {
    let settings = "[lists]\npage_size = 2\nttl_ms = 7\ncache_scope = \"public\"\n";
    let server = Server::start(&[FIXTURES, CONFORMANCE], settings);
    for (method, member, key) in [
        ("prompts/list", "prompts", "name"),
        ("resources/list", "resources", "uri"),
        (
            "resources/templates/list",
            "resourceTemplates",
            "uriTemplate",
        ),
    ] {
        let (entries, pages) = all(&server, method, member);
        assert_eq!(pages, entries.len().div_ceil(2), "{method}");
        let keys: Vec<_> = entries
            .iter()
            .map(|entry| entry[key].as_str().unwrap())
            .collect();
        assert!(keys.is_sorted_by(|one, next| one < next), "{keys:?}");
        let first = server.send(&Message::new(method));
        let (ttl, scope) = (&first.result()["ttlMs"], &first.result()["cacheScope"]);
        assert_eq!((ttl, scope), (&json!(7), &json!("public")), "{method}");
        for cursor in ["", "junk", "dG9vbHMgMSBh"] {
            let reply = server.send(&Message::new(method).param("cursor", cursor));
            assert_eq!(
                (reply.status(), reply.code()),
                (200, -32602),
                "{method} {cursor}"
            );
        }
    }
}

#[test]
fn text_bytes_and_folders_are_read() {
    let server = shared();
    let contents = |uri: &str| server.send(&read(uri)).result()["contents"].clone();
    assert_eq!(contents("fixture://plain")[0]["text"], "a plain text");
    let bytes = contents("fixture://bytes");
    assert_eq!(bytes[0]["blob"], "AAH+/w==");
    assert_eq!(bytes[0]["mimeType"], "application/octet-stream");
    let folder = contents("fixture://folder");
    assert_eq!(folder.as_array().unwrap().len(), 2);
    assert_eq!(folder[1]["uri"], "fixture://folder/two");
    assert_eq!(folder[0]["_meta"], json!({ "example.com/key": 1 }));
}

#[test]
fn a_uri_finds_its_plugin_by_the_templates() {
    let server = shared();
    for (uri, text) in [
        ("fixture://seen/12", "seen at 12"),
        ("fixture://file/a/b.txt", "the file a/b.txt"),
    ] {
        let reply = server.send(&read(uri));
        assert_eq!(reply.result()["contents"][0]["text"], text);
    }
}

#[test]
fn what_is_not_there_is_an_error_that_says_so() {
    let server = shared();
    // By the host, which knows no such resource, and by the plugin.
    for uri in ["fixture://no/such", "no:such", "fixture://file/a/missing"] {
        let reply = server.send(&read(uri));
        assert_eq!((reply.status(), reply.code()), (200, -32602), "{uri}");
        assert_eq!(reply.error()["data"]["uri"], uri);
    }
}

#[test]
fn a_resource_that_fails_is_an_error() {
    let server = shared();
    let reply = server.send(&read("fixture://fail"));
    assert_eq!((reply.status(), reply.code()), (200, -32603));
}

#[test]
fn what_is_not_valid_does_not_reach_the_client() {
    let mut server = Server::start(&[HOSTILE], "");
    let listed = all(&server, "resources/list", "resources").0;
    assert!(!listed.is_empty());
    for entry in listed {
        let uri = entry["uri"].as_str().unwrap();
        if uri.contains("spin") {
            continue;
        }
        // The schemas judge what comes; an error of the host names the plugin.
        let reply = server.send(&read(uri));
        if let Some(error) = reply.response().get("error") {
            assert_eq!(error["code"], -32603, "{uri}: {error:#}");
            assert_eq!(error["data"]["plugin"], "hostile", "{uri}: {error:#}");
        }
    }
    server.check_alive();
}

#[test]
fn a_resource_without_contents_is_none() {
    let server = Server::start(&[HOSTILE], "");
    let reply = server.send(&read("hostile://empty"));
    assert_eq!((reply.status(), reply.code()), (200, -32603));
    let expected = json!({
        "reason": "invalid_result", "plugin": "hostile", "resource": "hostile://empty",
    });
    assert_eq!(reply.error()["data"], expected);
    let session = Session::begin(&server, LATEST, &json!({}));
    let error = session.error("resources/read", json!({ "uri": "hostile://empty" }));
    assert_eq!(
        (&error["code"], &error["data"]),
        (&json!(-32603), &expected)
    );
}

with_and_without_lingering! {
    /// A resource asks; what comes of it is not for others to keep.
    fn a_resource_asks_in_rounds(server) {
        let call = read("fixture://ask").asks();
        let asked = server.send(&call).result().clone();
        assert_eq!(asked["resultType"], "input_required");
        let next = call
            .param("inputResponses", answer("name", accept(json!({ "name": "Ada" }))))
            .param("requestState", asked["requestState"].clone());
        let reply = server.send(&next);
        assert_eq!(reply.result()["contents"][0]["text"], "written for Ada");
        assert_eq!(reply.result()["ttlMs"], 0);
        let foreign = next.param("uri", "fixture://plain").header("Mcp-Name", "fixture://plain");
        assert_eq!(server.send(&foreign).code(), -32602);
    }
}
