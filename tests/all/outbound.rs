//! Requests of plugins to other hosts: exactly the granted ones, at addresses that were checked, and no more than the limits.

use longshore_tests::client::{Message, Reply};
use longshore_tests::origin::{Origin, authority};
use longshore_tests::server::{HOSTILE, Home, Server};
use longshore_tests::wait::{PATIENCE, wait_for, within};
use serde_json::json;
use std::time::Duration;

/// A server whose hostile plugin may reach the origin under these hosts, at this machine's address.
fn granted(origin: &Origin, hosts: &[&str], more: &str) -> Server {
    let port = origin.port();
    let grant =
        |host: &&str| format!("{{ url = \"http://{host}:{port}\", addresses = [\"127.0.0.1\"] }}");
    let hosts: Vec<_> = hosts.iter().map(grant).collect();
    let hosts = hosts.join(", ");
    Server::start(
        &[HOSTILE],
        &format!("{more}[plugins.hostile.grants]\nhosts = [{hosts}]\n"),
    )
}

fn send(server: &Server, url: &str) -> Reply {
    server.call("send", json!({ "url": url }))
}

fn denied(reply: &Reply) -> bool {
    let text = reply.response().to_string();
    text.contains("was denied an HTTP request")
        || text.contains("HttpRequestUriInvalid")
        || text.contains("no http or https URL")
}

#[test]
fn h16_a_granted_host_is_reached_and_no_other() {
    let origin = Origin::start();
    let server = granted(&origin, &["localhost"], "");
    let port = origin.port();
    let hello = send(&server, &format!("http://localhost:{port}/a"));
    assert_eq!(
        hello.result()["structuredContent"]["text"],
        "hello",
        "{hello:?}"
    );
    let upper = send(&server, &format!("http://LOCALHOST:{port}/b"));
    assert_eq!(
        upper.result()["structuredContent"]["status"],
        200,
        "{upper:?}"
    );
    let before = origin.requests().len();
    for url in [
        format!("http://127.0.0.1:{port}/"),
        format!("http://[::1]:{port}/"),
        format!("http://[::ffff:127.0.0.1]:{port}/"),
        format!("http://2130706433:{port}/"),
        format!("http://0x7f.1:{port}/"),
        format!("http://0177.0.0.1:{port}/"),
        format!("http://localhost.:{port}/"),
        format!("http://localhost.evil.test:{port}/"),
        format!("http://evil.test:{port}/?localhost"),
        format!("http://localhost@127.0.0.1:{port}/"),
        format!("http://localhost:{port}@127.0.0.1:{port}/"),
        format!("http://127.0.0.1:{port}#@localhost:{port}/"),
        "http://localhost/".to_owned(),
        format!("https://localhost:{port}/"),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
    ] {
        let reply = send(&server, &url);
        assert!(denied(&reply), "{url}: {reply:?}");
    }
    assert_eq!(origin.requests().len(), before, "{:?}", origin.requests());
}

#[test]
fn h16_a_granted_name_at_a_private_address_is_not_reached() {
    let origin = Origin::start();
    let port = origin.port();
    let config = format!(
        "[plugins.hostile.grants]\nhosts = [\"http://localhost:{port}\", \"http://127.0.0.1:{port}\", \
         {{ url = \"http://127.0.0.2:{port}\", addresses = [\"10.0.0.0/8\"] }}]\n"
    );
    let server = Server::start(&[HOSTILE], &config);
    for host in ["localhost", "127.0.0.1", "127.0.0.2"] {
        let reply = send(&server, &format!("http://{host}:{port}/"));
        let text = reply.response().to_string();
        assert!(
            text.contains("at an address that is not public"),
            "{host}: {text}"
        );
        let line = format!("{{ url = \"http://{host}:{port}\", addresses = [\"");
        wait_for(&line, PATIENCE, || {
            server.log().contains(&line).then_some(())
        });
    }
    assert_eq!(origin.requests(), [] as [&str; 0]);
}

#[test]
fn h16_each_hop_of_a_redirect_is_checked() {
    let (origin, inner) = (Origin::start(), Origin::start());
    let server = granted(&origin, &["localhost"], "");
    let port = origin.port();
    for to in [
        inner.url("/secret"),
        "http://169.254.169.254/latest/".to_owned(),
        format!("http://127.0.0.1:{port}/"),
    ] {
        let url = format!("http://localhost:{port}/redirect?{to}");
        // The host does not follow; the guest, if it does, is checked again.
        let seen = send(&server, &url);
        assert_eq!(
            seen.result()["structuredContent"]["status"],
            302,
            "{seen:?}"
        );
        let followed = server.call("send", json!({ "url": url, "follow": 3 }));
        assert!(denied(&followed), "{followed:?}");
    }
    let url = format!("http://localhost:{port}/redirect?http://localhost:{port}/there");
    let followed = server.call("send", json!({ "url": url, "follow": 3 }));
    assert_eq!(
        followed.result()["structuredContent"]["text"],
        "hello",
        "{followed:?}"
    );
    assert!(inner.requests().is_empty());
}

/// The error of the tool is its own; the limit is told after it.
fn check_limit(reply: &Reply, limit: &str, value: u64) {
    assert_eq!(reply.result()["isError"], true, "{reply:?}");
    let told = format!("The plugin hostile exceeded its limit {limit} = {value}");
    let text = reply.response().to_string();
    assert!(text.contains(&told), "no {told} in {text}");
    assert!(
        text.contains(&format!("plugins.hostile.limits.{limit}")),
        "{text}"
    );
}

