//! What fuzz targets call (`fuzz/`): the reading of messages, and of headers against them, with what must hold whatever comes in.
//!
//! The judge is another reader of JSON, which takes the last of two members of one name where ours refuses them: a message that
//! is accepted must mean the same to both.

use crate::catalogue::Catalogue;
use crate::catalogue::header::HeaderParams;
use crate::headers::{decode, single};
use crate::ladder::{Rules, climb};
use crate::message::{self, Message, Request};
use crate::meta::Meta;
use crate::method::Method;
use crate::params::{Checked, shape};
use crate::stdio::input::Input;
use futures::FutureExt as _;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use std::sync::LazyLock;

/// A body or line, whatever it is.
pub fn message(body: &[u8]) {
    let read = match message::read(body) {
        Ok(Message::Request(request)) => request,
        Ok(Message::Notification(_) | Message::Response(_)) => return,
        Err(fault) => {
            let id = fault.id.map(|id| id.get().to_owned());
            assert!(matches!(fault.error.code, -32700 | -32600));
            assert!(id.is_none_or(|id| is_id(&serde_json::from_str(&id).expect("an id"))));
            return;
        }
    };
    let Some(other) = other_reading(body) else {
        return;
    };
    assert!(is_id(&other["id"]));
    assert_eq!(read.method, other["method"]);
    let _ = Meta::read(&read.meta);
    if let Some(method) = Method::parse(&read.method) {
        check_shape(method, read, &other);
    }
}

/// The lines of an input, however they come.
pub fn lines(input: &[u8]) {
    let mut reader = Input::new(input, 64);
    // A slice is read without waiting.
    while let Some(Some(_)) = reader.next().now_or_never() {}
}

/// The other reader decodes every string; ours only those that are looked at. So half of a surrogate pair, which the grammar
/// admits and no text can hold, may stand where nobody looks.
fn other_reading(body: &[u8]) -> Option<Value> {
    serde_json::from_slice(body).ok()
}

fn is_id(id: &Value) -> bool {
    // Long integers are kept digit by digit; another reader takes them for fractions.
    id.is_string() || id.is_number()
}

fn check_shape(method: Method, request: Request, other: &Value) {
    if let Ok(checked) = shape(method, request) {
        check_same(&checked, &other["params"]);
    }
}

/// What will be executed is what the other reader sees.
fn check_same(checked: &Checked, params: &Value) {
    match checked {
        Checked::CallTool(tool, _) => {
            assert_eq!(tool.name, params["name"]);
            let arguments = params.get("arguments").cloned().unwrap_or(json!({}));
            assert_eq!(tool.arguments, arguments);
            let text: Value = serde_json::from_str(&tool.text).expect("arguments are JSON");
            assert_eq!(text, arguments);
        }
        Checked::GetPrompt { name, .. } => assert_eq!(*name, params["name"]),
        Checked::ReadResource { uri, .. } => assert_eq!(*uri, params["uri"]),
        Checked::GetTask { id } | Checked::CancelTask { id } | Checked::UpdateTask { id, .. } => {
            assert_eq!(*id, params["taskId"]);
        }
        Checked::Discover | Checked::List { .. } | Checked::Complete(_) | Checked::Listen(_) => {}
    }
}

/// A request with headers: the first empty line parts them from the body, as on the wire.
pub fn request(input: &[u8]) {
    let end = input.windows(2).position(|pair| pair == b"\n\n");
    let Some(end) = end else { return };
    let pairs: Vec<_> = input[..end]
        .split(|byte| *byte == b'\n')
        .filter_map(|line| {
            let colon = line.iter().position(|byte| *byte == b':')?;
            let name = std::str::from_utf8(&line[..colon]).ok()?;
            Some((name.to_owned(), line[colon + 1..].to_vec()))
        })
        .collect();
    headers(&pairs, &input[end + 2..]);
}

/// Headers, name and value, with a body: what is accepted must be the same in both.
fn headers(pairs: &[(String, Vec<u8>)], body: &[u8]) {
    let Ok(Message::Request(request)) = message::read(body) else {
        return;
    };
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        let name = HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(value)) {
            headers.append(name, value);
        }
    }
    let Some(other) = other_reading(body) else {
        return;
    };
    let rules = Rules {
        require_task_name: true,
    };
    let climbed = climb(rules, &Catalogue::default(), request, Some(&headers));
    let Ok((checked, _)) = climbed else {
        return;
    };
    check_same(&checked, &other["params"]);
    assert_eq!(
        said(&headers, "mcp-method").as_deref(),
        other["method"].as_str()
    );
    let version = &other["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
    assert_eq!(
        said(&headers, "mcp-protocol-version").as_deref(),
        version.as_str()
    );
    let named = match &checked {
        Checked::CallTool(tool, _) => Some(&tool.name),
        Checked::GetTask { id } | Checked::CancelTask { id } | Checked::UpdateTask { id, .. } => {
            Some(id)
        }
        _ => None,
    };
    if let Some(named) = named {
        let header = said(&headers, "mcp-name").expect("a name is required");
        assert_eq!(decode(&header).as_ref(), Ok(named));
    }
    if let Checked::CallTool(tool, _) = &checked {
        check_params(&headers, &tool.arguments);
    }
}