#[test]
fn h16_requests_are_bounded() {
    let origin = Origin::start();
    let limits = "[plugins.hostile.limits]\nhttp_requests = 3\nhttp_time_ms = 500\nhttp_request_bytes = 1000\nhttp_response_bytes = 100000\n";
    let server = granted(&origin, &["localhost"], limits);
    let url = |path: &str| format!("http://localhost:{}{path}", origin.port());
    check_limit(
        &send(&server, &url("/endless")),
        "http_response_bytes",
        100_000,
    );
    let silent = within("a silent host", Duration::from_millis(1_500), || {
        send(&server, &url("/silent"))
    });
    check_limit(&silent, "http_time_ms", 500);
    let many = server.call("send", json!({ "url": url("/"), "times": 4 }));
    check_limit(&many, "http_requests", 3);
    let large = server.call(
        "send",
        json!({ "url": url("/"), "method": "POST", "body_bytes": 100_000 }),
    );
    check_limit(&large, "http_request_bytes", 1_000);
    // A head without end is a failed request.
    let fields = send(&server, &url("/fields"));
    assert_ne!(fields.response()["result"]["isError"], false, "{fields:?}");
    let few = server.call(
        "send",
        json!({ "url": url("/"), "method": "POST", "body_bytes": 1_000, "times": 3 }),
    );
    assert_eq!(few.result()["structuredContent"]["status"], 200, "{few:?}");
}

#[test]
fn h01_a_request_that_is_not_answered_is_cancelled() {
    let origin = Origin::start();
    let tasks =
        "[tasks]\ngrace_ms = 300\n[plugins.hostile.tools.send]\ntask_support = \"required\"\n";
    let server = granted(&origin, &["localhost"], tasks);
    let url = format!("http://localhost:{}/silent", origin.port());
    let task = server.call_task("send", json!({ "url": url }));
    wait_for("the request", PATIENCE, || {
        (!origin.requests().is_empty()).then_some(())
    });
    within("the cancellation", Duration::from_secs(1), || {
        task.cancel().result();
        task.wait("cancelled")
    });
}

#[test]
fn a_request_is_an_effect() {
    let origin = Origin::start();
    let server = granted(&origin, &["localhost"], "[tasks]\nlinger_ms = 0\n");
    let url = format!("http://localhost:{}/charge", origin.port());
    let task = server.call_task("send_then_ask", json!({ "url": url }));
    task.wait_questions();
    let id = task.id;
    let server = Server::start_in(server.kill());
    assert_eq!(
        server.task(&id).wait("failed")["error"]["data"]["reason"],
        "interrupted"
    );
    assert_eq!(origin.requests().len(), 1);

    let call = Message::call("send_then_ask", json!({ "url": url })).asks();
    let asked = server.send(&call).result().clone();
    assert_eq!(asked["resultType"], "input_required");
    assert_eq!(origin.requests().len(), 2);
}

#[test]
fn a_host_without_a_certificate_is_not_trusted() {
    let origin = Origin::start();
    let port = origin.port();
    let config = format!(
        "[plugins.hostile.grants]\nhosts = [{{ url = \"https://localhost:{port}\", addresses = [\"127.0.0.1\"] }}]\n"
    );
    let server = Server::start(&[HOSTILE], &config);
    let reply = send(&server, &format!("https://localhost:{port}/"));
    assert_eq!(reply.result()["isError"], true, "{reply:?}");
    assert!(origin.requests().is_empty());
}

#[test]
fn a_host_with_a_certificate_of_its_own_authority_is_reached() {
    let origin = Origin::start_encrypted();
    let url = format!("https://localhost:{}", origin.port());
    let start = |more: &str| {
        let grant = format!("{{ url = \"{url}\", addresses = [\"127.0.0.1\", \"::1\"]{more} }}");
        let config = format!("[plugins.hostile.grants]\nhosts = [{grant}]\n");
        Server::start(&[HOSTILE], &config)
    };
    let server = start(&format!(", ca_file = {:?}", authority()));
    let reply = send(&server, &format!("{url}/a"));
    let got = &reply.result()["structuredContent"];
    assert_eq!(got["text"], "hello", "{reply:?}");
    assert_eq!(origin.requests(), ["GET /a HTTP/1.1"]);
    // The public authorities know nothing of it.
    let server = start("");
    let reply = send(&server, &format!("{url}/b"));
    assert!(reply.response().to_string().contains("Tls"), "{reply:?}");
    assert_eq!(origin.requests().len(), 1);
}

#[test]
fn an_authority_that_is_none_is_refused_at_the_start() {
    let home = Home::new(&[], "");
    let file = home.path().join("none.pem");
    std::fs::write(&file, "no certificate").unwrap();
    for (url, file, word) in [
        ("https://a.test", file, "no certificate"),
        ("https://a.test", home.path().join("missing"), "missing"),
        ("http://a.test", authority(), "ca_file"),
    ] {
        home.configure(&format!(
            "[plugins.hostile.grants]\nhosts = [{{ url = \"{url}\", ca_file = {file:?} }}]\n"
        ));
        let output = home.command().output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success(), "{said}");
        assert!(
            said.contains("plugins.hostile.grants.hosts") && said.contains(word),
            "{said}"
        );
    }
}