fn said(headers: &HeaderMap, name: &'static str) -> Option<String> {
    let said = single(headers, &HeaderName::from_static(name));
    said.expect("it was accepted").map(str::to_owned)
}

static MIRRORED: LazyLock<HeaderParams> = LazyLock::new(|| {
    let schema = json!({ "type": "object", "properties": {
        "region": { "type": "string", "x-mcp-header": "Region" },
        "count": { "type": "integer", "x-mcp-header": "Count" },
        "deep": { "type": "object", "properties": { "flag": { "type": "boolean", "x-mcp-header": "Flag" } } },
    } });
    HeaderParams::find(&schema).expect("the annotations are right")
});

fn check_params(headers: &HeaderMap, arguments: &Value) {
    if MIRRORED.check(headers, arguments).is_err() {
        return;
    }
    let header = |name| said(headers, name).map(|text| decode(&text).expect("it was accepted"));
    match &arguments["region"] {
        Value::String(region) => assert_eq!(header("mcp-param-region").as_ref(), Some(region)),
        Value::Null => assert_eq!(header("mcp-param-region"), None),
        _ => {}
    }
    if let Some(count) = arguments["count"].as_f64() {
        let stated = header("mcp-param-count").and_then(|text| text.parse::<f64>().ok());
        assert_eq!(stated, Some(count));
    }
    if let Some(flag) = arguments["deep"]["flag"].as_bool() {
        assert_eq!(header("mcp-param-flag"), Some(flag.to_string()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// Inputs made of each kept one.
    const VARIANTS: u64 = 10_000;

    /// The kept inputs of a target, in the order of their names.
    fn corpus(target: &str) -> Vec<Vec<u8>> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
        let entries = std::fs::read_dir(root.join(target)).unwrap();
        let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        assert!(!files.is_empty());
        files
            .iter()
            .map(|file| std::fs::read(file).unwrap())
            .collect()
    }

    /// SplitMix64 (Steele, Lea, Flood 2014): the same inputs on every machine.
    struct Dice(u64);

    impl Dice {
        fn roll(&mut self, below: usize) -> usize {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = self.0;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            usize::try_from((mixed ^ (mixed >> 31)) % below.max(1) as u64).unwrap()
        }
    }

    /// What messages are made of; swapped in where they hurt.
    const TOKENS: [&str; 16] = [
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\\u0061",
        "null",
        "1e9",
        "-0",
        "\"name\":\"x\",",
        "\"id\":2,",
        "\n",
        "\r\nMcp-Name: x\n",
        "=?base64?YQ==?=",
    ];

    fn changed(input: &[u8], others: &[Vec<u8>], dice: &mut Dice) -> Vec<u8> {
        let mut bytes = input.to_vec();
        for _ in 0..=dice.roll(4) {
            let at = dice.roll(bytes.len() + 1);
            let end = (at + dice.roll(9)).min(bytes.len());
            let new: Vec<u8> = match dice.roll(5) {
                0 => Vec::new(),
                1 => vec![u8::try_from(dice.roll(256)).unwrap()],
                2 => TOKENS[dice.roll(TOKENS.len())].into(),
                3 => bytes[at..end].repeat(2),
                _ => {
                    let other = &others[dice.roll(others.len())];
                    let from = dice.roll(other.len() + 1);
                    other[from..(from + dice.roll(40)).min(other.len())].to_vec()
                }
            };
            bytes.splice(at..end, new);
        }
        bytes
    }

    fn run(target: &str, check: impl Fn(&[u8])) {
        let kept = corpus(target);
        let mut dice = Dice(7);
        for input in &kept {
            check(input);
            for _ in 0..VARIANTS {
                check(&changed(input, &kept, &mut dice));
            }
        }
    }

    #[test]
    fn messages() {
        run("message", message);
    }

    #[test]
    fn headers_and_bodies() {
        run("headers", request);
    }

    #[test]
    fn lines_of_an_input() {
        run("lines", lines);
    }
}
